/* SPDX-License-Identifier: Apache-2.0 */
/* Credit: flow control by which memory for messages without a receive never overflows.
 *
 * An endpoint has room for messages without a receive, counted in units: a message takes one, and a short message
 * one for each UNIT bytes that it begins. Each endpoint of the job has a share of this room, its window. A sender
 * counts its units under way to an endpoint and keeps them within the window; a call beyond it returns -FI_EAGAIN.
 * The receiver returns units once their message has found its receive, or once the CPU has put it into a list.
 * Messages in the other direction carry the units (OWED in their headers); a message to the control entry carries
 * them when they exceed half a window.
 *
 * A sender without units asks for some. The receiver then moves the messages without a receive from its card's list
 * to the CPU's, at its next call of the library, so a receive never waits for a message that messages without a
 * receive hold up. */
#ifndef OFI_CREDIT_H
#define OFI_CREDIT_H

#include "address.h"
#include "arrival.h"

struct endpoint;

/* Units of one kind of messages. */
struct flow {
    unsigned under_way; /* units in flight to the peer, as known to this endpoint */
    unsigned owed;      /* taken here and not yet returned to the peer */
    bool asked;         /* the peer for units */
};

/* An endpoint of the job, as one endpoint of this process sees it. */
struct peer {
    struct event_sink sink; /* failures of requests for units */
    struct flow flows[KINDS];
    bool waits; /* set while a request for units is unanswered */
    struct name name;
    bool gone; /* a request for units failed, so the peer no longer exists */
};

/* Initializes the peers of an endpoint. Returns a Portals code. */
int spin_ofi_credit_start(struct endpoint *ep);
/* Returns the bytes of short messages that may be in flight to an endpoint. */
size_t spin_ofi_credit_room(const struct endpoint *ep);
/* Returns the peer with a name, or NULL for a name outside of the job. */
struct peer *spin_ofi_credit_peer(const struct endpoint *ep, const struct name *name);
/* Returns the units of a short message of `length` bytes. A long message takes one. */
unsigned spin_ofi_credit_units(size_t length);
/* Returns true if a message of `length` bytes is sent at once, and not announced. */
bool spin_ofi_credit_is_short(const struct endpoint *ep, const struct name *name, size_t length);
/* Returns true if the window of `peer` has room for `units` more. */
bool spin_ofi_credit_fits(const struct endpoint *ep, const struct peer *peer, enum kind kind, const struct name *name,
                          unsigned units);
/* Requests units from a peer, unless a request is in flight. */
void spin_ofi_credit_ask(struct endpoint *ep, struct peer *peer, enum kind kind, const struct name *name);
/* Takes back the units of a message: it has found its receive, or the CPU has put it into a list. */
void spin_ofi_credit_taken(struct endpoint *ep, enum kind kind, const ptl_event_t *event);
/* Handles an event of the control entry. Returns false if it does not concern credit. */
bool spin_ofi_credit_event(struct endpoint *ep, const ptl_event_t *event);
/* Returns units to all peers that wait for them. */
void spin_ofi_credit_answer(struct endpoint *ep);

#endif
