/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

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

bool spin_ofi_pump_check(struct pump *pump, int rc) {
    if (rc == PTL_OK)
        return true;
    const bool has_lost = rc == PTL_EQ_DROPPED;
    if (!pump->failure) {
        pump->failure = has_lost ? FI_EOVERRUN : EIO;
        spin_ofi_complain(has_lost ? "the card's event queue has overflowed, so calls return FI_EOVERRUN: the program "
                                     "must read its completion queues more often"
                                   : "the card does not work any more, so calls return EIO");
    }
    return has_lost;
}

void spin_ofi_pump_one(struct pump *pump) {
    ptl_event_t event;
    if (spin_ofi_pump_check(pump, PtlEQWait(pump->eq, &event)))
        spin_ofi_pump_handle(pump, &event);
}

void spin_ofi_pump_all(struct pump *pump) {
    enum { BATCH = 64 };
    ptl_event_t events[BATCH];
    unsigned count;
    int rc;
    do {
        rc = spin_eq_take(pump->eq, events, BATCH, &count);
        if (rc == PTL_EQ_EMPTY)
            break;
        if (rc != PTL_OK && rc != PTL_EQ_DROPPED) {
            spin_ofi_pump_check(pump, rc);
            break;
        }
        for (unsigned i = 0; i < count; i++) {
            /* Events were lost before the last one. */
            if (i + 1 == count)
                spin_ofi_pump_check(pump, rc);
            spin_ofi_pump_handle(pump, &events[i]);
        }
    } while (count == BATCH || rc == PTL_EQ_DROPPED);
}
