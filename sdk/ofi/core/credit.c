/* SPDX-License-Identifier: Apache-2.0 */
#include "credit.h"
#include "domain.h"

#include <stdlib.h>

enum { UNIT = 1024 }; /* bytes */
/* Units of room at the first endpoint of a process, and at each further one. ANY_BUFFERS bounce buffers hold those
 * of a first one. Together they are fewer than the messages without a receive that a card keeps
 * (max_unexpected_headers, 16,384). */
enum { FIRST_ROOM = 6720, FURTHER_ROOM = 1200 };

/* ---- Units ------------------------------------------------------------------------------------------------------- */

unsigned spin_ofi_credit_units(size_t length) { return length > UNIT ? (unsigned)((length + UNIT - 1) / UNIT) : 1; }

/* Returns the units that may be in flight from one endpoint to another, given their numbers in their processes. The
 * first endpoints of all processes share one half of the room, and the ENDPOINTS - 1 further ones the other half. */
static unsigned window(const struct domain *domain, unsigned from, unsigned to) {
    unsigned room = to == 0 ? FIRST_ROOM : FURTHER_ROOM;
    unsigned share = room / (from == 0 ? 2 : 2 * (ENDPOINTS - 1)) / (unsigned)domain->ranks;
    return share > 0 ? share : 1;
}

size_t spin_ofi_credit_room(const struct endpoint *ep) {
    const struct domain *domain = ep->domain;
    const size_t of_rank = window(domain, 0, ep->number) + (ENDPOINTS - 1) * (size_t)window(domain, 1, ep->number);
    return (size_t)domain->ranks * of_rank * UNIT;
}

bool spin_ofi_credit_is_short(const struct endpoint *ep, const struct name *name, size_t length) {
    return length <= ep->domain->eager && spin_ofi_credit_units(length) <= window(ep->domain, ep->number, name->number);
}

/* ---- Peers ------------------------------------------------------------------------------------------------------- */

/* A request for units makes an event only if it fails. */
static void request_failed(struct event_sink *sink, const ptl_event_t *event) {
    (void)event;
    CONTAINER(sink, struct peer, sink)->gone = true;
}

int spin_ofi_credit_start(struct endpoint *ep) {
    struct domain *domain = ep->domain;
    const size_t count = (size_t)domain->ranks * ENDPOINTS;
    struct peer **peers = &domain->peers[ep->number];
    /* Events may still point to the peers of an earlier endpoint with this number. */
    if (!*peers && !(*peers = malloc(count * sizeof **peers)))
        return PTL_NO_SPACE;
    for (size_t i = 0; i < count; i++)
        (*peers)[i] = (struct peer){.sink.handle = request_failed};
    ep->peers = *peers;
    return PTL_OK;
}

static struct peer *peer_of(const struct endpoint *ep, ptl_nid_t nid, ptl_pid_t pid, unsigned number) {
    const int rank = spin_rank_of(nid, pid);
    return rank < 0 ? NULL : &ep->peers[(unsigned)rank * ENDPOINTS + number % ENDPOINTS];
}

struct peer *spin_ofi_credit_peer(const struct endpoint *ep, const struct name *name) {
    return peer_of(ep, name->nid, name->pid, name->number);
}

bool spin_ofi_credit_fits(const struct endpoint *ep, const struct peer *peer, enum kind kind, const struct name *name,
                          unsigned units) {
    return peer->flows[kind].under_way + units <= window(ep->domain, ep->number, name->number);
}

/* ---- Messages about units ---------------------------------------------------------------------------------------- */

/* Sends a message to a control entry, with the descriptor `md`. The failure of one with an `asking` peer marks this
 * peer. */
static int tell(struct endpoint *ep, const struct name *name, int message, enum kind kind, unsigned value,
                ptl_handle_md_t md, struct peer *asking) {
    const ptl_process_t target = {.phys = {name->nid, name->pid}};
    return PtlPut(md, 0, 0, asking ? PTL_ACK_REQ : PTL_NO_ACK_REQ, target, name->control_pt, (ptl_match_bits_t)message,
                  0, asking, CONTROL_DATA(kind, value) | HEADER_FROM(ep->number));
}

void spin_ofi_credit_ask(struct endpoint *ep, struct peer *peer, enum kind kind, const struct name *name) {
    struct flow *flow = &peer->flows[kind];
    const ptl_handle_md_t md = ep->domain->card.md_volatile;
    if (!flow->asked)
        flow->asked = tell(ep, name, CONTROL_ASK, kind, ep->control_pt, md, peer) == PTL_OK;
}

/* Returns all units that a peer is owed. A peer that has closed its endpoint needs none, so the message may be lost. */
static void give_back(struct endpoint *ep, enum kind kind, struct flow *flow, const struct name *name) {
    struct card *card = &ep->domain->card;
    if (spin_ofi_card_bind_lossy(card) == PTL_OK &&
        tell(ep, name, CONTROL_RETURN, kind, flow->owed, card->md_lossy, NULL) == PTL_OK)
        flow->owed = 0;
}

static void returned(struct flow *flow, unsigned units) {
    flow->under_way -= units < flow->under_way ? units : flow->under_way;
}

void spin_ofi_credit_taken(struct endpoint *ep, enum kind kind, const ptl_event_t *event) {
    const unsigned number = HEADER_NUMBER(event->hdr_data);
    struct peer *peer = peer_of(ep, event->initiator.phys.nid, event->initiator.phys.pid, number);
    if (!peer)
        return;
    struct flow *flow = &peer->flows[kind];
    const bool is_long = event->hdr_data & HEADER_IS_LONG;
    returned(flow, is_long ? LONG_OWED(event->remote_offset) : HEADER_OWED(event->hdr_data));
    flow->owed += spin_ofi_credit_units(event->rlength);
    if (2 * flow->owed > window(ep->domain, number, ep->number)) {
        const struct name *name = spin_ofi_av_name(ep->av, spin_ofi_av_address(ep->av, event->initiator, number));
        if (name)
            give_back(ep, kind, flow, name);
    }
}

bool spin_ofi_credit_event(struct endpoint *ep, const ptl_event_t *event) {
    const enum kind kind = CONTROL_KIND(event->hdr_data);
    const unsigned value = CONTROL_VALUE(event->hdr_data), number = HEADER_NUMBER(event->hdr_data);
    struct peer *peer = peer_of(ep, event->initiator.phys.nid, event->initiator.phys.pid, number);
    if (event->match_bits == CONTROL_CQ_DATA || !peer)
        return false;
    struct flow *flow = &peer->flows[kind];
    if (event->match_bits == CONTROL_RETURN) {
        returned(flow, value);
        flow->asked = false;
        return true;
    }
    peer->name = (struct name){
        .nid = event->initiator.phys.nid, .pid = event->initiator.phys.pid, .control_pt = (uint16_t)value};
    if (flow->owed > 0 || !card_matches(ep, kind)) {
        give_back(ep, kind, flow, &peer->name);
        return true;
    }
    /* The card's list is drained once all earlier events are handled. */
    peer->waits = true;
    if (!ep->is_asked) {
        ep->is_asked = true;
        ep->next_asked = ep->domain->asked;
        ep->domain->asked = ep;
    }
    return true;
}

void spin_ofi_credit_answer(struct endpoint *ep) {
    for (size_t i = 0; i < (size_t)ep->domain->ranks * ENDPOINTS; i++) {
        struct peer *peer = &ep->peers[i];
        if (peer->waits)
            give_back(ep, TAGGED, &peer->flows[TAGGED], &peer->name);
        peer->waits = false;
    }
}
