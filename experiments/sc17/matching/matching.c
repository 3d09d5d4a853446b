/* SPDX-License-Identifier: Apache-2.0 */
/* Message matching (sPIN §5.1, Fig. 5b): rank 0 receives a message of another rank and computes meanwhile.
 *
 *   --mode rdma       every message lands in a bounce buffer; the CPU matches it, and copies it or gets its data
 *   --mode triggered  the card matches; a triggered get fetches the rest of a long message, whose source is known
 *   --mode barrett    as triggered, for a receive from any source: an entry and a triggered get for each of them
 *   --mode spin       the card matches; a header handler fetches the rest of a long message
 *   --case early      the receive is posted before the message is sent, then the CPU computes, then it waits
 *   --case late       the CPU computes while the message arrives, then it receives
 *   --compute yes|half|no  yes: for longer than the message travels; half: for about half of that time; no: the CPU
 *                     waits (early), or looks after a while (late)
 *   --bytes N,N,…     sizes; up to 8 KiB a message is short (eager), beyond long (rendezvous)
 *   --ranks N,N,…     numbers of ranks, the receiver among them, from which a message may come; ranks 1 and 2 send
 *
 * Prints one JSON object a line for each size and number of ranks: {"mode", "case", "bytes", "ranks", "entries",
 * "triggered", "copied", "time_ps", "data_ok"}. The time is that of posting and completing the receive, without the time of
 * the computation. "entries" and "triggered" are the matching entries and triggered operations that it needs,
 * "copied" the bytes that the CPU copies. */
#include <handlers/matching/matching.h>

#include "../../common/common.h"

enum { PT = 3 };
enum { RECEIVER = 0, SENDERS = 2 }; /* ranks 1 and 2 send in turn, rank 1 alone if it is the only source */
enum { MAX_SOURCES = 1023 };
enum { EAGER = 8192, MAX_BYTES = 1 << 20 };
enum { PEEK = 1 }; /* bytes beyond EAGER that make a triggered-get message long */
enum { TAG = 7 };
enum { WARM_UP = 2, ROUNDS = WARM_UP + 2 };         /* branch predictors of the HPUs settle, for both senders */
static const ptl_match_bits_t EXPOSED = 1ull << 63; /* match bits of data for gets; low bits: message number */

enum mode { RDMA, TRIGGERED, BARRETT, SPIN, MODES };
enum when { EARLY, LATE, CASES };
static const char *const modes[MODES] = {"rdma", "triggered", "barrett", "spin"};
static const char *const cases[CASES] = {"early", "late"};
enum compute { NONE, ALL, HALF, AMOUNTS };
static const char *const amounts[AMOUNTS] = {"no", "yes", "half"};
static const char usage[] = "matching --mode rdma|triggered|barrett|spin --case early|late --compute yes|half|no "
                            "--bytes N[,N...] --ranks N[,N...]";

static enum mode mode;
static enum when when;
static enum compute compute;
static ptl_handle_eq_t eq;
static unsigned char *data;   /* the sender's message, and where the receive puts it */
static unsigned char *bounce; /* messages that arrive before their receive is posted (rdma: all messages) */
static ptl_handle_md_t data_md;
static ptl_handle_ct_t replies; /* replies to gets of the receiver's CPU and to triggered gets */
static ptl_size_t gets;

/* ---- Sender ------------------------------------------------------------------------------------------------------ */

