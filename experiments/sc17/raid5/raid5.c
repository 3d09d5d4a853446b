/* SPDX-License-Identifier: Apache-2.0 */
/* RAID-5 (sPIN §5.3, App. C.3.5): rank 0 is the client, rank 1 the parity node, ranks 2 to 5 hold the data.
 *
 *   --mode rdma       the CPUs of the nodes answer reads, compute differences and parity, and forward acknowledgements
 *   --mode triggered  the same, but triggered puts forward the acknowledgements (Portals 4)
 *   --mode spin       handlers on the cards do all of it: those of the library
 *   --mode listing    the same, but the handlers of the paper's listing (listing.h)
 * and either
 *   --bytes N,N,…     writes of N bytes, a quarter to each data node
 *   --traces T,T,…    replays synthetic traces, 1 to 5 (spc.h), of --requests N requests each
 *   --file FILE       replays a trace in SPC format; it counts as trace 0
 * and perhaps
 *   --reads get       the client fetches data by one-sided gets, which no CPU and no handler of a node serves (default)
 *   --reads served    a data node's CPU or handler answers a message with the data
 *   --piece N         the client sends writes in messages of at most N bytes
 *
 * Prints one JSON object a line: {"mode", "bytes" or "trace", …, "time_ps", "data_ok"}. The time of a write runs from
 * the client's first put until its CPU has seen all acknowledgements; that of a trace is the sum of its requests, one
 * after the other. In the end every node compares its memory with a plain computation. */
#include "../../common/common.h"
#include "listing.h"
#include "spc.h"
#include <handlers/raid5/raid5.h>

enum { PT = 3, STOP = 99 };
enum { CLIENT = 0, PARITY = 1, DATA = 2, NODES = 4 }; /* ranks, and the number of data nodes */
enum { NODE_BYTES = 1 << 20, VOLUME = NODES * NODE_BYTES };
enum { STRIPE_UNIT = 4096 }; /* stripe unit of the volume that traces access */
enum { WARM_UP = 2 };        /* rounds until the branch predictors of the HPUs have settled */
enum { MOST = NODE_BYTES };  /* bytes of the largest write: all its packets may be in flight to a node */

enum mode { RDMA, TRIGGERED, SPIN, LISTING, MODES };
static const char *const modes[MODES] = {"rdma", "triggered", "spin", "listing"};
enum reads { GET, SERVED, READS };
static const char *const ways_to_read[READS] = {"get", "served"};
static const char usage[] =
    "raid5 --mode rdma|triggered|spin|listing [--bytes N,N,...] [--traces T,T,... --requests N] "
    "[--file F] [--reads get|served] [--piece N]";

/* A piece of a request that is on one data node. */
struct piece {
    uint32_t node, length;
    size_t offset; /* offset on the node */
    size_t at;     /* offset in the request */
};

static enum mode mode;
static bool handlers; /* set if handlers do the nodes' work instead of CPUs */
static enum reads reads;
static size_t longest = SIZE_MAX; /* bytes of a message */
static int rank;
static ptl_handle_eq_t eq;    /* event queue of the nodes' CPUs */
static unsigned char *volume; /* expected contents of the data nodes, one after the other, computed on every rank */
static unsigned char *memory; /* memory of this node; the client's has data to send, then received data */

/* The piece at `at` of a request that begins at `address`. */
static struct piece piece_at(size_t address, size_t length, size_t at, size_t unit) {
    size_t place = address + at, left = unit - place % unit, most = left < longest ? left : longest;
    return (struct piece){.node = (uint32_t)(place / unit % NODES),
                          .length = (uint32_t)(length - at < most ? length - at : most),
                          .offset = place / unit / NODES * unit + place % unit,
                          .at = at};
}

/* Applies a write to the plain volume: its byte at `at` is pattern(at, seed). */
static void write_plainly(size_t address, size_t length, size_t unit, unsigned seed) {
    struct piece piece;
    for (size_t at = 0; at < length; at += piece.length) {
        piece = piece_at(address, length, at, unit);
        for (size_t i = 0; i < piece.length; i++)
            volume[piece.node * NODE_BYTES + piece.offset + i] = pattern(at + i, seed);
    }
}

static unsigned char expected(size_t offset) {
    unsigned char parity = 0;
    if (rank >= DATA)
        return volume[(rank - DATA) * NODE_BYTES + offset];
    for (size_t node = 0; node < NODES; node++)
        parity ^= volume[node * NODE_BYTES + offset];
    return parity;
}

