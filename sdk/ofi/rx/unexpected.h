/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a receive that the CPU keeps, and those that a search has claimed. */
#ifndef OFI_UNEXPECTED_H
#define OFI_UNEXPECTED_H

#include "bounce.h"

void spin_ofi_unexpected_start(struct endpoint *ep);
/* Frees all messages. */
void spin_ofi_unexpected_release(struct endpoint *ep);
/* Appends a copy of a message to the CPU's list. Without memory the message is lost and the receive queue fails with
 * FI_ENOMEM. */
void spin_ofi_unexpected_keep(struct endpoint *ep, enum kind kind, const struct arrival *arrival);
/* Returns the first message that matches, off the list, or NULL. The caller frees it by spin_ofi_unexpected_free, or
 * inserts it again. */
struct arrival *spin_ofi_unexpected_take(struct endpoint *ep, enum kind kind, const struct pattern *pattern);
/* Frees a message that has been taken, and its part of the bounce buffer. */
void spin_ofi_unexpected_free(struct arrival *arrival);

/* Keeps a copy of a message that the search with `context` has claimed. Returns false without memory. */
bool spin_ofi_claimed_keep(struct endpoint *ep, const struct arrival *arrival, void *context);
/* Removes the message that the search with `context` has claimed. Returns it, or NULL without one. */
struct arrival *spin_ofi_claimed_take(struct endpoint *ep, void *context);

/* Draining moves the messages without a receive from the card's list to the CPU's, one search after another. Starts
 * a search, whose event sets `ep->drain`: `answered`, and `more` unless the list is empty. Returns a Portals code. */
int spin_ofi_drain_next(struct endpoint *ep);

#endif
