/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the handlers of services (cost.h): a separate program, because a card's memory cannot hold all code. */
#include <handlers/kvstore/kvstore.h> /* before spin.h */

#include "cost.h"
#include <handlers/conditional-read/conditional_read.h>
#include <handlers/consensus/consensus.h>
#include <handlers/switch-allreduce/switch_allreduce.h>
#include <handlers/transactions/transactions.h>

/* Table of rows of 64 bytes, every fifth of which begins with 1. */
enum { ROW = 64, ROWS = MEMORY / ROW };
static void conditional_read(void) {
    for (uint32_t i = 0; i < ROWS; i += 5)
        aligned_memory[i * ROW / sizeof *aligned_memory] = 1;
    CHECK(conditional_read_serve(ni, PT, memory, MEMORY, PACKET, 1));
}

static void put_filter(void) {
    struct {
        struct conditional_read request;
        struct filter_step step;
        uint64_t constant;
    } *sent = memory;
    sent->request = (struct conditional_read){.client = peer,
                                              .row_bytes = ROW,
                                              .rows = ROWS,
                                              .room = ROWS,
                                              .filter_bytes = sizeof *sent - sizeof sent->request};
    sent->step = (struct filter_step){.operation = FILTER_EQUAL, .type = FILTER_INT32, .bytes = sizeof(int32_t)};
    sent->constant = 1;
    put(sizeof *sent, CONDITIONAL_READ, 0);
}

/* One of two replicas, which logs the peer's proposals. */
static void consensus(void) {
    struct consensus state = {.bits = BITS, .rank = 1, .replicas = 2, .slots = 32, .choices = 32, .quorum = 2};
    append((ptl_me_t){.match_bits = BITS,
                      .payload_handler = consensus_payload,
                      .completion_handler = consensus_completion},
           &state, CONSENSUS_INITIAL_BYTES);
}

static void consensus_append(void) {
    *(struct consensus_message *)memory = (struct consensus_message){.kind = CONSENSUS_APPEND, .term = 1};
    put(sizeof(struct consensus_message), BITS, 0);
}

enum { STORED = 64, CHAINS = 4, STORE = 16 }; /* bytes of a value, level of the index, slots */
static const uint32_t item_bytes = sizeof(struct kv_item) + STORED + KV_TAIL;

static void kvstore(void) {
    static struct kv_request start = {.operation = KV_START, .bytes = STORE};
    static struct host_queue_ring *ring;
    ring = calloc(1, host_queue_bytes(1, sizeof(struct kv_record)));
    struct kv_setup setup = {.memory = memory,
                             .bytes = MEMORY,
                             .ring = ring,
                             .queued = 1,
                             .slots = STORE,
                             .slot_bytes = item_bytes,
                             .level = CHAINS,
                             .levels = CHAINS,
                             .steps = 8,
                             .packet = PACKET,
                             .clients = {peer},
                             .count = 1};
    ptl_md_t request = {.start = &start, .length = sizeof start, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &request, &handle));
    CHECK(kv_serve(ni, PT, PT, card, &setup));
    append((ptl_me_t){.match_bits = KV_DONE}, NULL, 0);
    CHECK(PtlPut(handle, 0, sizeof start, PTL_NO_ACK_REQ, card, PT, KV_CONTROL, 0, NULL, 0));
}

/* Inserts a key, and gets it. */
static void kvstore_request(void) {
    static uint32_t number;
    struct kv_request *request = memory;
    *request = (struct kv_request){
        .number = ++number, .hash = number, .bytes = STORED, .operation = KV_INSERT, .key_bytes = 4};
    memcpy(request->key, &number, sizeof number);
    put(sizeof *request + STORED, KV_WRITES, 0);
    spin_host_compute(PATIENCE_NS / 2);
    request->operation = KV_GET;
    put(sizeof *request, KV_READS, 0);
}

/* Log, in separate memory, of accesses to 32 records of 64 bytes. */
static void transactions(void) {
    enum { LOG = 64 };
    static struct transaction_host host = {.capacity = LOG, .record_bytes = 64, .records = 32, .clients = 2};
    host.log = calloc(1, host_queue_bytes(LOG, sizeof(struct transaction_access)));
    if (host.log == NULL || !transaction_begin(&host))
        exit(1);
    CHECK(transaction_serve(ni, PT, memory, &host));
}

static void get_record(void) { CHECK(PtlGet(md, 0, 64, card, PT, TRANSACTION_RECORDS | 1, 0, NULL)); }

/* Slot of a leaf switch to which 64 ranks send, after the first one sent: handlers cost the same on switches and
 * cards. */
static void add_on_switch(void) {
    struct switch_allreduce state = {.inputs = SWITCH_ALLREDUCE_CHILDREN, .parent = PEER};
    for (uint32_t piece = 0; piece < SWITCH_ALLREDUCE_PIECES; piece++)
        state.added[piece] = 1;
    append((ptl_me_t){.match_bits = SWITCH_ALLREDUCE_UP,
                      .header_handler = switch_allreduce_up_header,
                      .payload_handler = switch_allreduce_up_payload},
           &state, sizeof state);
}

static void put_up(void) { put(PACKET, SWITCH_ALLREDUCE_UP, switch_allreduce_header(0, 1, 0)); }

/* Totals in flight to four ranks. */
static void spread_on_switch(void) {
    struct switch_allreduce_down state = {.children = 4, .child = {PEER, PEER, PEER, PEER}};
    append((ptl_me_t){.match_bits = SWITCH_ALLREDUCE_DOWN,
                      .header_handler = switch_allreduce_down_header,
                      .payload_handler = switch_allreduce_down_payload},
           &state, sizeof state);
}

static void put_down(void) { put(PACKET, SWITCH_ALLREDUCE_DOWN, 0); }

static void answer_on_switch(void) {
    struct switch_allreduce state = {.inputs = 2};
    append((ptl_me_t){.match_bits = SWITCH_ALLREDUCE_ASK, .header_handler = switch_allreduce_ask_header}, &state,
           sizeof state);
}

static void put_ask(void) { put(0, SWITCH_ALLREDUCE_ASK, 0); }

static const struct test cases[] = {
    {"conditional-read", "conditional-read", "128 rows of 64 B, 26 match", "struct conditional_read_lane",
     sizeof(struct conditional_read_lane) + CONDITIONAL_READ_AT_ONCE * sizeof(struct conditional_read_work),
     conditional_read, put_filter},
    {"consensus-append", "consensus", "APPEND", STATE(struct consensus), consensus, consensus_append},
    {"kvstore", "kvstore", "an insert of 64 B, then a get", STATE(struct kv), kvstore, kvstore_request},
    {"switch-up", "switch-allreduce", "4 KiB of data for a sum", "struct switch_allreduce", SWITCH_ALLREDUCE_MEMORY,
     add_on_switch, put_up},
    {"switch-down", "switch-allreduce", "a total of 4 KiB for 4 ranks", "struct switch_allreduce",
     SWITCH_ALLREDUCE_MEMORY, spread_on_switch, put_down},
    {"switch-ask", "switch-allreduce", "a question", "struct switch_allreduce", SWITCH_ALLREDUCE_MEMORY,
     answer_on_switch, put_ask},
    {"transactions", "transactions", "get of a record", STATE(struct host_queue), transactions, get_record},
};

int main(int argc, char **argv) { return cost(argc, argv, cases, sizeof cases / sizeof *cases); }
