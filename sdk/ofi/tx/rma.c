/* SPDX-License-Identifier: Apache-2.0 */
#include "rma.h"

#include <string.h>

/* Brings remote CQ data after the data that has been written. */
static int put_data(const struct endpoint *ep, const struct target *target, size_t length, uint64_t data) {
    return PtlPut(ep->domain->card.md_volatile, 0, 0, PTL_NO_ACK_REQ, target->process, target->control_pt,
                  CONTROL_CQ_DATA, length, NULL, (uint32_t)data | HEADER_FROM(ep->number));
}

/* Copies the data of an operation, which the caller may change at once. The copy is needed until the
 * acknowledgement, for which counters and fences wait. */
static void copy_data(struct operation *op) {
    size_t at = 0;
    for (unsigned i = 0; i < op->count; at += op->pieces[i++].iov_len)
        memcpy(op->copy + at, op->pieces[i].iov_base, op->pieces[i].iov_len);
    op->count = 1;
    op->pieces[0] = (ptl_iovec_t){op->copy, op->length};
}

/* Checks the arguments of a call. Returns 0 or a negative error number. */
static ssize_t check(const struct endpoint *ep, const struct rma *call, const struct operation *op) {
    const ptl_ni_limits_t *limits = &ep->domain->card.limits;
    if (op->length > limits->max_msg_size)
        return -EMSGSIZE;
    return call->flags & FI_INJECT && op->length > spin_ofi_inject_size(limits) ? -EINVAL : 0;
}

/* Starts an operation. Returns a Portals code. */
static int start(struct operation *op, const struct target *target) {
    ptl_handle_md_t md;
    ptl_size_t offset;
    int rc = spin_ofi_operation_descriptor(op, op->ep->domain->card.md_quiet, PTL_MD_EVENT_SEND_DISABLE, &md, &offset);
    if (rc != PTL_OK)
        return rc;
    if (op->job == READ)
        return PtlGet(md, offset, op->length, target->process, target->pt, target->key, target->offset, op);
    return PtlPut(md, offset, op->length, PTL_ACK_REQ, target->process, target->pt, target->key, target->offset, op, 0);
}

ssize_t spin_ofi_rma(struct endpoint *ep, const struct rma *call) {
    const uint64_t flags = FI_RMA | (call->job == READ ? FI_READ : FI_WRITE);
    struct target target;
    struct operation *op =
        spin_ofi_operation_new(ep, call->job, spin_ofi_initiator_event, call->context, flags, call->report);
    if (!op)
        return -EAGAIN;
    ssize_t failed = -EINVAL;
    if (spin_ofi_target_find(ep, call->peer, call->addr, call->key, &target) &&
        spin_ofi_operation_memory(op, call->iov, call->count))
        failed = check(ep, call, op);
    if (failed) {
        spin_ofi_operation_free(op);
        return failed;
    }
    if (call->flags & FI_INJECT)
        copy_data(op);
    const size_t length = op->length;
    int rc = start(op, &target);
    if (rc != PTL_OK)
        spin_ofi_operation_free(op);
    else if (call->flags & FI_REMOTE_CQ_DATA)
        rc = put_data(ep, &target, length, call->data);
    return spin_ofi_result(rc);
}
