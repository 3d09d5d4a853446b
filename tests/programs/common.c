/* The parts that use cases share (sdk/handlers/common): `common CAPACITY` with a queue to the CPU for CAPACITY records.
 *
 * Rank 0 serves; every other rank sends REQUESTS requests. A request takes a slot and sends its number to the CPU in a record;
 * every third frees it. A sum is kept under a lock, with a pause in between. When a slot or room is missing the reply says so. */
#include <stdint.h>
struct request {
    uint32_t number, value;
};
#define PTL_USER_HEADER struct request
#include <handlers/common/hash.h>
#include <handlers/common/host_queue.h>
#include <handlers/common/lock.h>
#include <handlers/common/reply.h>
#include <handlers/common/slots.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            fprintf(stderr, "%d: %s returns %d\n", spin_rank(), #call, rc_);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PT = 1, REQUEST = 1, REPLY = 2, REQUESTS = 100, SLOTS = 64, MOST = 1024 };
enum { TAKEN, NO_SLOT, NO_ROOM };

struct state {
    struct host_queue queue;
    uint32_t lock, sum;
    uint8_t slots[sizeof(struct slots) + SLOTS * sizeof(uint32_t)];
};

struct record {
    uint32_t number, slot, client, hash;
};

__handler int serve(const ptl_header_t h, void *memory) {
    struct state *state = memory;
    struct slots *slots = (struct slots *)state->slots;
    struct reply reply = {.request = h.user_hdr.number, .status = TAKEN};
    int32_t slot = slots_take(slots);
    if (slot == SLOTS_NONE) {
        reply.status = NO_SLOT;
    } else {
        struct record record = {.slot = slot,
                                .client = h.source_id.rank,
                                .hash = hash_bytes(&h.user_hdr, sizeof h.user_hdr, h.source_id.rank)};
        ptl_dma_h written;
        if (host_queue_append(&state->queue, &record, &written)) {
            if (PtlHandlerDMAWait(written))
                return FAIL;
        } else {
            reply.status = NO_ROOM;
        }
        if (reply.status == NO_ROOM || h.user_hdr.number % 3 == 0)
            slots_give(slots, slot);
    }
    lock_take(&state->lock);
    uint32_t sum = state->sum;
    PtlHandlerYield();
    reply.value = *(volatile uint32_t *)&state->sum = sum + h.user_hdr.value;
    lock_give(&state->lock);
    return reply_send(h.source_id, REPLY, reply) ? FAIL : DROP_PENDING;
}

static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
static struct reply replies[REQUESTS];

static void expect(ptl_match_bits_t bits, void *start, size_t bytes, ptl_handle_ct_t ct, ptl_me_t me) {
    ptl_handle_me_t handle;
    me.start = start;
    me.length = bytes;
    me.ct_handle = ct;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = bits;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

static void server(uint32_t capacity) {
    static struct state state;
    static struct {
        struct host_queue_ring ring;
        struct record records[MOST];
    } memory;
    bool is_taken[SLOTS] = {false};
    ptl_me_t me = {.user_hdr_size = sizeof(struct request),
                   .header_handler = serve,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state,
                   .handler_host_mem_start = &memory,
                   .handler_host_mem_length = sizeof memory};
    state.queue =
        (struct host_queue){.options = PTL_HANDLER_HOST_MEM, .bytes = sizeof(struct record), .capacity = capacity};
    slots_init((struct slots *)state.slots, SLOTS, SLOTS);
    CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
    expect(REQUEST, NULL, 0, PTL_CT_NONE, me);
    CHECK(spin_barrier());
    CHECK(spin_barrier());
    struct record record;
    uint32_t records = 0, kept = 0;
    while (host_queue_take(&memory.ring, capacity, sizeof record, &record)) {
        bool is_known = false;
        for (uint32_t i = 0; i < REQUESTS; i++) {
            struct request request = {i, i + 1};
            if (hash_bytes(&request, sizeof request, record.client) == record.hash) {
                is_known = true;
                kept += i % 3 != 0;
                if (i % 3 != 0 && is_taken[record.slot])
                    printf("slot %u is taken twice\n", record.slot);
                is_taken[record.slot] |= i % 3 != 0;
            }
        }
        if (!is_known || record.number != ++records)
            printf("record %u is wrong\n", records);
    }
    printf("server: %u records, %u slots kept\n", records, kept);
}

static void client(void) {
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    ptl_ct_event_t count;
    static struct request requests[REQUESTS];
    ptl_md_t descriptor = {requests, sizeof requests, 0, PTL_EQ_NONE, PTL_CT_NONE};
    uint32_t statuses[3] = {0};
    uint64_t sum = 0;
    CHECK(PtlMDBind(ni, &descriptor, &md));
    CHECK(PtlCTAlloc(ni, &ct));
    expect(REPLY, replies, sizeof replies, ct, (ptl_me_t){.hpu_memory = PTL_INVALID_HANDLE});
    CHECK(spin_barrier());
    for (uint32_t i = 0; i < REQUESTS; i++) {
        requests[i] = (struct request){i, i + 1};
        CHECK(PtlPut(md, i * sizeof(struct request), sizeof(struct request), PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0},
                     pt, REQUEST, 0, NULL, 0));
    }
    CHECK(PtlCTWait(ct, REQUESTS, &count));
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (replies[i].request != i)
            printf("reply %u is wrong\n", i);
        statuses[replies[i].status]++;
        sum = replies[i].value > sum ? replies[i].value : sum;
    }
    printf("client %d: %u taken, %u without slot, %u without room, sum %llu\n", spin_rank(), statuses[TAKEN],
           statuses[NO_SLOT], statuses[NO_ROOM], (unsigned long long)sum);
    CHECK(spin_barrier());
}

int main(int argc, char **argv) {
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
    if (spin_rank() == 0)
        server(argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : MOST);
    else
        client();
    CHECK(spin_barrier());
    return 0;
}
