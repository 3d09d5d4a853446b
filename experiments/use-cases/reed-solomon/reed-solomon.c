/* SPDX-License-Identifier: Apache-2.0 */
/* Reed-Solomon storage (sPIN §5.3 has RAID-5): rank 0 is the client, ranks 1 to k hold the data, the next m the parities.
 *
 *   --mode rdma     the CPUs of the nodes compute differences, products and parities, and forward acknowledgements
 *   --mode spin     handlers on the cards do this
 *   --bytes N,N,…   writes of N bytes, a k-th to each data node
 * and perhaps
 *   --data K        number of data nodes, 4 if not given; further ranks are idle
 *   --parities M    number of parity nodes, 2 if not given; 1 is RAID-5
 *   --piece N       messages of a write have at most N bytes
 *   --cores N       cores that share the products of a node's CPU ideally
 *   --gf-mb N       megabytes that a core multiplies in a second
 *
 * Prints one JSON object a line: {"mode", "bytes", "time_ps", "rebuild_ps", "rebuilt", "data_ok"}. The time of a write runs from the first
 * put until the client has seen all acknowledgements. Then the client replaces nodes: for each set of m nodes it rebuilds the first
 * bytes of each lost one from the others, and compares them with the written data. `rebuild_ps` is the time to rebuild all data
 * written to the first data node while m nodes are lost. At the end every node compares its memory with a serial computation.
 *
 * When a node dies during a write, the client makes the survivors agree again (`repair`), reports the outcome of the write, and fails. */
#include "../../common/common.h"
#include <handlers/reed-solomon/reed_solomon.h>

enum { PT = 3, STOP = 99, CLIENT = 0, FIRST = 1, PATIENCE_MS = 20 };
enum { NODE_BYTES = 1 << 18 }; /* memory of a node */
enum { REBUILT = 2048 };       /* bytes of a piece that is rebuilt */
enum { CHECKED = 512 };        /* bytes that are rebuilt of each node of each set of lost nodes */

enum mode { RDMA, SPIN, MODES };
static const char *const modes[MODES] = {"rdma", "spin"};
static const char usage[] =
    "reed-solomon --mode rdma|spin --bytes N,N,... [--data K] [--parities M] [--piece N] [--cores N] [--gf-mb N]";

static enum mode mode;
static uint32_t rank, k, m;
static size_t piece, cores, gf_mb;
static size_t written;        /* bytes that each data node gets */
static unsigned char *memory; /* of this node; the client's has the sent data, then the rebuilt data */
static unsigned char *staged; /* at a CPU: received data; a parity node has one area for each data node */
static unsigned char *diff[REED_SOLOMON_PARITIES];
static ptl_handle_md_t diff_md[REED_SOLOMON_PARITIES], byte_md;
static ptl_handle_eq_t eq;

/* ---- Plain computation ------------------------------------------------------------------------------------------- */

/* The byte at `offset` of data node `node` after the write. */
static unsigned char data_byte(uint32_t node, size_t offset) {
    return offset < written ? pattern(offset, node + 1) : pattern(offset, node + 100);
}

static uint8_t products[256][256], powers[255]; /* products of all pairs, bit by bit; powers of 2 */

static void fill_products(void) {
    for (unsigned one = 0; one < 256; one++)
        for (unsigned other = 0; other < 256; other++) {
            unsigned product = 0;
            for (int bit = 7; bit >= 0; bit--)
                product = product << 1 ^ (product & 0x80 ? 0x11d : 0) ^ (other >> bit & 1 ? one : 0);
            products[one][other] = (uint8_t)product;
        }
    powers[0] = 1;
    for (int i = 1; i < 255; i++)
        powers[i] = products[2][powers[i - 1]];
}

/* The byte at `offset` of any node. */
static unsigned char expected(uint32_t node, size_t offset) {
    unsigned char sum = 0;
    if (node < k)
        return data_byte(node, offset);
    for (uint32_t i = 0; i < k; i++)
        sum ^= products[powers[i * (node - k) % 255]][data_byte(i, offset)];
    return sum;
}

static void check_memory(void) {
    for (size_t i = 0; i < NODE_BYTES; i++)
        if (memory[i] != expected(rank - FIRST, i))
            fail("byte %zu of node %u is %u, not %u", i, rank - FIRST, memory[i], expected(rank - FIRST, i));
}

/* ---- Nodes whose CPUs do the work -------------------------------------------------------------------------------- */

static void send_from(ptl_handle_md_t md, size_t at, size_t length, ptl_rank_t to, ptl_match_bits_t bits,
                      ptl_hdr_data_t data) {
    CHECK(PtlPut(md, at, length, PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, PT, bits, at, NULL, data));
}

