/* Reads, writes and atomic operations on remote memory (fi_rma(3), fi_atomic(3)). */
#include "../core/domain.h"

#include <string.h>

/* ---- Targets ----------------------------------------------------------------------------------------------------------------------- */

struct target {
    ptl_process_t process;
    ptl_pt_index_t pt, control_pt;
    uint64_t key;
    ptl_size_t offset;
};

/* The place of remote memory. A key that a provider gave out begins with the address of its region (objects.c). */
static bool find_target(struct endpoint *ep, fi_addr_t address, uint64_t addr, uint64_t key, struct target *target) {
    const struct name *name = av_name(ep->av, address);
    if (!name)
        return false;
    *target = (struct target){.process.phys = {name->nid, name->pid},
                              .pt = name->remote_pt,
                              .control_pt = name->control_pt,
                              .key = key,
                              .offset = ep->domain->virtual_addresses ? addr - (key >> KEY_BITS) : addr};
    return true;
}

static bool reports(const struct endpoint *ep, uint64_t flags) {
    return ep->tx_cq && (!ep->tx_selective || flags & FI_COMPLETION);
}

/* Brings remote CQ data after what has been written. */
static int put_data(struct endpoint *ep, const struct target *target, size_t length, uint64_t data) {
    return PtlPut(ep->domain->md_volatile, 0, 0, PTL_NO_ACK_REQ, target->process, target->control_pt, 0, length, NULL,
                  (uint32_t)data | HEADER_FROM(ep->number));
}

/* ---- Reads and writes ---------------------------------------------------------------------------------------------------------------- */

static ssize_t transfer(struct fid_ep *fid, enum job job, const struct iovec *iov, size_t count, fi_addr_t address,
                        uint64_t addr, uint64_t key, uint64_t data, uint64_t flags, void *context, bool report) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    struct domain *domain = ep->domain;
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    pthread_mutex_lock(&domain->lock);
    struct target target;
    struct operation *op = operation_new(ep, job, context, FI_RMA | (job == READ ? FI_READ : FI_WRITE), report);
    int rc = op ? PTL_ARG_INVALID : PTL_NO_SPACE;
    if (!op)
        goto out;
    if (!find_target(ep, address, addr, key, &target) || !operation_memory(op, iov, count)) {
        operation_free(op);
        goto out;
    }
    if (op->length > domain->limits.max_msg_size) {
        operation_free(op);
        pthread_mutex_unlock(&domain->lock);
        return -EMSGSIZE;
    }
    if (flags & FI_INJECT) {
        if (op->length > inject_size(&domain->limits)) {
            operation_free(op);
            goto out;
        }
        /* The copy stays until the acknowledgement: counters and fences need to know of it. */
        size_t at = 0;
        for (unsigned i = 0; i < op->count; at += op->pieces[i++].iov_len)
            memcpy(op->copy + at, op->pieces[i].iov_base, op->pieces[i].iov_len);
        op->count = 1;
        op->pieces[0] = (ptl_iovec_t){op->copy, op->length};
    }
    ptl_handle_md_t md;
    ptl_size_t offset;
    const size_t length = op->length;
    rc = descriptor(op, domain->md_quiet, PTL_MD_EVENT_SEND_DISABLE, &md, &offset);
    if (rc == PTL_OK && job == READ)
        rc = PtlGet(md, offset, op->length, target.process, target.pt, target.key, target.offset, op);
    else if (rc == PTL_OK)
        rc = PtlPut(md, offset, op->length, PTL_ACK_REQ, target.process, target.pt, target.key, target.offset, op, 0);
    if (rc != PTL_OK)
        operation_free(op);
    else if (flags & FI_REMOTE_CQ_DATA)
        rc = put_data(ep, &target, length, data);
out:
    pthread_mutex_unlock(&domain->lock);
    return result_of(rc);
}

static uint64_t defaults(struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid)->tx_flags; }
static bool reports_default(struct fid_ep *fid) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    return reports(ep, ep->tx_flags);
}

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
                    flags & ~FI_INJECT, msg->context, reports(CONTAINER(ep, struct endpoint, fid), flags));
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
                    msg->data, flags, msg->context, reports(CONTAINER(ep, struct endpoint, fid), flags));
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

struct fi_ops_rma rma_ops = {sizeof rma_ops, rma_read,     rma_readv,  rma_readmsg,   rma_write,
                             rma_writev,     rma_writemsg, rma_inject, rma_writedata, rma_injectdata};

/* ---- Atomic operations ----------------------------------------------------------------------------------------------------------------- */