/* Compares this node's memory with the plain volume. */
static void check_memory(void) {
    for (size_t i = 0; i < NODE_BYTES && rank != CLIENT; i++)
        if (memory[i] != expected(i))
            fail("%s byte %zu is %u, not %u", rank == PARITY ? "parity" : "data", i, memory[i], expected(i));
}

/* ---- Nodes whose CPUs do the work -------------------------------------------------------------------------------- */

static unsigned char *staged; /* received data, at its place; the parity node has one area for each data node */
static unsigned char *diff;   /* old ^ new, at its place */
static ptl_handle_md_t memory_md, diff_md, byte_md;
static ptl_handle_ct_t acks; /* acknowledgements of the parity node (Portals 4) */
static ptl_size_t expected_acks;

static void prepare_node(void) {
    static unsigned char byte;
    expected_acks = 0;
    memory_md = bind_memory(memory, NODE_BYTES, 0, PTL_CT_NONE);
    byte_md = bind_memory(&byte, sizeof byte, 0, PTL_CT_NONE);
    append_plain(PT, STOP, PTL_RANK_ANY, NULL, 0, PTL_ME_OP_PUT, PTL_CT_NONE);
    if (rank == PARITY) {
        for (ptl_rank_t node = 0; node < NODES; node++)
            append_plain(PT, RAID5_DIFF, DATA + node, staged + node * NODE_BYTES, NODE_BYTES, PTL_ME_OP_PUT,
                         PTL_CT_NONE);
        return;
    }
    CHECK(PtlCTAlloc(ni, &acks));
    diff_md = bind_memory(diff, NODE_BYTES, 0, PTL_CT_NONE);
    append_plain(PT, RAID5_WRITE, PTL_RANK_ANY, staged, NODE_BYTES, PTL_ME_OP_PUT, PTL_CT_NONE);
    if (reads == SERVED)
        append_plain(PT, RAID5_READ, PTL_RANK_ANY, NULL, 0, PTL_ME_OP_PUT, PTL_CT_NONE);
    append_plain(PT, RAID5_ACK, PTL_RANK_ANY, &byte, sizeof byte,
                 PTL_ME_OP_PUT | (mode == TRIGGERED ? PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE : 0),
                 mode == TRIGGERED ? acks : PTL_CT_NONE);
}

/* Replaces old data by the staged new data, and forwards the difference. The CPU reads old and new data, and writes the
* difference and the new data. */
static void update_data(const ptl_event_t *event) {
    size_t at = event->remote_offset, length = event->mlength;
    for (size_t i = at; i < at + length; i++) {
        diff[i] = memory[i] ^ staged[i];
        memory[i] = staged[i];
    }
    spin_host_memory(2 * length, 2 * length);
    CHECK(PtlPut(diff_md, at, length, PTL_NO_ACK_REQ, (ptl_process_t){.rank = PARITY}, PT, RAID5_DIFF, at, NULL,
                 event->initiator.rank));
    if (mode == TRIGGERED)
        CHECK(PtlTriggeredPut(byte_md, 0, 1, PTL_NO_ACK_REQ, event->initiator, PT, RAID5_DONE, 0, NULL, 0, acks,
                              ++expected_acks));
}

/* Adds a staged difference to the parity. The CPU reads difference and parity, and writes the parity. */
static void update_parity(const ptl_event_t *event) {
    size_t at = event->remote_offset, length = event->mlength;
    const unsigned char *from = staged + (event->initiator.rank - DATA) * NODE_BYTES;
    for (size_t i = at; i < at + length; i++)
        memory[i] ^= from[i];
    spin_host_memory(2 * length, length);
    CHECK(PtlPut(byte_md, 0, 1, PTL_NO_ACK_REQ, event->initiator, PT, RAID5_ACK, 0, NULL, event->hdr_data));
}

/* Serves requests until the client sends a stop message. */
static void serve(void) {
    ptl_event_t event;
    for (;;) {
        CHECK(PtlEQWait(eq, &event));
        if (event.ni_fail_type != PTL_NI_OK)
            fail("event %d failed: %d", event.type, event.ni_fail_type);
        if (event.type != PTL_EVENT_PUT)
            continue;
        switch (event.match_bits) {
        case RAID5_WRITE: update_data(&event); break;
        case RAID5_DIFF: update_parity(&event); break;
        case RAID5_READ:
            CHECK(PtlPut(memory_md, event.remote_offset, event.hdr_data >> 32, PTL_NO_ACK_REQ, event.initiator, PT,
                         RAID5_DATA, (uint32_t)event.hdr_data, NULL, 0));
            break;
        case RAID5_ACK:
            CHECK(PtlPut(byte_md, 0, 1, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)event.hdr_data}, PT,
                         RAID5_DONE, 0, NULL, 0));
            break;
        default: return;
        }
    }
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

