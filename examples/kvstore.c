/* A key-value store in the card's memory: header handlers insert and look up keys without locks, and answer by themselves.
 * spincc examples/kvstore.c -o kvstore && spinrun -n 4 ./kvstore */
#include <stdint.h>

enum operation { INSERT, LOOK_UP };
struct request { /* the first bytes of each message */
    uint32_t operation, key, value;
};
#define PTL_USER_HEADER struct request
#include "card.h"

enum { REQUESTS = 1, ANSWERS = 2, SLOTS = 256, KEYS = 20 };

struct table { /* with open addressing; a key or a value of 0 is not there yet */
    uint32_t key[SLOTS], value[SLOTS];
};

/* Returns the slot of a key, possibly a new one, or SLOTS when none is free. */
static uint32_t slot_of(struct table *t, uint32_t key, bool insert) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint32_t slot = (key * 2654435761u + i) % SLOTS;
        uint32_t found = __atomic_load_n(&t->key[slot], __ATOMIC_RELAXED);
        if (found == 0 && insert) /* if another handler is faster, `found` is the key that took the slot */
            __atomic_compare_exchange_n(&t->key[slot], &found, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        if (found == key || (found == 0 && insert))
            return slot;
        if (found == 0)
            break;
    }
    return SLOTS;
}

/* The answer is a put from the card's memory: the value, or 0 for a missing key. */
__handler int serve(const ptl_header_t h, void *state) {
    struct table *t = state;
    const uint32_t slot = slot_of(t, h.user_hdr.key, h.user_hdr.operation == INSERT);
    if (slot < SLOTS && h.user_hdr.operation == INSERT)
        __atomic_store_n(&t->value[slot], h.user_hdr.value, __ATOMIC_RELAXED);
    uint32_t value = slot < SLOTS ? __atomic_load_n(&t->value[slot], __ATOMIC_RELAXED) : 0;
    int error = PtlHandlerPutFromDevice(&value, sizeof value, 0, PTL_NO_ACK_REQ, h.source_id, ANSWERS, 0, NULL, 0);
    return error == 0 ? PROCEED : FAIL;
}

static uint32_t answer, asked; /* the last answer of the card of rank 0, and the number of requests so far */
static ptl_handle_ct_t answers;

static uint32_t ask(enum operation operation, uint32_t key, uint32_t value) {
    const struct request request = {operation, key, value};
    ptl_handle_md_t memory = card_memory(&request, sizeof request);
    card_put(memory, sizeof request, 0, REQUESTS);
    card_wait(answers, ++asked);
    CHECK(PtlMDRelease(memory));
    return answer;
}

int main(void) {
    card_open(NULL, 0);
    ptl_me_t me = card_entry(&answer, sizeof answer, ANSWERS);
    answers = card_append(&me);
    if (spin_rank() == 0) {
        me = card_entry(NULL, 0, REQUESTS); /* no host memory: requests stay on the card */
        me.header_handler = serve;
        me.user_hdr_size = sizeof(struct request);
        CHECK(PtlHPUAllocMem(sizeof(struct table), ni, &me.hpu_memory));
        card_append(&me);
    }
    CHECK(spin_barrier());
    const uint32_t mine = 100u * (uint32_t)spin_rank(), next = (mine + 100) % (100u * (uint32_t)spin_size());
    for (uint32_t key = mine + 1; key <= mine + KEYS; key++)
        CHECK(ask(INSERT, key, key * key) == key * key ? PTL_OK : PTL_FAIL);
    CHECK(spin_barrier());
    uint32_t right = 0;
    for (uint32_t key = next + 1; key <= next + KEYS; key++) /* keys of the next rank */
        right += ask(LOOK_UP, key, 0) == key * key;
    printf("rank %d: %u of %d values are right; key 99999 is %s\n", spin_rank(), right, KEYS,
           ask(LOOK_UP, 99999, 0) == 0 ? "missing" : "there");
    card_close();
    return 0;
}
