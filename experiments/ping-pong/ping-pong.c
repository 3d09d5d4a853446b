/* Ping-pong (sPIN §4.4.1, App. C.3.1): rank 0 sends a message to rank 1 and gets it back.
 *
 *   --mode rdma       rank 1's CPU sees the ping and posts the pong
 *   --mode triggered  rank 1's card answers from host memory (Portals 4 triggered put)
 *   --mode store      rank 1's handlers answer after the whole ping has arrived: from the card if it is one packet, else
 *                     from host memory
 *   --mode stream     rank 1's payload handlers answer every packet from the card
 *   --sizes N,N,…     message sizes in bytes
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "half_rtt_ps", "data_ok"}. */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PT = 3, PING = 20, PONG = 10 };          /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 };     /* branch predictors of the HPUs settle; then every round is the same */
enum { MAX_BYTES = 1 << 22, UNTOUCHED = 0xA5 }; /* a byte that no message has written */

/* ---- On the card ------------------------------------------------------------------------------------------------ */

struct pingpong {
    ptl_process_t source;
    ptl_size_t length;
    uint32_t max_packet; /* set by the host: largest message that is one packet */
    uint8_t streaming;   /* set by the host */
    uint8_t stream;      /* this message is answered from the card */
};

__handler int ping_header(const ptl_header_t h, void *state) {
    struct pingpong *i = state;
    i->source = h.source_id;
    i->length = h.length;
    i->stream = i->streaming || h.length <= i->max_packet;
    return i->stream ? PROCESS_DATA : PROCEED;
}

__handler int ping_payload(const ptl_payload_t p, void *state) {
    struct pingpong *i = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, i->source, PONG, p.offset, NULL, 0);
    return SUCCESS;
}

__handler int ping_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct pingpong *i = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    if (!i->stream)
        PtlHandlerPutFromHost(0, i->length, 0, PTL_NO_ACK_REQ, i->source, PONG, 0, NULL, 0);
    return SUCCESS;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

enum mode { RDMA, TRIGGERED, STORE, STREAM };
static const char *const modes[] = {"rdma", "triggered", "store", "stream"};

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            fprintf(stderr, "ping-pong: rank %d: %s returned %d\n", spin_rank(), #call, rc_);                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static ptl_handle_ni_t ni;
static ptl_ni_limits_t limits;
static unsigned char *sent, *received;

static unsigned char pattern(size_t i, size_t bytes, int round) {
    return (unsigned char)((i * 2654435761u + bytes * 40503u + (unsigned)round * 97u) >> 13);
}

static int matches(const unsigned char *data, size_t bytes, int round) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != pattern(i, bytes, round))
            return 0;
    return 1;
}

/* Whether everything from `from` on is unchanged. */
static int untouched(const unsigned char *data, size_t from) {
    for (size_t i = from; i < MAX_BYTES; i++)
        if (data[i] != UNTOUCHED)
            return 0;
    return 1;
}

static ptl_handle_md_t bind(void *start) {
    ptl_md_t md = {.start = start, .length = MAX_BYTES, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* Appends an entry for messages with these match bits; `ct` counts their bytes. */
static ptl_handle_me_t append(ptl_match_bits_t bits, ptl_handle_ct_t ct, ptl_me_t me) {
    ptl_handle_me_t handle;
    me.start = received;
    me.length = MAX_BYTES;
    me.ct_handle = ct;
    me.uid = PTL_UID_ANY;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = bits;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES;
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

/* Sends each round's ping and waits for the pong. The last round counts. */
static void ping(enum mode mode, size_t bytes) {
    const ptl_process_t peer = {.rank = 1};
    ptl_ct_event_t counted;
    ptl_handle_ct_t pongs;
    uint64_t rtt_ps = 0;
    int ok = 1;
    CHECK(PtlCTAlloc(ni, &pongs));
    ptl_handle_me_t entry = append(PONG, pongs, (ptl_me_t){.hpu_memory = PTL_INVALID_HANDLE});
    ptl_handle_md_t md = bind(sent);
    memset(received, UNTOUCHED, MAX_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < bytes; i++)
            sent[i] = pattern(i, bytes, round);
        CHECK(spin_barrier()); /* rank 1 is ready */
        uint64_t start = spin_time_ps();
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PING, 0, NULL, 0));
        CHECK(PtlCTWait(pongs, (round + 1) * bytes, &counted));
        rtt_ps = spin_time_ps() - start;
        ok &= counted.success == (round + 1) * bytes && counted.failure == 0 && matches(received, bytes, round) &&
              untouched(received, bytes);
    }
    CHECK(spin_barrier()); /* rank 1 has checked its side: it ends the run if that failed */
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"half_rtt_ps\":%llu,\"data_ok\":%s}\n", modes[mode], bytes,
           (unsigned long long)(rtt_ps / 2), ok ? "true" : "false");
    fflush(stdout);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(pongs));
}

