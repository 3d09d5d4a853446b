/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes of remote memory (fi_rma(3)). */
#include "../tx/rma.h"
#include "fi.h"

static ssize_t transfer(struct fid_ep *fid, enum job job, const struct iovec *iov, size_t count, fi_addr_t peer,
                        uint64_t addr, uint64_t key, uint64_t data, uint64_t flags, void *context, bool report) {
    struct endpoint *ep = endpoint_of(fid);
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    const struct rma call = {.job = job,
                             .iov = iov,
                             .count = count,
                             .peer = peer,
                             .addr = addr,
                             .key = key,
                             .data = data,
                             .flags = flags,
                             .context = context,
                             .report = report};
    pthread_mutex_lock(&ep->domain->lock);
    ssize_t rc = spin_ofi_lost(ep->domain);
    if (rc == 0)
        rc = spin_ofi_rma(ep, &call);
    pthread_mutex_unlock(&ep->domain->lock);
    return rc;
}

static uint64_t defaults(struct fid_ep *fid) { return endpoint_of(fid)->tx_flags; }
static bool reports_default(struct fid_ep *fid) { return is_reported(endpoint_of(fid), defaults(fid)); }

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t addr,
                        uint64_t key, void *context) {
    const struct iovec iov = {buf, len};
    (void)desc;
    return transfer(ep, READ, &iov, 1, src, addr, key, 0, 0, context, reports_default(ep));
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                         uint64_t addr, uint64_t key, void *context) {
    (void)desc;
    return transfer(ep, READ, iov, count, src, addr, key, 0, 0, context, reports_default(ep));
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags) {
    if (msg->rma_iov_count != 1)
        return -EINVAL;
    return transfer(ep, READ, msg->msg_iov, msg->iov_count, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, 0,
                    flags & ~FI_INJECT, msg->context, is_reported(endpoint_of(ep), flags));
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t addr,
                         uint64_t key, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return transfer(ep, WRITE, &iov, 1, dest, addr, key, 0, defaults(ep), context, reports_default(ep));
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                          uint64_t addr, uint64_t key, void *context) {
    (void)desc;
    return transfer(ep, WRITE, iov, count, dest, addr, key, 0, defaults(ep), context, reports_default(ep));
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags) {
    if (msg->rma_iov_count != 1)
        return -EINVAL;
    return transfer(ep, WRITE, msg->msg_iov, msg->iov_count, msg->addr, msg->rma_iov->addr, msg->rma_iov->key,
                    msg->data, flags, msg->context, is_reported(endpoint_of(ep), flags));
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t addr, uint64_t key) {
    const struct iovec iov = {(void *)buf, len};
    return transfer(ep, WRITE, &iov, 1, dest, addr, key, 0, FI_INJECT, NULL, false);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                             uint64_t addr, uint64_t key, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return transfer(ep, WRITE, &iov, 1, dest, addr, key, data, defaults(ep) | FI_REMOTE_CQ_DATA, context,
                    reports_default(ep));
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                              uint64_t addr, uint64_t key) {
    const struct iovec iov = {(void *)buf, len};
    return transfer(ep, WRITE, &iov, 1, dest, addr, key, data, FI_INJECT | FI_REMOTE_CQ_DATA, NULL, false);
}

struct fi_ops_rma spin_ofi_rma_ops = {
    sizeof spin_ofi_rma_ops, rma_read,      rma_readv, rma_readmsg, rma_write, rma_writev, rma_writemsg, rma_inject,
    rma_writedata,           rma_injectdata};