static ptl_handle_md_t client_md, read_md;
static ptl_handle_ct_t done, bytes_read;
static ptl_size_t expected_done, expected_bytes;
static unsigned char done_byte;

static void prepare_client(void) {
    expected_done = expected_bytes = 0;
    CHECK(PtlCTAlloc(ni, &done));
    CHECK(PtlCTAlloc(ni, &bytes_read));
    client_md = bind_memory(memory, VOLUME, 0, PTL_CT_NONE);
    read_md = bind_memory(memory + VOLUME, VOLUME, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES, bytes_read);
    append_plain(PT, RAID5_DONE, PTL_RANK_ANY, &done_byte, sizeof done_byte,
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, done);
    append_plain(PT, RAID5_DATA, PTL_RANK_ANY, memory + VOLUME, VOLUME,
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES | PTL_ME_EVENT_COMM_DISABLE, bytes_read);
}

/* Number of DONE messages for a message of a write: handlers acknowledge differences, CPUs messages. */
static ptl_size_t dones(size_t length) {
    if (!handlers)
        return 1;
    return mode == LISTING ? (length + limits.max_payload_size - 1) / limits.max_payload_size
                           : raid5_dones(length, limits.max_payload_size);
}

/* Sends the message for a piece of a request. */
static void send_piece(bool writes, struct piece piece) {
    ptl_process_t node = {.rank = DATA + piece.node};
    if (writes)
        CHECK(PtlPut(client_md, piece.at, piece.length, PTL_NO_ACK_REQ, node, PT, RAID5_WRITE, piece.offset, NULL, 0));
    else if (reads == GET)
        CHECK(PtlGet(read_md, piece.at, piece.length, node, PT, RAID5_READ, piece.offset, NULL));
    else
        CHECK(PtlPut(client_md, 0, 0, PTL_NO_ACK_REQ, node, PT, RAID5_READ, piece.offset, NULL,
                     raid5_wanted(piece.length, (uint32_t)piece.at)));
    expected_done += writes ? dones(piece.length) : 0;
    expected_bytes += writes ? 0 : piece.length;
}

/* Makes a request and waits until it is done; returns its duration in ps. */
static uint64_t request(bool writes, size_t address, size_t length, size_t unit, unsigned seed) {
    struct piece piece;
    ptl_ct_event_t counted;
    for (size_t i = 0; i < length && writes; i++)
        memory[i] = pattern(i, seed);
    uint64_t start = spin_time_ps();
    for (size_t at = 0; at < length; at += piece.length) {
        piece = piece_at(address, length, at, unit);
        send_piece(writes, piece);
    }
    CHECK(writes ? PtlCTWait(done, expected_done, &counted) : PtlCTWait(bytes_read, expected_bytes, &counted));
    uint64_t time = spin_time_ps() - start;
    if (counted.failure != 0 || counted.success != (writes ? expected_done : expected_bytes))
        fail("%zu answers and %zu failures", (size_t)counted.success, (size_t)counted.failure);
    for (size_t at = 0; at < length && !writes; at += piece.length) {
        piece = piece_at(address, length, at, unit);
        if (memcmp(memory + VOLUME + at, volume + piece.node * NODE_BYTES + piece.offset, piece.length) != 0)
            fail("wrong data read at %zu", address + at);
    }
    return time;
}

/* Ends the nodes' service, so that they can check their memory. */
static void stop(void) {
    for (ptl_rank_t node = PARITY; node < DATA + NODES && !handlers; node++)
        CHECK(PtlPut(client_md, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = node}, PT, STOP, 0, NULL, 0));
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static unsigned seed; /* seed of the next write's data */

/* Does the nodes' part of a run of requests whose final data is already known. The client may be done while a node's
 * card still reports the end of messages to its host, so PtlPTDisable waits for them. */
static void node_part(void) {
    if (!handlers)
        serve();
    CHECK(spin_barrier());
    CHECK(PtlPTDisable(ni, PT));
    check_memory();
    CHECK(PtlPTEnable(ni, PT));
}

static void write_bytes(size_t bytes) {
    uint64_t time = 0;
    if (bytes < NODES || bytes % NODES != 0 || bytes > VOLUME)
        fail("--bytes: %zu is no multiple of %d up to %d", bytes, NODES, VOLUME);
    CHECK(spin_barrier());
    for (int round = 0; round <= WARM_UP; round++) {
        write_plainly(0, bytes, bytes / NODES, ++seed);
        if (rank == CLIENT)
            time = request(true, 0, bytes, bytes / NODES, seed);
    }
    if (rank != CLIENT)
        return node_part();
    stop();
    CHECK(spin_barrier());
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,\"data_ok\":true}\n", modes[mode], bytes,
           (unsigned long long)time);
}