/* Charges the CPU for multiplying `bytes` bytes while it reads and writes memory. */
static void charge(size_t bytes, size_t read, size_t written_bytes) {
    uint64_t begin = spin_time_ps();
    spin_host_memory(read, written_bytes);
    uint64_t ns = bytes * 1000 / gf_mb / cores, passed = (spin_time_ps() - begin) / 1000;
    if (ns > passed)
        spin_host_compute(ns - passed);
}

/* Replaces old data by the staged new data, and sends the difference times its factor to each parity node. */
static void update_data(const ptl_event_t *event) {
    size_t at = event->remote_offset, length = event->mlength;
    for (size_t i = at; i < at + length; i++) {
        unsigned char change = memory[i] ^ staged[i];
        memory[i] = staged[i];
        for (uint32_t parity = 0; parity < m; parity++)
            diff[parity][i] = products[powers[(rank - FIRST) * parity % 255]][change];
    }
    charge((m - 1) * length, 2 * length, (1 + m) * length);
    for (uint32_t parity = 0; parity < m; parity++)
        send_from(diff_md[parity], at, length, FIRST + k + parity, RAID5_DIFF, event->initiator.rank);
}

/* Adds a staged difference to the parity. */
static void update_parity(const ptl_event_t *event) {
    size_t at = event->remote_offset, length = event->mlength;
    const unsigned char *from = staged + (event->initiator.rank - FIRST) * NODE_BYTES;
    for (size_t i = at; i < at + length; i++)
        memory[i] ^= from[i];
    spin_host_memory(2 * length, length);
    send_from(byte_md, 0, 1, event->initiator.rank, RAID5_ACK, event->hdr_data);
}

