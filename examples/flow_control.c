/* Flow control: a card whose handlers are too slow refuses messages; acknowledgements report this, and
 * senders send again.
 * spincc examples/flow_control.c -o flow_control && spinrun -n 32 ./flow_control */
#include "card.h"

enum { VALUES = 16384, DATA = 1, PAUSE_NS = 50000 };

/* Writes the square of each value to its place. Handling a packet twice has the same effect, so messages can be
 * repeated. */
__handler int square(const ptl_payload_t p, void *state) {
    uint32_t *values = (uint32_t *)p.base;
    const uint32_t count = p.length / sizeof *values;
    (void)state;
    for (uint32_t i = 0; i < count; i++)
        values[i] *= values[i];
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Rank 0: an entry for each other rank. Waits until all are filled; re-enables disabled entries. */
static int receive(ptl_handle_eq_t events, const uint32_t *all) {
    int enabled = 0;
    for (int left = spin_size() - 1; left > 0;) {
        ptl_event_t event;
        CHECK(PtlEQWait(events, &event));
        if (event.type == PTL_EVENT_PT_DISABLED) {
            CHECK(PtlPTEnable(ni, 0));
            enabled++;
        } else if (event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK)
            left--;
    }
    for (size_t i = 0; i < (size_t)(spin_size() - 1) * VALUES; i++)
        if (all[i] != (uint32_t)(i % VALUES) * (uint32_t)(i % VALUES))
            return fprintf(stderr, "value %zu is %u\n", i, all[i]), 1;
    printf("all %d messages are complete; flow control was %s\n", spin_size() - 1,
           enabled != 0 ? "needed" : "not needed");
    return 0;
}

/* The others: request an acknowledgement, and send again later if the message was refused or truncated. */
static int send(ptl_handle_eq_t events, ptl_handle_md_t memory) {
    const ptl_process_t zero = {.rank = 0};
    for (int tries = 1;; tries++) {
        ptl_event_t event;
        CHECK(PtlPut(memory, 0, VALUES * sizeof(uint32_t), PTL_ACK_REQ, zero, 0, (ptl_match_bits_t)spin_rank(), 0, NULL,
                     0));
        do
            CHECK(PtlEQWait(events, &event));
        while (event.type != PTL_EVENT_ACK);
        if (event.ni_fail_type == PTL_NI_OK)
            return 0;
        if (event.ni_fail_type != PTL_NI_PT_DISABLED)
            return fprintf(stderr, "rank %d: failure %d\n", spin_rank(), event.ni_fail_type), 1;
        spin_host_compute((uint64_t)PAUSE_NS * (uint64_t)(spin_rank() + tries)); /* not all at once again */
    }
}

int main(void) {
    ptl_handle_eq_t events;
    card_open(&events, 4096);
    uint32_t *all = calloc((size_t)spin_size() * VALUES, sizeof *all);
    for (int rank = 1; spin_rank() == 0 && rank < spin_size(); rank++) {
        ptl_me_t me = card_entry(all + (size_t)(rank - 1) * VALUES, VALUES * sizeof *all, (ptl_match_bits_t)rank);
        me.payload_handler = square;
        card_append(&me);
    }
    for (uint32_t i = 0; spin_rank() != 0 && i < VALUES; i++)
        all[i] = i;
    ptl_md_t md = {.start = all, .length = VALUES * sizeof *all, .eq_handle = events, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t memory;
    CHECK(PtlMDBind(ni, &md, &memory));
    CHECK(spin_barrier());
    const int status = spin_rank() == 0 ? receive(events, all) : send(events, memory);
    card_close();
    return status;
}
