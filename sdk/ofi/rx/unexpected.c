/* SPDX-License-Identifier: Apache-2.0 */
#include "unexpected.h"

#include <stdlib.h>

void spin_ofi_unexpected_start(struct endpoint *ep) {
    for (enum kind kind = MESSAGE; kind < KINDS; kind++)
        spin_ofi_arrivals_init(&ep->arrivals[kind]);
    spin_ofi_arrivals_init(&ep->claimed);
}

void spin_ofi_unexpected_release(struct endpoint *ep) {
    for (enum kind kind = MESSAGE; kind < KINDS; kind++)
        spin_ofi_arrivals_release(&ep->arrivals[kind]);
    spin_ofi_arrivals_release(&ep->claimed);
}

void spin_ofi_unexpected_keep(struct endpoint *ep, enum kind kind, const struct arrival *arrival) {
    if (spin_ofi_arrivals_append(&ep->arrivals[kind], arrival)) {
        spin_ofi_bounce_hold(arrival->buffer);
        return;
    }
    spin_ofi_complain("no memory for a message without a receive");
    spin_ofi_cq_fail(ep->rx_cq, ENOMEM);
}

struct arrival *spin_ofi_unexpected_take(struct endpoint *ep, enum kind kind, const struct pattern *pattern) {
    struct arrival *arrival = spin_ofi_arrivals_find(&ep->arrivals[kind], pattern);
    if (arrival)
        spin_ofi_arrivals_remove(&ep->arrivals[kind], arrival);
    return arrival;
}

void spin_ofi_unexpected_free(struct arrival *arrival) {
    spin_ofi_bounce_drop(arrival->buffer);
    free(arrival);
}

/* ---- Claimed messages -------------------------------------------------------------------------------------------- */

bool spin_ofi_claimed_keep(struct endpoint *ep, const struct arrival *arrival, void *context) {
    struct arrival *claimed = malloc(sizeof *claimed);
    if (!claimed)
        return false;
    *claimed = *arrival;
    claimed->claimed = context;
    spin_ofi_arrivals_prepend(&ep->claimed, claimed);
    spin_ofi_bounce_hold(claimed->buffer);
    return true;
}

struct arrival *spin_ofi_claimed_take(struct endpoint *ep, void *context) {
    struct arrival *arrival = ep->claimed.first;
    while (arrival && arrival->claimed != context)
        arrival = arrival->next;
    if (arrival)
        spin_ofi_arrivals_remove(&ep->claimed, arrival);
    return arrival;
}

/* ---- Draining the card's list ------------------------------------------------------------------------------------ */

static void drain_event(struct event_sink *sink, const ptl_event_t *event) {
    struct endpoint *ep = CONTAINER(sink, struct drain, sink)->ep;
    ep->drain.answered = true;
    ep->drain.more = event->type == PTL_EVENT_PUT_OVERFLOW;
    if (!ep->drain.more)
        return;
    spin_ofi_credit_taken(ep, TAGGED, event);
    if (event->ni_fail_type != PTL_NI_OK) {
        spin_ofi_bounce_lost(event);
        return;
    }
    struct arrival arrival = spin_ofi_arrival_of(event);
    arrival.buffer = spin_ofi_bounce_find(ep, event->start);
    spin_ofi_unexpected_keep(ep, TAGGED, &arrival);
}

int spin_ofi_drain_next(struct endpoint *ep) {
    const ptl_me_t any = {.ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                          .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                          .ignore_bits = UINT64_MAX,
                          .hpu_memory = PTL_INVALID_HANDLE};
    ep->drain = (struct drain){.sink.handle = drain_event, .ep = ep};
    return PtlMESearch(ep->domain->card.ni, ep->pts[TAGGED], &any, PTL_SEARCH_DELETE, &ep->drain);
}
