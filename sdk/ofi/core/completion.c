/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"
#include "domain.h"

#include <stdlib.h>

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* Doubles the ring. Returns false without memory. */
static bool grow(struct completion_queue *cq) {
    size_t room = cq->room ? 2 * cq->room : 64;
    struct completion *ring = malloc(room * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < cq->count; i++)
        ring[i] = cq->ring[(cq->first + i) % cq->room];
    free(cq->ring);
    cq->ring = ring;
    cq->room = room;
    cq->first = 0;
    return true;
}

void spin_ofi_cq_push(struct completion_queue *cq, const struct completion *completion) {
    /* After a loss the program must not read later completions as if none were missing. */
    if (cq->failure || cq->domain->card.pump.failure)
        return;
    if (cq->count == cq->room && !grow(cq)) {
        spin_ofi_complain("no memory for the completions that the program has not read");
        spin_ofi_cq_fail(cq, ENOMEM);
        return;
    }
    cq->ring[(cq->first + cq->count++) % cq->room] = *completion;
}

void spin_ofi_cq_pop(struct completion_queue *cq) {
    cq->first = (cq->first + 1) % cq->room;
    cq->count--;
}

void spin_ofi_cq_fail(struct completion_queue *cq, int error) {
    if (cq && !cq->failure)
        cq->failure = error;
}

/* ---- End of operations ------------------------------------------------------------------------------------------- */

static struct counter *counter_of(const struct operation *op) {
    const struct endpoint *ep = op->ep;
    switch (op->job) {
    case SEND: return ep->sent;
    case RECEIVE: return ep->received;
    case SEARCH: return NULL;
    case READ: return ep->read;
    default: return ep->written;
    }
}

void spin_ofi_complete(struct operation *op, struct completion completion) {
    struct endpoint *ep = op->ep;
    struct completion_queue *cq = op->job == RECEIVE || op->job == SEARCH ? ep->rx_cq : ep->tx_cq;
    const bool multi = op->job == RECEIVE && op->receive.multi;
    struct operation *parent = op->job == RECEIVE ? op->receive.parent : NULL;
    const bool releases = parent && --parent->receive.children == 0 && !parent->list;
    completion.entry.op_context = op->context;
    completion.entry.flags |= op->flags;
    /* The last message in the memory of a receive with FI_MULTI_RECV, or its cancellation, returns this memory to
     * the program. */
    if (multi || (releases && !parent->receive.cancelled))
        completion.entry.flags |= FI_MULTI_RECV;
    /* The end of a receive with FI_MULTI_RECV is no message. */
    if (!multi || completion.error)
        spin_ofi_counter_count(counter_of(op), completion.error);
    if (cq && (completion.error || op->report || completion.entry.flags & FI_MULTI_RECV))
        spin_ofi_cq_push(cq, &completion);
    spin_ofi_operation_free(op);
    if (releases && parent->receive.cancelled)
        spin_ofi_cancelled(parent);
    else if (releases)
        spin_ofi_operation_free(parent);
}

void spin_ofi_cancelled(struct operation *op) {
    spin_ofi_complete(op, (struct completion){.entry.flags = FI_RECV | (op->kind == TAGGED ? FI_TAGGED : FI_MSG),
                                              .entry.tag = op->tag,
                                              .error = ECANCELED});
}

void spin_ofi_fail(struct operation *op, int error, ptl_ni_fail_t card_error) {
    spin_ofi_complete(op, (struct completion){.entry.tag = op->tag, .error = error, .card_error = card_error});
}

void spin_ofi_initiator_event(struct event_sink *sink, const ptl_event_t *event) {
    struct operation *op = CONTAINER(sink, struct operation, sink);
    switch (event->type) {
    case PTL_EVENT_SEND:
    case PTL_EVENT_ACK:
    case PTL_EVENT_REPLY:
    case PTL_EVENT_GET: break;
    default: spin_ofi_event_unexpected(event); return;
    }
    if (event->ni_fail_type == PTL_NI_OK) {
        spin_ofi_complete(op, (struct completion){.entry.len = op->length});
        return;
    }
    if (op->appended && event->type != PTL_EVENT_GET)
        spin_ofi_operation_unlink(op);
    spin_ofi_fail(op, spin_ofi_event_errno(event->ni_fail_type), event->ni_fail_type);
}
