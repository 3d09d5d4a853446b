/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <stdlib.h>

void spin_ofi_event_unexpected(const ptl_event_t *event) {
    spin_ofi_complain("an event of type %d that was not expected; please report it", event->type);
}

/* An injected message, and a get that discards a message, have no sink. */
static void handle_without_sink(const ptl_event_t *event) {
    switch (event->type) {
    case PTL_EVENT_SEND:
    case PTL_EVENT_ACK:
    case PTL_EVENT_REPLY:
    case PTL_EVENT_GET:
        if (event->ni_fail_type != PTL_NI_OK)
            spin_ofi_complain("an injected message or a long one that nobody waits for failed: %s",
                              event->ni_fail_type == PTL_NI_UNDELIVERABLE ? "its target cannot be reached"
                                                                          : "it was refused");
        break;
    default: spin_ofi_event_unexpected(event);
    }
}

void spin_ofi_pump_handle(const struct pump *pump, const ptl_event_t *event) {
    const uintptr_t number = (uintptr_t)event->user_ptr;
    struct event_sink *sink = event->user_ptr;
    if (number > 0 && number <= RECEIVE_STATES)
        sink = pump->numbered[number - 1];
    if (event->type == PTL_EVENT_HANDLER_ERROR)
        spin_ofi_complain("a handler of the provider failed (%d); please report it", event->ni_fail_type);
    else if (sink)
        sink->handle(sink, event);
    else
        handle_without_sink(event);
}

static void check_queue(int rc) {
    if (rc == PTL_OK)
        return;
    spin_ofi_complain(
        rc == PTL_EQ_DROPPED
            ? "the card's event queue has overflowed: the program must read its completion queues more often"
            : "the card does not work any more");
    abort();
}

void spin_ofi_pump_one(const struct pump *pump) {
    ptl_event_t event;
    check_queue(PtlEQWait(pump->eq, &event));
    spin_ofi_pump_handle(pump, &event);
}

void spin_ofi_pump_all(const struct pump *pump) {
    enum { BATCH = 64 };
    ptl_event_t events[BATCH];
    unsigned count;
    do {
        int rc = spin_eq_take(pump->eq, events, BATCH, &count);
        if (rc == PTL_EQ_EMPTY)
            break;
        check_queue(rc);
        for (unsigned i = 0; i < count; i++)
            spin_ofi_pump_handle(pump, &events[i]);
    } while (count == BATCH);
}
