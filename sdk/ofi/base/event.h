/* SPDX-License-Identifier: Apache-2.0 */
/* The pump: takes events from the card's event queue and calls the object that each belongs to.
 *
 * Each object behind the user_ptr of an event begins with a struct event_sink, so the pump depends on no kind of
 * object. A handler cannot hold a pointer of the host; its gets carry a small number instead, from 1 to
 * RECEIVE_STATES. */
#ifndef OFI_EVENT_H
#define OFI_EVENT_H

#include "error.h"
#include "wire.h"

#include <stdbool.h>

struct event_sink;
typedef void event_callback(struct event_sink *sink, const ptl_event_t *event);

/* Receiver of events. The pump calls `handle`, which must not pump. */
struct event_sink {
    event_callback *handle;
};

struct pump {
    ptl_handle_eq_t eq;
    struct event_sink *numbered[RECEIVE_STATES]; /* sinks of the numbers from 1, or NULL */
    int failure; /* 0, or the positive error number with which the card's event queue has failed; it stays */
};

/* Handles one event. */
void spin_ofi_pump_handle(const struct pump *pump, const ptl_event_t *event);
/* Takes the Portals code of a call that returns an event. Returns true if the call has stored one. Lost events
 * (PTL_EQ_DROPPED) let the pump fail with FI_EOVERRUN, and other errors with EIO. */
bool spin_ofi_pump_check(struct pump *pump, int rc);
/* Handles all events that the card has now. */
void spin_ofi_pump_all(struct pump *pump);
/* Waits for one event and handles it. */
void spin_ofi_pump_one(struct pump *pump);
/* Reports an event that its sink does not handle. */
void spin_ofi_event_unexpected(const ptl_event_t *event);

#endif
