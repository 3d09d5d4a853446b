/* SPDX-License-Identifier: Apache-2.0 */
/* Sends of messages with and without tags (fi_msg(3), fi_tagged(3)). */
#ifndef OFI_SEND_H
#define OFI_SEND_H

#include "../core/domain.h"

/* Arguments of a call that sends a message. */
struct send {
    enum kind kind;
    const struct iovec *iov; /* at most IOV_LIMIT pieces; FI_INJECT: at most spin_ofi_inject_size bytes */
    size_t count;
    size_t length; /* bytes of all pieces */
    const struct name *name;
    uint64_t tag;
    uint64_t data; /* FI_REMOTE_CQ_DATA */
    uint64_t flags;
    void *context;
    bool report; /* a success is put into the completion queue */
};

/* Returns the units of credit that a message takes. */
unsigned spin_ofi_send_units(const struct endpoint *ep, const struct send *call);
/* Sends a message, for which there is credit. Returns a Portals code: PTL_NO_SPACE if the card or the process has no
 * room for it. */
int spin_ofi_send(struct endpoint *ep, const struct send *call);

#endif
