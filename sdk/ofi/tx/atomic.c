/* SPDX-License-Identifier: Apache-2.0 */
#include "atomic.h"

#include <string.h>

/* Types of Portals, and the bytes of their elements. */
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

static bool is_integer(enum fi_datatype type) { return type <= FI_UINT64; }
static bool is_complex(enum fi_datatype type) {
    return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* Valid combinations (Portals 4 §3.15.4). */
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

static size_t max_count(const ptl_ni_limits_t *limits, enum fi_datatype type, enum form form) {
    if (form == COMPARE)
        return 1;
    return (form == PLAIN ? limits->max_atomic_size : limits->max_fetch_atomic_size) / types[type].size;
}

bool spin_ofi_atomic_valid(const struct domain *domain, enum fi_datatype type, enum fi_op op, enum form form,
                           size_t *count, size_t *size) {
    if (!is_valid(type, op, form))
        return false;
    if (count)
        *count = max_count(&domain->card.limits, type, form);
    if (size)
        *size = types[type].size;
    return true;
}

/* Starts an operation. Returns a Portals code. */
static int start(struct operation *op, const struct atomic *call, const struct target *target) {
    const ptl_handle_md_t md = op->ep->domain->card.md_quiet;
    const ptl_size_t from = (uintptr_t)op->pieces[0].iov_base, to = (uintptr_t)call->result, length = op->length;
    const ptl_datatype_t type = types[call->type].type;
    /* A get of one packet reads the memory at one time. */
    if (call->op == FI_ATOMIC_READ)
        return PtlGet(md, to, length, target->process, target->pt, target->key, target->offset, op);
    /* A put is in the order of all accesses, as an atomic operation is. */
    if (call->op == FI_ATOMIC_WRITE && call->form == PLAIN)
        return PtlPut(md, from, length, PTL_ACK_REQ, target->process, target->pt, target->key, target->offset, op, 0);
    if (call->op == FI_ATOMIC_WRITE)
        return PtlSwap(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0, NULL,
                       PTL_SWAP, type);
    if (call->form == COMPARE)
        return PtlSwap(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0,
                       call->comparand, (ptl_op_t)(PTL_CSWAP + call->op - FI_CSWAP), type);
    /* FI_MIN to FI_BXOR have the numbers of PTL_MIN to PTL_BXOR. */
    if (call->form == FETCH)
        return PtlFetchAtomic(md, to, md, from, length, target->process, target->pt, target->key, target->offset, op, 0,
                              (ptl_op_t)call->op, type);
    return PtlAtomic(md, from, length, PTL_ACK_REQ, target->process, target->pt, target->key, target->offset, op, 0,
                     (ptl_op_t)call->op, type);
}

ssize_t spin_ofi_atomic(struct endpoint *ep, const struct atomic *call) {
    const ptl_ni_limits_t *limits = &ep->domain->card.limits;
    if (!is_valid(call->type, call->op, call->form))
        return -EOPNOTSUPP;
    if (call->count == 0 || call->count > max_count(limits, call->type, call->form))
        return -EINVAL;
    const bool plain = call->form == PLAIN;
    const struct iovec iov = {(void *)call->operand, call->count * types[call->type].size};
    struct target target;
    if (!spin_ofi_target_find(ep, call->peer, call->addr, call->key, &target) ||
        (call->flags & FI_INJECT && iov.iov_len > spin_ofi_inject_size(limits)))
        return -EINVAL;
    struct operation *op = spin_ofi_operation_new(ep, plain ? ATOMIC : READ, spin_ofi_initiator_event, call->context,
                                                  FI_ATOMIC | (plain ? FI_WRITE : FI_READ), call->report);
    if (!op)
        return -EAGAIN;
    spin_ofi_operation_memory(op, &iov, 1);
    if (call->flags & FI_INJECT) {
        memcpy(op->copy, call->operand, op->length);
        op->pieces[0].iov_base = op->copy;
    }
    int rc = start(op, call, &target);
    if (rc != PTL_OK)
        spin_ofi_operation_free(op);
    return spin_ofi_result(rc);
}