/* Sends message `number`. */
static void send(size_t bytes, unsigned number) {
    struct matching_long header = {.total = bytes, .source_bits = EXPOSED | number};
    ptl_iovec_t first[] = {{&header, sizeof header}, {data, EAGER}}; /* first part of a long message */
    const ptl_process_t receiver = {.rank = RECEIVER};
    ptl_handle_me_t exposed;
    for (size_t i = 0; i < bytes; i++)
        data[i] = pattern(i, number);
    CHECK(spin_barrier()); /* the receiver is ready */
    if (bytes <= EAGER) {
        CHECK(PtlPut(data_md, 0, bytes, PTL_NO_ACK_REQ, receiver, PT, TAG, 0, NULL, 0));
        CHECK(spin_barrier()); /* it has been received */
        return;
    }
    ptl_me_t me = {.start = data,
                   .length = bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = RECEIVER,
                   .match_bits = EXPOSED | number,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &exposed));
    if (mode == TRIGGERED ||
        mode == BARRETT) { /* the message is longer than short ones, and the rest is at its final place */
        CHECK(PtlPut(data_md, 0, EAGER + PEEK, PTL_NO_ACK_REQ, receiver, PT, TAG, 0, NULL, number));
    } else {
        ptl_handle_md_t md;
        size_t part = mode == SPIN ? EAGER : 0; /* rdma: the data stays until its place is known */
        ptl_md_t pieces = {
            .start = first, .length = 2, .options = PTL_IOVEC, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        CHECK(PtlMDBind(ni, &pieces, &md));
        CHECK(PtlPut(md, 0, sizeof header + part, PTL_NO_ACK_REQ, receiver, PT, TAG, 0, NULL, number));
        CHECK(spin_barrier());
        CHECK(PtlMDRelease(md));
        CHECK(PtlMEUnlink(exposed));
        return;
    }
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(exposed));
}

/* ---- Receiver ---------------------------------------------------------------------------------------------------- */

/* Appends an entry for messages without a receive; with rdma for all messages. */
static ptl_handle_me_t expect_unexpected(void) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = bounce,
                   .length = ROUNDS * (EAGER + sizeof(struct matching_long)),
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE |
                              (mode == RDMA ? 0 : PTL_ME_EVENT_COMM_DISABLE),
                   .match_id.rank = PTL_RANK_ANY,
                   .ignore_bits = ~0ull,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlMEAppend(ni, PT, &me, mode == RDMA ? PTL_PRIORITY_LIST : PTL_OVERFLOW_LIST, NULL, &handle));
    return handle;
}

/* Objects of a receive for messages of one source, or of any. */
struct posted {
    ptl_handle_me_t entry;
    ptl_handle_ct_t arrived; /* triggered, barrett: bytes; spin: up to MATCHING_COMPLETE */
};

/* A receive that has been posted. */
struct receive {
    struct posted posted[MAX_SOURCES];
    unsigned entries, triggered; /* number of posted, and of triggered gets */
    size_t copied;               /* bytes */
    ptl_hpu_md_h hpu_memory;
    bool unexpected; /* the message arrived before the receive; `event` describes it */
    ptl_event_t event;
};
static struct receive receive;

/* Copies the data in the bounce buffer to its place. */
static void copy(const unsigned char *from, size_t bytes) {
    memcpy(data, from, bytes);
    spin_host_copy(bytes);
    receive.copied += bytes;
}

/* Gets the rest of a long message from its sender. */
static void fetch(ptl_process_t source, ptl_match_bits_t bits, size_t offset, size_t bytes) {
    CHECK(PtlGet(data_md, offset, bytes - offset, source, PT, bits, offset, NULL));
    await_count(replies, ++gets);
}

/* Waits for the next event of a message. */
static bool next_event(ptl_event_t *event) {
    int rc;
    while ((rc = PtlEQGet(eq, event)) == PTL_OK) {
        if (event->ni_fail_type != PTL_NI_OK)
            fail("event %d failed: %d", event->type, event->ni_fail_type);
        if (event->type == PTL_EVENT_PUT || event->type == PTL_EVENT_PUT_OVERFLOW)
            return true;
    }
    if (rc != PTL_EQ_EMPTY)
        fail("PtlEQGet returned %d", rc);
    return false;
}

/* Appends an entry for a message of `source` with TAG. */
static void post_entry(ptl_me_t me, ptl_process_t source) {
    struct posted *posted = &receive.posted[receive.entries++];
    CHECK(PtlCTAlloc(ni, &posted->arrived));
    me.ct_handle = posted->arrived;
    me.match_id = source;
    me.options |= PTL_ME_EVENT_CT_BYTES;
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &posted->entry));
}

/* Prepares a triggered get of the rest of a long message: it must name its source, and by message bits with a counter of
 * the source's messages the data that it wants. */
static void prepare_get(ptl_handle_ct_t arrived, ptl_process_t source, unsigned number) {
    receive.triggered++;
    CHECK(PtlTriggeredGet(data_md, EAGER + PEEK, MAX_BYTES - EAGER - PEEK, source, PT, EXPOSED | number, EAGER + PEEK,
                          NULL, arrived, EAGER + 1));
}

