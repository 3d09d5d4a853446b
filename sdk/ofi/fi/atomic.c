/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations on remote memory (fi_atomic(3)). */
#include "../tx/atomic.h"
#include "fi.h"

static ssize_t perform(struct fid_ep *fid, const struct atomic *call) {
    struct endpoint *ep = endpoint_of(fid);
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    pthread_mutex_lock(&ep->domain->lock);
    ssize_t rc = spin_ofi_lost(ep->domain);
    if (rc == 0)
        rc = spin_ofi_atomic(ep, call);
    pthread_mutex_unlock(&ep->domain->lock);
    return rc;
}

/* ---- Valid combinations ------------------------------------------------------------------------------------------ */

int spin_ofi_query_atomic(struct fid_domain *fid, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                          uint64_t flags) {
    const struct domain *domain = CONTAINER(fid, struct domain, fid);
    enum form form = flags & FI_COMPARE_ATOMIC ? COMPARE : flags & FI_FETCH_ATOMIC ? FETCH : PLAIN;
    return spin_ofi_atomic_valid(domain, type, op, form, &attr->count, &attr->size) ? 0 : -EOPNOTSUPP;
}

static int valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, enum form form, size_t *count) {
    return spin_ofi_atomic_valid(endpoint_of(fid)->domain, type, op, form, count, NULL) ? 0 : -EOPNOTSUPP;
}

static int writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
    return valid(ep, type, op, PLAIN, count);
}

static int readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
    return valid(ep, type, op, FETCH, count);
}

static int compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
    return valid(ep, type, op, COMPARE, count);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static uint64_t defaults(struct fid_ep *fid) { return endpoint_of(fid)->tx_flags; }
static bool reports_default(struct fid_ep *fid) { return is_reported(endpoint_of(fid), defaults(fid)); }

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest, uint64_t addr,
                            uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    (void)desc;
    return perform(ep, &(struct atomic){PLAIN, buf, NULL, NULL, count, dest, addr, key, type, op, defaults(ep), context,
                                        reports_default(ep)});
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest,
                             uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    if (count != 1)
        return -EINVAL;
    return atomic_write(ep, iov->addr, iov->count, desc, dest, addr, key, type, op, context);
}

/* Returns the arguments of a message whose operands are in one piece. */
static struct atomic of_message(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) {
    return (struct atomic){.operand = msg->iov_count > 0 ? msg->msg_iov->addr : NULL,
                           .count = msg->iov_count > 0 ? msg->msg_iov->count : msg->rma_iov->count,
                           .peer = msg->addr,
                           .addr = msg->rma_iov->addr,
                           .key = msg->rma_iov->key,
                           .type = msg->datatype,
                           .op = msg->op,
                           .flags = flags,
                           .context = msg->context,
                           .report = is_reported(endpoint_of(ep), flags)};
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) {
    if (msg->iov_count != 1 || msg->rma_iov_count != 1)
        return -EINVAL;
    struct atomic a = of_message(ep, msg, flags);
    a.form = PLAIN;
    return perform(ep, &a);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
                             uint64_t key, enum fi_datatype type, enum fi_op op) {
    return perform(ep,
                   &(struct atomic){PLAIN, buf, NULL, NULL, count, dest, addr, key, type, op, FI_INJECT, NULL, false});
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *fetched,
                                void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
                                enum fi_op op, void *context) {
    (void)desc, (void)result_desc;
    return perform(ep, &(struct atomic){FETCH, buf, fetched, NULL, count, dest, addr, key, type, op, 0, context,
                                        reports_default(ep)});
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                                 struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
                                 uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    if (result_count != 1 || (count != 1 && op != FI_ATOMIC_READ))
        return -EINVAL;
    return atomic_readwrite(ep, count ? iov->addr : NULL, resultv->count, desc, resultv->addr, result_desc, dest, addr,
                            key, type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
                                   void **result_desc, size_t result_count, uint64_t flags) {
    (void)result_desc;
    if (result_count != 1 || msg->rma_iov_count != 1 || (msg->iov_count != 1 && msg->op != FI_ATOMIC_READ))
        return -EINVAL;
    struct atomic a = of_message(ep, msg, flags & ~FI_INJECT);
    a.result = resultv->addr;
    a.form = FETCH;
    return perform(ep, &a);
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
                                void *compare_desc, void *fetched, void *result_desc, fi_addr_t dest, uint64_t addr,
                                uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    (void)desc, (void)compare_desc, (void)result_desc;
    return perform(ep, &(struct atomic){COMPARE, buf, fetched, compare, count, dest, addr, key, type, op, 0, context,
                                        reports_default(ep)});
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                                 const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
                                 struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
                                 uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    if (count != 1 || compare_count != 1 || result_count != 1)
        return -EINVAL;
    return atomic_compwrite(ep, iov->addr, iov->count, desc, comparev->addr, compare_desc, resultv->addr, result_desc,
                            dest, addr, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
                                   void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
                                   void **result_desc, size_t result_count, uint64_t flags) {
    (void)compare_desc, (void)result_desc;
    if (msg->iov_count != 1 || msg->rma_iov_count != 1 || compare_count != 1 || result_count != 1)
        return -EINVAL;
    struct atomic a = of_message(ep, msg, flags & ~FI_INJECT);
    a.result = resultv->addr;
    a.comparand = comparev->addr;
    a.form = COMPARE;
    return perform(ep, &a);
}

struct fi_ops_atomic spin_ofi_atomic_ops = {
    sizeof spin_ofi_atomic_ops, atomic_write,      atomic_writev,       atomic_writemsg,  atomic_inject,
    atomic_readwrite,           atomic_readwritev, atomic_readwritemsg, atomic_compwrite, atomic_compwritev,
    atomic_compwritemsg,        writevalid,        readwritevalid,      compwritevalid,
};
