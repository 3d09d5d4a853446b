/* A replica's card of sdk/handlers/consensus alone: rank 0's, whose log has room for four commands. Rank 1 plays all that
 * speak to it (its host, the other replicas, a client), sends the messages below one after the other, and prints what the
 * card sends back: to a replica, and to the client. So messages may be as late as no network would make them. */
#include "../../experiments/common/common.h"
#include <handlers/consensus/consensus.h>

enum { PT = 4, REPLICA = 1, PROMISES, REPLIES, SLOTS = 4, CHOICES = 16, REPLICAS = 3 };

static const struct {
    const char *what;
    struct consensus_message message;
} steps[] = {
    /* The log: a slot is used again when the host's snapshot has what was there. */
    {"command of term 1 for slot 0", {CONSENSUS_APPEND, 1, 0, 1, {.client = 1, .request = 1}}},
    {"for slot 4, whose place slot 0 has", {CONSENSUS_APPEND, 1, 4, 1, {.client = 1, .request = 5}}},
    {"the host's snapshot has slot 0", {CONSENSUS_TRUNCATE, 0, 1, 1, {0}}},
    {"again for slot 4", {CONSENSUS_APPEND, 1, 4, 1, {.client = 1, .request = 5}}},
    {"for slot 5, whose place slot 1 may have", {CONSENSUS_APPEND, 1, 5, 1, {.client = 1, .request = 6}}},
    /* Promises: the card accepts nothing from earlier terms. */
    {"promise term 3", {CONSENSUS_PREPARE, 3, 0, 1, {0}}},
    {"command of term 1 for slot 1", {CONSENSUS_APPEND, 1, 1, 1, {.client = 1, .request = 2}}},
    /* Votes: only those of the present leadership count. */
    {"lead in term 3", {CONSENSUS_LEAD, 3, 2, 1, {0}}},
    {"propose slot 1", {CONSENSUS_PROPOSE, 3, 1, 1, {.client = 1, .request = 2, .operation = CONSENSUS_ADD}}},
    {"promise term 6", {CONSENSUS_PREPARE, 6, 0, 1, {0}}},
    {"lead in term 6", {CONSENSUS_LEAD, 6, 2, 1, {0}}},
    {"propose another command", {CONSENSUS_PROPOSE, 6, 1, 1, {.client = 1, .request = 3, .operation = CONSENSUS_ADD}}},
    {"vote of term 3 for slot 1", {CONSENSUS_ACCEPTED, 3, 1, 1, {0}}},
    {"vote of term 6 for slot 1", {CONSENSUS_ACCEPTED, 6, 1, 1, {0}}},
};

int main(void) {
    static struct consensus_message inbox, outbox;
    static struct reply replies[8];
    static struct consensus_promise promises[REPLICAS];
    struct consensus_memory *memory = allocate(consensus_host_bytes(SLOTS, CHOICES));
    struct consensus state = {.bits = REPLICA, .replies = REPLIES, .promises = PROMISES, .replicas = REPLICAS};
    ptl_me_t me = {.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .ct_handle = PTL_CT_NONE,
                   .hpu_memory = PTL_INVALID_HANDLE},
             card = me;
    ptl_handle_ct_t sent;
    start(PT, NULL);
    append_entry(PT, REPLIES, replies, sizeof replies, me);
    append_entry(PT, PROMISES, promises, sizeof promises, me);
    CHECK(PtlCTAlloc(ni, &sent));
    if (spin_rank() == 0) {
        state.slots = SLOTS;
        state.choices = CHOICES;
        state.quorum = REPLICAS / 2 + 1;
        memory->snapshot.slot = 1; /* the host's snapshot, announced to the card below */
        card.payload_handler = consensus_payload;
        card.completion_handler = consensus_completion;
        card.hpu_initial_state = &state;
        card.hpu_initial_state_length = CONSENSUS_INITIAL_BYTES;
        card.ct_handle = sent;
        CHECK(PtlHPUAllocMem(sizeof state, ni, &card.hpu_memory));
        append_entry(PT, REPLICA, memory, consensus_host_bytes(SLOTS, CHOICES), card);
    } else {
        me.ct_handle = sent;
        append_entry(PT, REPLICA, &inbox, sizeof inbox, me);
    }
    CHECK(spin_barrier());
    ptl_handle_md_t md = bind_memory(&outbox, sizeof outbox, 0, PTL_CT_NONE);
    ptl_size_t before = 0;
    for (size_t i = 0; spin_rank() == 1 && i < sizeof steps / sizeof *steps; i++) {
        ptl_ct_event_t event;
        ptl_process_t to = {.rank = 0};
        outbox = steps[i].message;
        memset(replies, 0, sizeof replies);
        CHECK(PtlPut(md, 0, sizeof outbox, PTL_NO_ACK_REQ, to, PT, REPLICA, 0, NULL, 0));
        spin_host_compute(10000);
        CHECK(PtlCTGet(sent, &event));
        printf("%s:", steps[i].what);
        if (event.success > before)
            printf(" kind %u, term %u, slot %u;", inbox.kind, inbox.term, inbox.slot);
        for (size_t request = 0; request < sizeof replies / sizeof *replies; request++)
            if (replies[request].status != 0)
                printf(" command %zu is answered;", request);
        putchar('\n');
        before = event.success;
    }
    fflush(stdout);
    CHECK(spin_barrier());
    for (uint32_t slot = 0; spin_rank() == 0 && slot < SLOTS; slot++)
        printf("place %u: slot %u, term %u\n", slot, memory->log[slot].slot, memory->log[slot].term);
    if (spin_rank() == 0)
        printf("chosen: %u, promised: %u\n", memory->host.chosen, memory->host.promised);
    finish();
    return 0;
}