/* Prepares the answers, and checks what each ping left in host memory. */
static void pong(enum mode mode, size_t bytes) {
    const ptl_process_t peer = {.rank = 0};
    struct pingpong state = {.max_packet = (uint32_t)limits.max_payload_size, .streaming = mode == STREAM};
    ptl_me_t me = {.hpu_memory = PTL_INVALID_HANDLE};
    ptl_ct_event_t counted;
    ptl_handle_ct_t pings;
    CHECK(PtlCTAlloc(ni, &pings));
    if (mode == STORE || mode == STREAM) {
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
        me.header_handler = ping_header;
        me.payload_handler = ping_payload;
        me.completion_handler = ping_completion;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
    }
    ptl_handle_me_t entry = append(PING, pings, me);
    ptl_handle_md_t md = bind(received);
    memset(received, UNTOUCHED, MAX_BYTES);
    if (mode == TRIGGERED)
        for (int round = 0; round < ROUNDS; round++)
            CHECK(
                PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PONG, 0, NULL, 0, pings, (round + 1) * bytes));
    /* Messages that the card answers without the host never reach host memory. */
    int stored = mode == RDMA || mode == TRIGGERED || (mode == STORE && bytes > limits.max_payload_size);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(spin_barrier());
        CHECK(PtlCTWait(pings, (round + 1) * bytes, &counted));
        if (mode == RDMA)
            CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PONG, 0, NULL, 0));
        if (counted.failure != 0 || (stored && !matches(received, bytes, round)) ||
            !untouched(received, stored ? bytes : 0)) {
            fprintf(stderr, "ping-pong: rank 1: wrong data in round %d of %zu bytes\n", round, bytes);
            exit(1);
        }
    }
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(pings));
    if (me.hpu_memory != PTL_INVALID_HANDLE)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
}

static void usage(void) {
    fprintf(stderr, "usage: ping-pong --mode rdma|triggered|store|stream --sizes BYTES[,BYTES...]\n");
    exit(2);
}

int main(int argc, char **argv) {
    const char *sizes = NULL;
    int mode = -1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--sizes") == 0)
            sizes = argv[i + 1];
        for (int m = RDMA; strcmp(argv[i], "--mode") == 0 && m <= STREAM; m++)
            if (strcmp(argv[i + 1], modes[m]) == 0)
                mode = m;
    }
    if (mode < 0 || sizes == NULL || spin_size() != 2)
        usage();

    ptl_pt_index_t pt;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
    sent = malloc(MAX_BYTES);
    received = malloc(MAX_BYTES);
    if (sent == NULL || received == NULL)
        return 1;

    for (const char *at = sizes; *at != '\0';) {
        char *end;
        unsigned long bytes = strtoul(at, &end, 10);
        if (end == at || bytes == 0 || bytes > MAX_BYTES)
            usage();
        (spin_rank() == 0 ? ping : pong)((enum mode)mode, bytes);
        at = *end == ',' ? end + 1 : end;
    }
    CHECK(PtlPTFree(ni, pt));
    CHECK(PtlNIFini(ni));
    PtlFini();
    return 0;
}
