/* Counters on the card: handlers count the letters of a text in parallel, each in its own stack, and add them up atomically.
 * spincc examples/counter.c -o counter && spinrun -n 4 ./counter */
#include "card.h"

enum { LETTERS = 26, COPIES = 1000 };

struct counts {
    uint32_t of[LETTERS];
};

/* Many of these run at the same time. Each needs only one atomic operation for each letter. */
__handler int count(const ptl_payload_t p, void *state) {
    struct counts *all = state;
    uint32_t mine[LETTERS] = {0};
    const uint32_t length = p.length; /* 32 bits, as the card's registers; ptl_size_t has 64 */
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t letter = p.base[i] - (uint32_t)'a';
        if (letter < LETTERS)
            mine[letter]++;
    }
    for (uint32_t i = 0; i < LETTERS; i++)
        if (mine[i] != 0)
            __atomic_fetch_add(&all->of[i], mine[i], __ATOMIC_RELAXED);
    return SUCCESS;
}

/* Runs when all packets of a message have been counted. */
__handler int write_counts(int dropped_bytes, bool flow_control_triggered, void *state) {
    if (dropped_bytes != 0 || flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct counts), PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

int main(void) {
    static const char sentence[] = "the quick brown fox jumps over the lazy dog ";
    static char text[COPIES * (sizeof sentence - 1) + 1];
    static struct counts counts;
    ptl_handle_ct_t messages = PTL_CT_NONE;
    card_open(NULL, 0);
    if (spin_rank() == 0) {
        ptl_me_t me = card_entry(&counts, sizeof counts, 0);
        me.payload_handler = count;
        me.completion_handler = write_counts;
        CHECK(PtlHPUAllocMem(sizeof counts, ni, &me.hpu_memory)); /* zeros */
        messages = card_append(&me);
    }
    CHECK(spin_barrier());
    if (spin_rank() != 0) {
        for (int i = 0; i < COPIES; i++)
            memcpy(text + (size_t)i * (sizeof sentence - 1), sentence, sizeof sentence);
        card_put(card_memory(text, sizeof text - 1), sizeof text - 1, 0, 0);
    } else {
        card_wait(messages, (ptl_size_t)spin_size() - 1);
        for (int i = 0; i < LETTERS; i++)
            printf("%c %u\n", 'a' + i, counts.of[i]);
    }
    card_close();
    return 0;
}