/* Types of Portals, and the sizes of their elements */
static const struct {
    ptl_datatype_t type;
    uint8_t size;
} types[FI_DATATYPE_LAST] = {
    [FI_INT8] = {PTL_INT8_T, 1},
    [FI_UINT8] = {PTL_UINT8_T, 1},
    [FI_INT16] = {PTL_INT16_T, 2},
    [FI_UINT16] = {PTL_UINT16_T, 2},
    [FI_INT32] = {PTL_INT32_T, 4},
    [FI_UINT32] = {PTL_UINT32_T, 4},
    [FI_INT64] = {PTL_INT64_T, 8},
    [FI_UINT64] = {PTL_UINT64_T, 8},
    [FI_FLOAT] = {PTL_FLOAT, 4},
    [FI_DOUBLE] = {PTL_DOUBLE, 8},
    [FI_FLOAT_COMPLEX] = {PTL_FLOAT_COMPLEX, 8},
    [FI_DOUBLE_COMPLEX] = {PTL_DOUBLE_COMPLEX, 16},
    [FI_LONG_DOUBLE] = {PTL_LONG_DOUBLE, sizeof(long double)},
    [FI_LONG_DOUBLE_COMPLEX] = {PTL_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double)},
};

/* How an operation is carried out. */
enum form {
    PLAIN,   /* PtlAtomic, without a result */
    FETCH,   /* PtlFetchAtomic, or PtlSwap without an operand; with PtlGet for FI_ATOMIC_READ */
    COMPARE, /* PtlSwap with an operand */
};

static bool is_integer(enum fi_datatype type) { return type <= FI_UINT64; }
static bool is_complex(enum fi_datatype type) {
    return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* Whether the card combines values of this type by this operation (Portals 4 §3.15.4), in this form. */
static bool is_valid(enum fi_datatype type, enum fi_op op, enum form form) {
    if (type >= FI_DATATYPE_LAST)
        return false;
    switch (op) {
    case FI_MIN:
    case FI_MAX: return form != COMPARE && !is_complex(type);
    case FI_SUM:
    case FI_PROD: return form != COMPARE;
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR: return form != COMPARE && is_integer(type);
    case FI_ATOMIC_READ: return form == FETCH;
    case FI_ATOMIC_WRITE: return form != COMPARE;
    case FI_CSWAP:
    case FI_CSWAP_NE: return form == COMPARE;
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT: return form == COMPARE && !is_complex(type);
    case FI_MSWAP: return form == COMPARE && is_integer(type);
    default: return false;
    }
}

static size_t max_count(const struct domain *domain, enum fi_datatype type, enum form form) {
    if (form == COMPARE)
        return 1;
    return (form == PLAIN ? domain->limits.max_atomic_size : domain->limits.max_fetch_atomic_size) / types[type].size;
}

int query_atomic(struct fid_domain *fid, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                 uint64_t flags) {
    enum form form = flags & FI_COMPARE_ATOMIC ? COMPARE : flags & FI_FETCH_ATOMIC ? FETCH : PLAIN;
    if (!is_valid(type, op, form))
        return -EOPNOTSUPP;
    attr->count = max_count(CONTAINER(fid, struct domain, fid), type, form);
    attr->size = types[type].size;
    return 0;
}

static int valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, enum form form, size_t *count) {
    if (!is_valid(type, op, form))
        return -EOPNOTSUPP;
    if (count)
        *count = max_count(CONTAINER(fid, struct endpoint, fid)->domain, type, form);
    return 0;
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

/* A call: operands, results and comparands are each in one piece. */
struct atomic {
    const void *operand;
    void *result;
    const void *comparand;
    size_t count;
    fi_addr_t address;
    uint64_t addr, key;
    enum fi_datatype type;
    enum fi_op op;
    uint64_t flags;
    void *context;
    bool report;
};

static int start_atomic(struct endpoint *ep, struct operation *op, const struct atomic *a, enum form form,
                        const struct target *target) {
    const ptl_handle_md_t md = ep->domain->md_quiet;
    const ptl_size_t from = (uintptr_t)op->pieces[0].iov_base, to = (uintptr_t)a->result, length = op->length;
    const ptl_datatype_t type = types[a->type].type;
    if (a->op == FI_ATOMIC_READ) /* one packet, which the card reads at one time */
        return PtlGet(md, to, length, target->process, target->pt, target->key, target->offset, op);
    if (a->op == FI_ATOMIC_WRITE && form == PLAIN) /* in the order of all accesses, as an atomic operation is */
        return PtlPut(md, from, length, PTL_ACK_REQ, target->process, target->pt, target->key, target->offset, op, 0);
    if (a->op == FI_ATOMIC_WRITE)
        return PtlSwap(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0, NULL,
                       PTL_SWAP, type);
    if (form == COMPARE)
        return PtlSwap(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0,
                       a->comparand, (ptl_op_t)(PTL_CSWAP + a->op - FI_CSWAP), type);
    /* FI_MIN to FI_BXOR have the numbers of PTL_MIN to PTL_BXOR. */
    if (form == FETCH)
        return PtlFetchAtomic(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0,
                              (ptl_op_t)a->op, type);
    return PtlAtomic(md, from, length, PTL_ACK_REQ, target->process, target->pt, target->key, target->offset, op, 0,
                     (ptl_op_t)a->op, type);
}

static ssize_t atomic(struct fid_ep *fid, enum form form, const struct atomic *a) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    struct domain *domain = ep->domain;
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (!is_valid(a->type, a->op, form))
        return -EOPNOTSUPP;
    if (a->count == 0 || a->count > max_count(domain, a->type, form))
        return -EINVAL;
    uint64_t kind = FI_ATOMIC | (form == PLAIN ? FI_WRITE : FI_READ);
    pthread_mutex_lock(&domain->lock);
    struct target target;
    struct operation *op = operation_new(ep, form == PLAIN ? ATOMIC : READ, a->context, kind, a->report);
    int rc = op ? PTL_ARG_INVALID : PTL_NO_SPACE;
    if (!op)
        goto out;
    const struct iovec iov = {(void *)a->operand, a->count * types[a->type].size};
    operation_memory(op, &iov, 1);
    if (!find_target(ep, a->address, a->addr, a->key, &target) ||
        (a->flags & FI_INJECT && op->length > inject_size(&domain->limits))) {
        operation_free(op);
        goto out;
    }
    if (a->flags & FI_INJECT) {
        memcpy(op->copy, a->operand, op->length);
        op->pieces[0].iov_base = op->copy;
    }
    rc = start_atomic(ep, op, a, form, &target);
    if (rc != PTL_OK)
        operation_free(op);
out:
    pthread_mutex_unlock(&domain->lock);
    return result_of(rc);
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest, uint64_t addr,
                            uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    (void)desc;
    return atomic(ep, PLAIN,
                  &(struct atomic){buf, NULL, NULL, count, dest, addr, key, type, op, defaults(ep), context,
                                   reports_default(ep)});
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest,
                             uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    if (count != 1)
        return -EINVAL;
    return atomic_write(ep, iov->addr, iov->count, desc, dest, addr, key, type, op, context);
}

