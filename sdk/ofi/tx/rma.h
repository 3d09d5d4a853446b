/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes of remote memory (fi_rma(3)). */
#ifndef OFI_RMA_H
#define OFI_RMA_H

#include "../core/domain.h"

/* Arguments of a read or a write. */
struct rma {
    enum job job; /* READ or WRITE */
    const struct iovec *iov;
    size_t count;
    fi_addr_t peer;
    uint64_t addr, key; /* address and key of the remote memory */
    uint64_t data;      /* FI_REMOTE_CQ_DATA */
    uint64_t flags;
    void *context;
    bool report; /* a success is put into the completion queue */
};

/* Starts a read or a write. Returns 0 or a negative error number: -FI_EMSGSIZE for more than max_msg_size bytes. */
ssize_t spin_ofi_rma(struct endpoint *ep, const struct rma *call);

#endif