/* Serves requests until the client sends a stop message. */
static void serve(void) {
    ptl_event_t event;
    for (;;) {
        int rc = PtlEQWait(eq, &event);
        if (rc == PTL_FAIL)
            fail("the card of this node is dead: its data is lost");
        CHECK(rc);
        if (event.ni_fail_type != PTL_NI_OK)
            fail("event %d failed: %d", event.type, event.ni_fail_type);
        if (event.type != PTL_EVENT_PUT)
            continue;
        switch (event.match_bits) {
        case RAID5_WRITE: update_data(&event); break;
        case RAID5_DIFF: update_parity(&event); break;
        case RAID5_ACK: send_from(byte_md, 0, 1, (ptl_rank_t)event.hdr_data, RAID5_DONE, 0); break;
        default: return;
        }
    }
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

static void prepare_cpu(void) {
    static unsigned char byte;
    byte_md = bind_memory(&byte, sizeof byte, 0, PTL_CT_NONE);
    append_plain(PT, STOP, PTL_RANK_ANY, NULL, 0, PTL_ME_OP_PUT, PTL_CT_NONE);
    if (rank >= FIRST + k) {
        for (uint32_t node = 0; node < k; node++)
            append_plain(PT, RAID5_DIFF, FIRST + node, staged + node * NODE_BYTES, NODE_BYTES, PTL_ME_OP_PUT,
                         PTL_CT_NONE);
        return;
    }
    for (uint32_t parity = 0; parity < m; parity++)
        diff_md[parity] = bind_memory(diff[parity], NODE_BYTES, 0, PTL_CT_NONE);
    append_plain(PT, RAID5_WRITE, PTL_RANK_ANY, staged, NODE_BYTES, PTL_ME_OP_PUT, PTL_CT_NONE);
    append_plain(PT, RAID5_ACK, PTL_RANK_ANY, &byte, sizeof byte, PTL_ME_OP_PUT, PTL_CT_NONE);
}

static void prepare_card(void) {
    const uint32_t packets = NODE_BYTES / (uint32_t)limits.max_payload_size;
    ptl_process_t parity[REED_SOLOMON_PARITIES];
    for (uint32_t i = 0; i < m; i++)
        parity[i].rank = FIRST + k + i;
    if (rank >= FIRST + k) { /* every packet of every data node is a message */
        CHECK(raid5_serve(ni, PT, RAID5_DIFF, memory, NODE_BYTES, parity[0], (int)(k * packets)));
        return;
    }
    CHECK(reed_solomon_serve(ni, PT, memory, NODE_BYTES, rank - FIRST, parity, m, (int)packets));
    CHECK(raid5_serve_reads(ni, PT, memory, NODE_BYTES));
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

/* Waits until `ct` has counted `count`; returns false when answers fail or are missing (see `*counted`). */
static bool is_answered(ptl_handle_ct_t ct, ptl_size_t count, ptl_ct_event_t *counted) {
    unsigned which;
    *counted = (ptl_ct_event_t){0, 0};
    int rc = PtlCTPoll(&ct, &count, 1, PATIENCE_MS, counted, &which);
    if (rc == PTL_FAIL)
        fail("the card of the client is dead");
    if (rc == PTL_CT_NONE_REACHED)
        CHECK(PtlCTGet(ct, counted));
    return counted->failure == 0 && counted->success >= count;
}

static void incomplete(const char *what, ptl_ct_event_t counted, ptl_size_t count) {
    fail("%s: %zu of %zu answers came and %zu failed: a node is dead, or messages were lost; the write or rebuild is "
         "incomplete",
         what, (size_t)counted.success, (size_t)count, (size_t)counted.failure);
}

/* Waits until `ct` has counted `count`, or fails. */
static void await(ptl_handle_ct_t ct, ptl_size_t count, const char *what) {
    ptl_ct_event_t counted;
    if (!is_answered(ct, count, &counted))
        incomplete(what, counted, count);
}

/* ---- Repair ------------------------------------------------------------------------------------------------------ */

/* Gets or puts the part of a node that a write changes. Returns false when the node does not answer. */
static bool move_block(uint32_t node, unsigned char *block, bool is_put) {
    ptl_process_t to = {.rank = FIRST + node};
    ptl_ct_event_t counted;
    ptl_handle_ct_t moved;
    CHECK(PtlCTAlloc(ni, &moved));
    ptl_handle_md_t md = bind_memory(block, written, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK, moved);
    if (is_put)
        CHECK(PtlPut(md, 0, written, PTL_CT_ACK_REQ, to, PT, REED_SOLOMON_BLOCK, 0, NULL, 0));
    else
        CHECK(PtlGet(md, 0, written, to, PT, REED_SOLOMON_BLOCK, 0, NULL));
    bool is_moved = is_answered(moved, 1, &counted);
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(moved));
    return is_moved;
}

/* Rebuilds a data node from the survivors' blocks, and reports the number of new bytes. */
static void restore(uint32_t dead, uint32_t lost, unsigned char *const *block) {
    uint32_t survivors[REED_SOLOMON_DATA];
    uint8_t factors[REED_SOLOMON_DATA];
    size_t fresh = 0, old = 0;
    if (!reed_solomon_solve(k, m, dead, lost, survivors, factors))
        fail("node %u cannot be rebuilt", lost);
    for (size_t i = 0; i < written; i++) {
        block[lost][i] = 0;
        for (uint32_t j = 0; j < k; j++)
            block[lost][i] ^= products[factors[j]][block[survivors[j]][i]];
        fresh += block[lost][i] == pattern(i, lost + 1);
        old += block[lost][i] != pattern(i, lost + 1) && block[lost][i] == pattern(i, lost + 100);
    }
    if (fresh + old != written)
        fail("repair: %zu bytes of node %u are neither the old ones nor the new ones", written - fresh - old, lost);
    fprintf(stderr, "repair: node %u is rebuilt: %zu bytes are new, %zu are old\n", lost, fresh, old);
}

/* Makes the survivors of an incomplete write agree (the “write hole”). All messages have arrived or were given up by
 * now, so every survivor's difference is in every surviving parity, but a dead data node's may be in some parities
 * and not in others. One parity alone is right with or without it: the dead node is rebuilt from the data nodes and
 * the first parity, and the other parities are computed again. When two data nodes died, two parities would have to
 * agree, and nobody knows whether they do. */
static void repair(void) {
    unsigned char *block[REED_SOLOMON_DATA + REED_SOLOMON_PARITIES], *parity = allocate(written);
    uint32_t dead = 0, data_mask = (1u << k) - 1, changed = 0;
    for (uint32_t node = 0; node < k + m; node++) {
        block[node] = allocate(written);
        if (!move_block(node, block[node], false)) {
            fprintf(stderr, "repair: node %u is dead\n", node);
            dead |= 1u << node;
        }
    }
    uint32_t lost = (uint32_t)__builtin_ctz(dead | 1u << 31);
    if ((uint32_t)__builtin_popcount(dead) > m || __builtin_popcount(dead & data_mask) > 1)
        fail("repair: bytes 0 to %zu of the dead data nodes are lost: %d nodes died, and the parities may differ in "
             "what they "
             "have of them",
             written - 1, __builtin_popcount(dead));
    if ((dead & data_mask) != 0)
        restore(dead, lost, block);
    for (uint32_t node = k; node < k + m; node++) {
        if (dead >> node & 1)
            continue;
        for (size_t i = 0; i < written; i++) {
            parity[i] = 0;
            for (uint32_t j = 0; j < k; j++)
                parity[i] ^= products[powers[j * (node - k) % 255]][block[j][i]];
        }
        if (memcmp(parity, block[node], written) == 0)
            continue;
        changed++;
        if (!move_block(node, parity, true) || !move_block(node, block[node], false) ||
            memcmp(parity, block[node], written) != 0)
            fail("repair: node %u has not taken its new parity", node);
    }
    fprintf(stderr, "repair: %u of %u parities had to be computed again; all survivors agree\n", changed,
            m - (uint32_t)__builtin_popcount(dead >> k));
}

/* Writes; returns the time until everything is acknowledged. */
static uint64_t write_data(void) {
    static unsigned char byte;
    ptl_size_t answers = 0;
    ptl_handle_ct_t done;
    ptl_handle_md_t md = bind_memory(memory, k * NODE_BYTES, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &done));
    append_plain(PT, RAID5_DONE, PTL_RANK_ANY, &byte, sizeof byte,
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, done);
    CHECK(spin_barrier());
    uint64_t begin = spin_time_ps();
    for (size_t at = 0, length; at < written; at += length) {
        length = written - at < piece ? written - at : piece;
        for (uint32_t node = 0; node < k; node++) {
            CHECK(PtlPut(md, node * NODE_BYTES + at, length, PTL_NO_ACK_REQ, (ptl_process_t){.rank = FIRST + node}, PT,
                         RAID5_WRITE, at, NULL, CLIENT));
            answers += m * (mode == SPIN ? raid5_dones(length, limits.max_payload_size) : 1);
        }
    }
    ptl_ct_event_t counted;
    if (!is_answered(done, answers, &counted)) {
        repair();
        incomplete("write", counted, answers);
    }
    return spin_time_ps() - begin;
}

