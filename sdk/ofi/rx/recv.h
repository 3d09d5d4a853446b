/* SPDX-License-Identifier: Apache-2.0 */
/* Receives (fi_msg(3), fi_tagged(3)).
 *
 * The sender puts up to `domain->eager` bytes at once. It exposes a longer message to gets and announces it; the
 * receiver gets it. */
#ifndef OFI_RECV_H
#define OFI_RECV_H

#include "unexpected.h"

/* Arguments of a call that receives a message or searches for one. */
struct recv {
    enum kind kind;
    const struct iovec *iov;
    size_t count;
    struct pattern pattern;
    uint64_t flags;
    void *context;
    bool report; /* a success is put into the completion queue */
};

/* Prepares an endpoint, whose portal table entries are allocated, for messages. Returns a Portals code. */
int spin_ofi_recv_start(struct endpoint *ep);
/* Unlinks and frees all receives. */
void spin_ofi_recv_stop(struct endpoint *ep);
/* Posts a receive. Returns 0 or a negative error number. */
ssize_t spin_ofi_recv(struct endpoint *ep, const struct recv *call);
/* Stores a new operation for a receive, which is in no list. Returns 0, or a negative error number and stores NULL. */
ssize_t spin_ofi_recv_new(struct endpoint *ep, const struct recv *call, struct operation **op);
/* Copies a message into the memory of its receive, or gets a long one. Completes the receive. */
void spin_ofi_recv_deliver(struct operation *op, const struct arrival *arrival);
/* Frees the memory of a long message at its sender. A short message needs nothing. */
void spin_ofi_recv_discard(const struct endpoint *ep, const struct arrival *arrival);
/* Cancels the receive with this context (fi_cancel(3)), if its message has not arrived. */
void spin_ofi_recv_cancel(struct endpoint *ep, const void *context);

#endif