/* Appends an entry for a message of any source with TAG: a header handler reads the source, and gets the rest. */
static void post_handler(ptl_me_t me) {
    struct matching state = {.eager = EAGER, .room = MAX_BYTES};
    struct posted *posted = &receive.posted[receive.entries++];
    CHECK(PtlCTAlloc(ni, &posted->arrived));
    CHECK(PtlHPUAllocMem(sizeof state, ni, &receive.hpu_memory));
    me.ct_handle = posted->arrived;
    me.options |= PTL_ME_EVENT_COMM_DISABLE;
    me.hpu_memory = receive.hpu_memory;
    me.hpu_initial_state = &state;
    me.hpu_initial_state_length = sizeof state;
    me.user_hdr_size = sizeof(struct matching_long);
    me.header_handler = matching_header;
    me.payload_handler = matching_payload;
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &posted->entry));
}

/* Posts a receive of `bytes` bytes from `source`; only triggered gets use the source. */
static void post(ptl_process_t source, unsigned sources, unsigned number, size_t bytes) {
    const ptl_me_t me = {.start = data,
                         .length = MAX_BYTES,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
                                    PTL_ME_EVENT_UNLINK_DISABLE,
                         .match_id.rank = PTL_RANK_ANY,
                         .match_bits = TAG,
                         .hpu_memory = PTL_INVALID_HANDLE};
    receive = (struct receive){.hpu_memory = PTL_INVALID_HANDLE, .event.type = PTL_EVENT_LINK};
    const ptl_rank_t first = mode == TRIGGERED ? source.rank : 1, last = mode == TRIGGERED ? source.rank : sources;
    const bool triggers = mode == TRIGGERED || mode == BARRETT;
    for (ptl_rank_t rank = first; triggers && rank <= last; rank++)
        post_entry(me, (ptl_process_t){.rank = rank});
    if (mode == SPIN)
        post_handler(me);
    receive.unexpected = mode != RDMA && when == LATE && next_event(&receive.event);
    /* A message that has already arrived is fetched at once. */
    for (ptl_rank_t rank = first; triggers && bytes > EAGER && !receive.unexpected && rank <= last; rank++)
        prepare_get(receive.posted[rank - first].arrived, (ptl_process_t){.rank = rank}, number);
}

/* Waits until the message is in `data`; afterwards `release` frees the resources of the receive. */
static void complete(size_t bytes) {
    ptl_event_t *event = &receive.event;
    if (mode == SPIN && !receive.unexpected) {
        await_count(receive.posted[0].arrived, MATCHING_COMPLETE);
        return;
    }
    while (!receive.unexpected && event->type != PTL_EVENT_PUT) {
        CHECK(PtlEQWait(eq, event));
        if (event->ni_fail_type != PTL_NI_OK)
            fail("event %d failed: %d", event->type, event->ni_fail_type);
    }
    bool is_long = mode == RDMA ? event->hdr_data != 0 : event->mlength > EAGER;
    bool triggered = mode == TRIGGERED || mode == BARRETT;
    struct matching_long header;
    if (!is_long) {
        if (mode == RDMA || receive.unexpected)
            copy(event->start, event->mlength);
    } else if (triggered && !receive.unexpected) {
        await_count(replies, ++gets);
    } else if (triggered) {
        copy(event->start, event->mlength);
        fetch(event->initiator, EXPOSED | event->hdr_data, EAGER + PEEK, bytes);
    } else {
        memcpy(&header, event->start, sizeof header);
        size_t part = event->mlength - sizeof header;
        if (part > 0)
            copy((unsigned char *)event->start + sizeof header, part);
        fetch(event->initiator, header.source_bits, part, header.total);
    }
}

/* Frees the resources of the receive. An entry that took a message, expected or not, is already unlinked. */
static void release(ptl_process_t source) {
    ptl_event_t event;
    while (next_event(&event))
        fail("a message too many");
    for (unsigned i = 0; i < receive.entries; i++) {
        if (mode == BARRETT && i + 1 != source.rank)
            CHECK(PtlMEUnlink(receive.posted[i].entry));
        CHECK(PtlCTFree(receive.posted[i].arrived)); /* and a triggered get that has not begun */
    }
    if (receive.hpu_memory != PTL_INVALID_HANDLE)
        CHECK(PtlHPUFreeMem(&receive.hpu_memory));
}