/* Rebuilds the first `bytes` bytes of node `lost` by the card. */
static void rebuild_by_card(uint32_t dead, uint32_t lost, unsigned char *to, size_t bytes) {
    ptl_handle_ct_t rebuilt;
    ptl_handle_me_t entry;
    ptl_hpu_md_h hpu_memory;
    ptl_handle_md_t md = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    size_t most = limits.max_payload_size < REBUILT ? limits.max_payload_size : REBUILT, requests = 0;
    CHECK(PtlCTAlloc(ni, &rebuilt));
    CHECK(reed_solomon_replace(ni, PT, to, NODE_BYTES, k, m, dead, lost, FIRST, rebuilt, &entry, &hpu_memory));
    for (size_t at = 0; at < bytes; at += most, requests++)
        CHECK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = CLIENT}, PT, REED_SOLOMON_REBUILD, at, NULL,
                     bytes - at < most ? bytes - at : most));
    await(rebuilt, requests, "rebuild");
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlHPUFreeMem(&hpu_memory));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(rebuilt));
}

/* Does the same by the CPU: it gets all survivors' data, piece by piece, and computes while the next pieces arrive. */
static void rebuild_by_cpu(uint32_t dead, uint32_t lost, unsigned char *to, size_t bytes) {
    uint32_t survivors[REED_SOLOMON_DATA];
    uint8_t factors[REED_SOLOMON_DATA];
    ptl_handle_ct_t got;
    CHECK(PtlCTAlloc(ni, &got));
    ptl_handle_md_t md = bind_memory(staged, k * NODE_BYTES, PTL_MD_EVENT_CT_REPLY, got);
    if (!reed_solomon_solve(k, m, dead, lost, survivors, factors))
        fail("node %u cannot be rebuilt", lost);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = bytes - at < piece ? bytes - at : piece;
        for (uint32_t i = 0; i < k; i++)
            CHECK(PtlGet(md, i * NODE_BYTES + at, length, (ptl_process_t){.rank = FIRST + survivors[i]}, PT,
                         REED_SOLOMON_BLOCK, at, NULL));
    }
    for (size_t at = 0, length, gets = k; at < bytes; at += length, gets += k) {
        length = bytes - at < piece ? bytes - at : piece;
        await(got, gets, "rebuild");
        for (size_t j = at; j < at + length; j++) {
            to[j] = 0;
            for (uint32_t i = 0; i < k; i++)
                to[j] ^= products[factors[i]][staged[i * NODE_BYTES + j]];
        }
        charge(k * length, k * length, length);
    }
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(got));
}