/* The call of a message whose operands are in one piece. */
static struct atomic of_message(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) {
    return (struct atomic){.operand = msg->iov_count > 0 ? msg->msg_iov->addr : NULL,
                           .count = msg->iov_count > 0 ? msg->msg_iov->count : msg->rma_iov->count,
                           .address = msg->addr,
                           .addr = msg->rma_iov->addr,
                           .key = msg->rma_iov->key,
                           .type = msg->datatype,
                           .op = msg->op,
                           .flags = flags,
                           .context = msg->context,
                           .report = reports(CONTAINER(ep, struct endpoint, fid), flags)};
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) {
    if (msg->iov_count != 1 || msg->rma_iov_count != 1)
        return -EINVAL;
    struct atomic a = of_message(ep, msg, flags);
    return atomic(ep, PLAIN, &a);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
                             uint64_t key, enum fi_datatype type, enum fi_op op) {
    return atomic(ep, PLAIN,
                  &(struct atomic){buf, NULL, NULL, count, dest, addr, key, type, op, FI_INJECT, NULL, false});
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *fetched,
                                void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
                                enum fi_op op, void *context) {
    (void)desc, (void)result_desc;
    return atomic(
        ep, FETCH,
        &(struct atomic){buf, fetched, NULL, count, dest, addr, key, type, op, 0, context, reports_default(ep)});
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
    return atomic(ep, FETCH, &a);
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
                                void *compare_desc, void *fetched, void *result_desc, fi_addr_t dest, uint64_t addr,
                                uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
    (void)desc, (void)compare_desc, (void)result_desc;
    return atomic(
        ep, COMPARE,
        &(struct atomic){buf, fetched, compare, count, dest, addr, key, type, op, 0, context, reports_default(ep)});
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
    return atomic(ep, COMPARE, &a);
}

struct fi_ops_atomic atomic_ops = {
    sizeof atomic_ops,   atomic_write,      atomic_writev,       atomic_writemsg,  atomic_inject,
    atomic_readwrite,    atomic_readwritev, atomic_readwritemsg, atomic_compwrite, atomic_compwritev,
    atomic_compwritemsg, writevalid,        readwritevalid,      compwritevalid,
};