/* The rank that sends message `number`. */
static ptl_process_t sender(unsigned sources, unsigned number) {
    return (ptl_process_t){.rank = 1 + number % (sources < SENDERS ? sources : SENDERS)};
}

/* Receives message `number`; returns the time that the receive itself took. */
static uint64_t receive_message(size_t bytes, unsigned sources, unsigned number) {
    const ptl_process_t source = sender(sources, number);
    /* The wire needs 20 ps for a byte, everything else less than 5 µs. */
    const uint64_t compute_ns = compute == HALF ? bytes / 100 : 5000 + bytes / 10;
    uint64_t posted = 0;
    memset(data, 0, bytes);
    if (when == EARLY) {
        uint64_t start = spin_time_ps();
        post(source, sources, number, bytes);
        posted = spin_time_ps() - start;
    }
    CHECK(spin_barrier());
    uint64_t start = spin_time_ps(), computed = 0;
    if (compute != NONE || when == LATE) {
        spin_host_compute(compute_ns);
        computed = spin_time_ps() - start;
    }
    if (when == LATE)
        post(source, sources, number, bytes);
    complete(bytes);
    uint64_t time = posted + spin_time_ps() - start - computed;
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != pattern(i, number))
            fail("wrong byte %zu of %zu", i, bytes);
    CHECK(spin_barrier());
    release(source);
    return time;
}

/* All ranks: receives messages of `bytes` bytes from one of the first `sources` ranks but the receiver. */
static void measure(size_t bytes, unsigned sources) {
    static unsigned number;
    const ptl_rank_t rank = (ptl_rank_t)spin_rank();
    ptl_handle_me_t unexpected = PTL_INVALID_HANDLE;
    uint64_t time = 0;
    if (rank == RECEIVER)
        unexpected = expect_unexpected();
    for (int round = 0; round < ROUNDS; round++) {
        number++;
        if (rank == RECEIVER)
            time = receive_message(bytes, sources, number);
        else if (rank == sender(sources, number).rank)
            send(bytes, number);
        else
            for (int barrier = 0; barrier < 2; barrier++)
                CHECK(spin_barrier());
    }
    if (rank != RECEIVER)
        return;
    CHECK(PtlMEUnlink(unexpected));
    printf("{\"mode\":\"%s\",\"case\":\"%s\",\"bytes\":%zu,\"ranks\":%u,\"entries\":%u,\"triggered\":%u,"
           "\"copied\":%zu,\"time_ps\":%llu,\"data_ok\":true}\n",
           modes[mode], cases[when], bytes, sources + 1, receive.entries, receive.triggered, receive.copied,
           (unsigned long long)time);
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    when = (enum when)choice(option(argc, argv, "--case", usage), cases, CASES, usage);
    compute = (enum compute)choice(option(argc, argv, "--compute", usage), amounts, AMOUNTS, usage);
    const char *sizes = option(argc, argv, "--bytes", usage), *all_ranks = option(argc, argv, "--ranks", usage);
    size_t bytes, ranks;

    start(PT, spin_rank() == RECEIVER ? &eq : NULL);
    CHECK(PtlCTAlloc(ni, &replies));
    data = allocate(MAX_BYTES);
    data_md = bind_memory(data, MAX_BYTES, spin_rank() == RECEIVER ? PTL_MD_EVENT_CT_REPLY : 0, replies);
    if (spin_rank() == RECEIVER)
        bounce = allocate(ROUNDS * (EAGER + sizeof(struct matching_long)));
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes > MAX_BYTES)
            fail("--bytes: expected 1 to %d", MAX_BYTES);
        for (const char *rest = all_ranks; next_number(&rest, &ranks);) {
            if (ranks < 2 || ranks > 1 + MAX_SOURCES || ranks > (size_t)spin_size())
                fail("--ranks: %zu of %d; usage: %s", ranks, spin_size(), usage);
            measure(bytes, (unsigned)ranks - 1);
        }
    }
    finish();
    return 0;
}
