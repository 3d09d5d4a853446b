/* A filter: the card discards the readings of sensors that are in order, so the CPU of rank 0 sees only the alarms.
 * spincc examples/filter.c -o filter && spinrun -n 4 ./filter */
#include "card.h"

enum { READINGS = 100, LIMIT = 98, LAST = 255 };

struct seen {
    uint32_t readings;
};

/* The reading is the header data of a message without payload. DROP_PENDING discards it silently. */
__handler int only_alarms(const ptl_header_t h, void *state) {
    struct seen *seen = state;
    if (h.hdr_data == LAST)
        return PROCEED;
    __atomic_fetch_add(&seen->readings, 1, __ATOMIC_RELAXED);
    return h.hdr_data > LIMIT ? PROCEED : DROP_PENDING;
}

/* Runs last for each message. */
__handler int write_seen(int dropped_bytes, bool flow_control_triggered, void *state) {
    if (dropped_bytes != 0 || flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct seen), PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

int main(void) {
    static const struct seen none;
    struct seen seen = none;
    ptl_handle_eq_t events;
    card_open(&events, 1024);
    if (spin_rank() == 0) {
        ptl_me_t me = card_entry(&seen, sizeof seen, 0);
        me.header_handler = only_alarms;
        me.completion_handler = write_seen;
        CHECK(PtlHPUAllocMem(sizeof seen, ni, &me.hpu_memory));
        card_append(&me);
    }
    CHECK(spin_barrier());
    if (spin_rank() != 0) { /* a sensor */
        ptl_handle_md_t nothing = card_memory(NULL, 0);
        const ptl_process_t zero = {.rank = 0};
        for (int i = 0; i <= READINGS; i++) {
            const ptl_hdr_data_t reading = i < READINGS ? (ptl_hdr_data_t)(i * 37 + spin_rank() * 11) % 100 : LAST;
            CHECK(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, reading));
        }
    }
    for (int left = spin_rank() == 0 ? spin_size() - 1 : 0; left > 0;) { /* sensors that still send */
        ptl_event_t event;
        CHECK(PtlEQWait(events, &event));
        if (event.type != PTL_EVENT_PUT)
            continue;
        if (event.hdr_data == LAST)
            left--;
        else
            printf("alarm: rank %u measured %u\n", event.initiator.rank, (unsigned)event.hdr_data);
    }
    if (spin_rank() == 0)
        printf("the card has seen %u readings\n", seen.readings);
    card_close();
    return 0;
}
