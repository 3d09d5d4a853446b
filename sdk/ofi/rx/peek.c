/* SPDX-License-Identifier: Apache-2.0 */
#include "peek.h"

/* Completes a search with the message that it has found. */
static void found(struct operation *op, const struct arrival *arrival) {
    uint64_t kind = op->kind == TAGGED ? FI_TAGGED : FI_MSG;
    spin_ofi_complete(
        op, (struct completion){
                .entry = {.flags = FI_RECV | kind | (arrival->header & HEADER_HAS_DATA ? FI_REMOTE_CQ_DATA : 0),
                          .len = spin_ofi_arrival_total(arrival),
                          .data = HEADER_DATA(arrival->header),
                          .tag = arrival->tag},
                .source = spin_ofi_av_address(op->ep->av, arrival->source, HEADER_NUMBER(arrival->header))});
}

/* Completes a search with its message, which it claims or discards according to its flags. */
static void finish(struct operation *op, const struct arrival *arrival) {
    struct endpoint *ep = op->ep;
    if (op->search.flags & FI_CLAIM && !spin_ofi_claimed_keep(ep, arrival, op->context)) {
        spin_ofi_recv_discard(ep, arrival);
        spin_ofi_fail(op, ENOMEM, PTL_NI_OK);
        return;
    }
    if (op->search.flags & FI_DISCARD)
        spin_ofi_recv_discard(ep, arrival);
    found(op, arrival);
}

static void search_event(struct event_sink *sink, const ptl_event_t *event) {
    struct operation *op = CONTAINER(sink, struct operation, sink);
    if (event->type != PTL_EVENT_SEARCH && event->type != PTL_EVENT_PUT && event->type != PTL_EVENT_PUT_OVERFLOW) {
        spin_ofi_event_unexpected(event);
        return;
    }
    if (event->ni_fail_type != PTL_NI_OK) {
        spin_ofi_fail(op, spin_ofi_event_errno(event->ni_fail_type), event->ni_fail_type);
        return;
    }
    struct arrival arrival = spin_ofi_arrival_of(event);
    arrival.buffer = spin_ofi_bounce_find(op->ep, event->start);
    if (event->type == PTL_EVENT_PUT_OVERFLOW)
        spin_ofi_credit_taken(op->ep, TAGGED, event);
    finish(op, &arrival);
}

static bool takes(const struct operation *op) { return op->search.flags & (FI_CLAIM | FI_DISCARD); }

/* Searches the CPU's list. Returns false without a message that matches. */
static bool search_kept(struct operation *op) {
    struct endpoint *ep = op->ep;
    if (!takes(op)) {
        const struct arrival *arrival = spin_ofi_arrivals_find(&ep->arrivals[op->kind], &op->search.pattern);
        if (arrival)
            found(op, arrival);
        return arrival;
    }
    struct arrival *arrival = spin_ofi_unexpected_take(ep, op->kind, &op->search.pattern);
    if (!arrival)
        return false;
    finish(op, arrival);
    spin_ofi_unexpected_free(arrival);
    return true;
}

/* Searches the card's list. Returns a Portals code. */
static int search_card(struct operation *op) {
    const struct pattern *pattern = &op->search.pattern;
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE, /* only the first message */
                   .match_id = pattern->source,
                   .match_bits = pattern->tag,
                   .ignore_bits = pattern->ignore,
                   .hpu_memory = PTL_INVALID_HANDLE};
    return PtlMESearch(op->ep->domain->card.ni, op->ep->pts[TAGGED], &me,
                       takes(op) ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY, op);
}

ssize_t spin_ofi_peek(struct endpoint *ep, const struct recv *call) {
    struct operation *op = spin_ofi_operation_new(ep, SEARCH, search_event, call->context, 0, true);
    if (!op)
        return -EAGAIN;
    op->kind = call->kind;
    op->tag = call->pattern.tag;
    op->search = (struct search){.pattern = call->pattern, .flags = call->flags};
    /* The messages that the CPU has taken off the card's list precede those that are still there. */
    if (search_kept(op))
        return 0;
    if (!card_matches(ep, call->kind)) {
        spin_ofi_fail(op, ENOMSG, PTL_NI_NO_MATCH);
        return 0;
    }
    int rc = search_card(op);
    if (rc != PTL_OK)
        spin_ofi_operation_free(op);
    return spin_ofi_result(rc);
}

ssize_t spin_ofi_claim(struct endpoint *ep, const struct recv *call) {
    struct operation *op;
    ssize_t failed = spin_ofi_recv_new(ep, call, &op);
    if (failed)
        return failed;
    struct arrival *claimed = spin_ofi_claimed_take(ep, call->context);
    if (!claimed) {
        spin_ofi_operation_free(op);
        return -EINVAL;
    }
    if (call->flags & FI_DISCARD) {
        spin_ofi_recv_discard(ep, claimed);
        spin_ofi_complete(op, (struct completion){.entry.flags = FI_RECV | FI_TAGGED});
    } else {
        spin_ofi_recv_deliver(op, claimed);
    }
    spin_ofi_unexpected_free(claimed);
    spin_ofi_bounce_link(ep, call->kind);
    return 0;
}