static void replay(unsigned number, const struct spc_trace *trace) {
    uint64_t time = 0, bytes = 0, writes = 0;
    CHECK(spin_barrier());
    for (size_t i = 0; i < trace->count; i++) {
        const struct spc_request *r = &trace->requests[i];
        if (r->bytes == 0 || r->bytes > VOLUME)
            fail("request %zu has %u bytes; the volume has %d", i + 1, r->bytes, VOLUME);
        /* The volume is smaller than the traced one: addresses wrap around. */
        size_t address = ((uint64_t)r->asu * NODE_BYTES + r->lba * SPC_BLOCK) % VOLUME;
        if (address + r->bytes > VOLUME)
            address = VOLUME - r->bytes;
        if (r->write)
            write_plainly(address, r->bytes, STRIPE_UNIT, ++seed);
        if (rank == CLIENT)
            time += request(r->write, address, r->bytes, STRIPE_UNIT, seed);
        bytes += r->bytes;
        writes += r->write;
    }
    if (rank != CLIENT)
        return node_part();
    stop();
    CHECK(spin_barrier());
    printf("{\"mode\":\"%s\",\"trace\":%u,\"requests\":%zu,\"writes\":%llu,\"request_bytes\":%llu,\"time_ps\":%llu,"
           "\"data_ok\":true}\n",
           modes[mode], number, trace->count, (unsigned long long)writes, (unsigned long long)bytes,
           (unsigned long long)time);
}

/* Starts this rank and prepares it for requests. Every size and every trace is measured on cards that have just been
 * started: the HPUs' branch predictors remember what ran before, and by a few cycles at the beginning they change the
 * order in which handlers get the locks. */
static void begin(void) {
    const ptl_process_t parity = {.rank = PARITY};
    enum raid5_message message = rank == PARITY ? RAID5_DIFF : RAID5_WRITE;
    start(PT, !handlers && rank != CLIENT ? &eq : NULL);
    if (rank == CLIENT)
        return prepare_client();
    if (reads == GET && rank >= DATA)
        append_plain(PT, RAID5_READ, PTL_RANK_ANY, memory, NODE_BYTES, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE,
                     PTL_CT_NONE);
    if (!handlers)
        return prepare_node();
    const int packets = (int)(MOST / limits.max_payload_size);
    CHECK(mode == LISTING ? listing_serve(ni, PT, message, memory, NODE_BYTES, parity, packets)
                          : raid5_serve(ni, PT, message, memory, NODE_BYTES, parity, packets));
    if (rank >= DATA)
        CHECK(raid5_serve_reads(ni, PT, memory, NODE_BYTES));
}

static void measure_write(size_t bytes) {
    begin();
    write_bytes(bytes);
    finish();
}

static void measure_trace(unsigned number, struct spc_trace trace) {
    begin();
    replay(number, &trace);
    finish();
    free(trace.requests);
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = argument(argc, argv, "--bytes"), *traces = argument(argc, argv, "--traces");
    const char *file = argument(argc, argv, "--file"), *requests = argument(argc, argv, "--requests");
    const char *way = argument(argc, argv, "--reads"), *piece = argument(argc, argv, "--piece");
    size_t number, count = 1000;
    if (spin_size() != DATA + NODES)
        fail("this needs %d ranks", DATA + NODES);
    if (requests != NULL)
        next_number(&requests, &count);
    if (piece != NULL && (!next_number(&piece, &longest) || longest == 0))
        fail("--piece: expected at least 1");
    if (way != NULL)
        reads = (enum reads)choice(way, ways_to_read, READS, usage);

    rank = spin_rank();
    handlers = mode == SPIN || mode == LISTING;
    volume = allocate(VOLUME);
    memory = allocate(rank == CLIENT ? 2 * VOLUME : NODE_BYTES);
    staged = allocate(rank == PARITY ? VOLUME : NODE_BYTES);
    diff = allocate(NODE_BYTES);
    for (size_t i = 0; i < VOLUME; i++)
        volume[i] = pattern(i, 0);
    for (size_t i = 0; i < NODE_BYTES && rank != CLIENT; i++)
        memory[i] = expected(i);

    while (sizes != NULL && next_number(&sizes, &number))
        measure_write(number);
    while (traces != NULL && next_number(&traces, &number))
        measure_trace((unsigned)number, spc_generate((unsigned)number, count));
    if (file != NULL)
        measure_trace(0, spc_read(file));
    return 0;
}