/* Rebuilds bytes of a lost node and checks them; returns the time. */
static uint64_t rebuild(uint32_t dead, uint32_t lost, size_t bytes) {
    unsigned char *to = memory + k * NODE_BYTES;
    memset(to, 0, NODE_BYTES);
    uint64_t begin = spin_time_ps();
    if (mode == SPIN)
        rebuild_by_card(dead, lost, to, bytes);
    else
        rebuild_by_cpu(dead, lost, to, bytes);
    uint64_t time = spin_time_ps() - begin;
    for (size_t i = 0; i < bytes; i++)
        if (to[i] != expected(lost, i))
            fail("byte %zu of node %u, rebuilt without the nodes 0x%x, is %u, not %u", i, lost, dead, to[i],
                 expected(lost, i));
    return time;
}

/* Rebuilds every node that is lost in every set of m lost nodes; returns the number of sets. */
static uint32_t rebuild_all(void) {
    uint32_t sets = 0;
    for (uint32_t dead = 0; dead < 1u << (k + m); dead++) {
        if ((uint32_t)__builtin_popcount(dead) != m)
            continue;
        sets++;
        for (uint32_t lost = 0; lost < k + m; lost++)
            if (dead >> lost & 1)
                rebuild(dead, lost, written < CHECKED ? written : CHECKED);
    }
    return sets;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static void client_part(void) {
    for (uint32_t node = 0; node < k; node++)
        for (size_t i = 0; i < written; i++)
            memory[node * NODE_BYTES + i] = pattern(i, node + 1);
    uint64_t time = write_data();
    uint64_t rebuild_time = rebuild((1u << m) - 1, 0, written);
    uint32_t sets = rebuild_all();
    ptl_handle_md_t md = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    for (uint32_t node = 0; node < k + m && mode == RDMA; node++)
        send_from(md, 0, 0, FIRST + node, STOP, 0);
    CHECK(spin_barrier());
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,\"rebuild_ps\":%llu,\"rebuilt\":%u,\"data_ok\":true}\n",
           modes[mode], k * written, (unsigned long long)time, (unsigned long long)rebuild_time, sets);
}

static void node_part(void) {
    if (mode == RDMA)
        prepare_cpu();
    else
        prepare_card();
    CHECK(reed_solomon_serve_blocks(ni, PT, memory, NODE_BYTES));
    CHECK(spin_barrier());
    if (mode == RDMA)
        serve();
    CHECK(spin_barrier());
    int rc = PtlPTDisable(ni, PT); /* waits until the card has told the host of the last message */
    if (rc == PTL_FAIL)
        fail("the card of this node is dead: its data is lost");
    CHECK(rc);
    check_memory();
}

static void measure(size_t bytes) {
    if (bytes % k != 0 || bytes / k > NODE_BYTES || bytes / k % 4 != 0)
        fail("--bytes %zu: expected a multiple of %u, at most %u", bytes, 4 * k, k * NODE_BYTES);
    written = 0;
    for (size_t i = 0; i < NODE_BYTES && rank != CLIENT && rank < FIRST + k + m; i++)
        memory[i] = expected(rank - FIRST, i);
    written = bytes / k;
    start(PT, mode == RDMA && rank != CLIENT ? &eq : NULL);
    if (rank == CLIENT) {
        client_part();
    } else if (rank < FIRST + k + m) {
        node_part();
    } else {
        CHECK(spin_barrier());
        CHECK(spin_barrier());
    }
    finish();
}

static size_t number_or(int argc, char **argv, const char *name, const char *otherwise) {
    const char *text = option_or(argc, argv, name, otherwise);
    size_t number = 0;
    if (!next_number(&text, &number) || number == 0) {
        fprintf(stderr, "%s: expected at least 1\n", name);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = option(argc, argv, "--bytes", usage);
    m = (uint32_t)number_or(argc, argv, "--parities", "2");
    piece = number_or(argc, argv, "--piece", "1048576");
    cores = number_or(argc, argv, "--cores", "1");
    gf_mb = number_or(argc, argv, "--gf-mb", "10000");
    rank = (uint32_t)spin_rank();
    k = (uint32_t)number_or(argc, argv, "--data", "4");
    if (m > REED_SOLOMON_PARITIES || k > REED_SOLOMON_DATA || (uint32_t)spin_size() < FIRST + k + m)
        fail("%d ranks, --data %u, --parities %u: expected at most %d and %d, and a rank for each and the client",
             spin_size(), k, m, REED_SOLOMON_DATA, REED_SOLOMON_PARITIES);
    fill_products();
    memory = allocate((rank == CLIENT ? k + 1 : 1) * NODE_BYTES);
    staged = allocate(k * NODE_BYTES);
    for (uint32_t i = 0; i < m; i++)
        diff[i] = allocate(NODE_BYTES);
    for (size_t bytes; next_number(&sizes, &bytes);)
        measure(bytes);
    return 0;
}
