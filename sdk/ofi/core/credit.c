/* Flow control: memory for messages without a receive never overflows.
 *
 * An endpoint has room for messages that nobody has taken, counted in units: a message takes one, and a short message one for each
 * UNIT bytes that it begins. A share of the room, the window, belongs to each endpoint of the job. A sender counts the units that are
 * under way to an endpoint and lets no more be there than its window; a call that would returns -FI_EAGAIN. The receiver returns
 * units when their message is taken: when it has found its receive, or when the CPU has put it into a list of its own. Messages in the
 * other direction bring them (OWED in their headers), or a message of its own when half a window is owed.
 *
 * A sender without units asks for some. The receiver then takes what its card keeps without a receive onto the CPU's list, when it is
 * in the library the next time. So a receive never waits for a message that messages without a receive keep from coming. */
#include "../core/domain.h"

#include <stdlib.h>

enum { UNIT = 1024 };
/* Units that there is room for at the first endpoint of a process, and at each further one. The first ones' are what ANY_BUFFERS hold, and
 * together they are fewer than the messages without a receive that a card keeps (max_unexpected_headers, 16,384). */
enum { FIRST_ROOM = 6720, FURTHER_ROOM = 1200 };
/* Match bits of messages to the control entry */
enum { CONTROL_CQ_DATA, CONTROL_RETURN, CONTROL_ASK };
/* Header data of the latter two: the units, or the portal table index for the answer; the kind; the endpoint as in every header. */
#define CONTROL_DATA(kind, value) ((uint64_t)(kind) << 32 | (value))
#define CONTROL_KIND(header) ((enum kind)((header) >> 32 & 1))
#define CONTROL_VALUE(header) ((uint32_t)(header) & 0xffff)

static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned numbers_used; /* a bit for each endpoint of the process */

int endpoint_number_take(unsigned *number) {
    pthread_mutex_lock(&numbers_lock);
    unsigned free = 0;
    while (free < ENDPOINTS && numbers_used >> free & 1)
        free++;
    if (free < ENDPOINTS)
        numbers_used |= 1u << free;
    pthread_mutex_unlock(&numbers_lock);
    *number = free;
    return free < ENDPOINTS ? 0 : -EMFILE;
}

void endpoint_number_return(unsigned number) {
    pthread_mutex_lock(&numbers_lock);
    numbers_used &= ~(1u << number);
    pthread_mutex_unlock(&numbers_lock);
}

/* ---- Units ---------------------------------------------------------------------------------------------------------------------- */

unsigned flow_units(size_t length) { return length > UNIT ? (unsigned)((length + UNIT - 1) / UNIT) : 1; }

/* The units that may be under way from an endpoint to another, by their numbers in their processes. The first endpoints of all processes
 * have half of the room, and their ENDPOINTS - 1 further ones the rest. */
static unsigned window(const struct domain *domain, unsigned from, unsigned to) {
    unsigned room = to == 0 ? FIRST_ROOM : FURTHER_ROOM;
    unsigned share = room / (from == 0 ? 2 : 2 * (ENDPOINTS - 1)) / (unsigned)domain->ranks;
    return share > 0 ? share : 1;
}

size_t flow_buffers(const struct endpoint *ep) {
    const struct domain *domain = ep->domain;
    const size_t of_rank = window(domain, 0, ep->number) + (ENDPOINTS - 1) * (size_t)window(domain, 1, ep->number);
    const size_t room = (size_t)domain->ranks * of_rank * UNIT;
    /* A buffer takes at least this much, and one may be nearly full of messages that have been taken. */
    const size_t takes = BUFFER_SIZE - domain->eager, needed = (room + takes - 1) / takes + 1;
    return needed > ANY_BUFFERS ? needed : ANY_BUFFERS;
}

/* ---- Peers ---------------------------------------------------------------------------------------------------------------------- */

int flow_start(struct endpoint *ep) {
    struct domain *domain = ep->domain;
    const size_t count = (size_t)domain->ranks * ENDPOINTS;
    struct peer **peers = &domain->peers[ep->number];
    /* Events may still point to the peers of an earlier endpoint with this number. */
    if (!*peers && !(*peers = malloc(count * sizeof **peers)))
        return PTL_NO_SPACE;
    for (size_t i = 0; i < count; i++)
        (*peers)[i] = (struct peer){.what = PEER};
    ep->peers = *peers;
    return PTL_OK;
}

static struct peer *peer_of(const struct endpoint *ep, ptl_nid_t nid, unsigned number) {
    return nid < (ptl_nid_t)ep->domain->ranks ? &ep->peers[nid * ENDPOINTS + number % ENDPOINTS] : NULL;
}

struct peer *flow_peer(const struct endpoint *ep, const struct name *name) {
    return peer_of(ep, name->nid, name->number);
}

static void returned(struct flow *flow, unsigned units) {
    flow->under_way -= units < flow->under_way ? units : flow->under_way;
}

/* Sends a message about units to a peer; `asking` is told if it fails. A peer that has closed its endpoint needs no units back,
 * so their return is sent through a descriptor that permits its loss. */
static int tell(struct endpoint *ep, const struct name *name, int what, enum kind kind, unsigned value,
                struct peer *asking) {
    const ptl_process_t target = {.phys = {name->nid, name->pid}};
    struct domain *domain = ep->domain;
    const unsigned options = PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_UNRELIABLE;
    const int rc =
        !asking && domain->md_lossy == PTL_INVALID_HANDLE ? bind_all(domain, options, &domain->md_lossy) : PTL_OK;
    if (rc != PTL_OK)
        return rc;
    return PtlPut(asking ? domain->md_volatile : domain->md_lossy, 0, 0, asking ? PTL_ACK_REQ : PTL_NO_ACK_REQ, target,
                  name->control_pt, (ptl_match_bits_t)what, 0, asking,
                  CONTROL_DATA(kind, value) | HEADER_FROM(ep->number));
}

/* Returns what is owed to a peer. */
static void give_back(struct endpoint *ep, enum kind kind, struct flow *flow, const struct name *name) {
    if (tell(ep, name, CONTROL_RETURN, kind, flow->owed, NULL) == PTL_OK)
        flow->owed = 0;
}

bool flow_is_short(const struct endpoint *ep, const struct name *name, size_t length) {
    return length <= ep->domain->eager && flow_units(length) <= window(ep->domain, ep->number, name->number);
}

bool flow_has_room(struct endpoint *ep, enum kind kind, const struct name *name, unsigned units) {
    struct peer *peer = flow_peer(ep, name);
    if (!peer || peer->gone)
        return true;
    struct flow *flow = &peer->flows[kind];
    const unsigned most = window(ep->domain, ep->number, name->number);
    if (flow->under_way + units > most)
        progress(ep->domain);
    if (flow->under_way + units <= most)
        return true;
    if (!flow->asked)
        flow->asked = tell(ep, name, CONTROL_ASK, kind, ep->control_pt, peer) == PTL_OK;
    return peer->gone;
}

void flow_failed(struct peer *peer) { peer->gone = true; }

void flow_taken(struct endpoint *ep, enum kind kind, const ptl_event_t *event) {
    const unsigned number = HEADER_NUMBER(event->hdr_data);
    struct peer *peer = peer_of(ep, event->initiator.phys.nid, number);
    if (!peer)
        return;
    struct flow *flow = &peer->flows[kind];
    const bool is_long = event->hdr_data & HEADER_IS_LONG;
    returned(flow, is_long ? LONG_OWED(event->remote_offset) : HEADER_OWED(event->hdr_data));
    flow->owed += flow_units(event->rlength);
    if (2 * flow->owed > window(ep->domain, number, ep->number)) {
        const struct name *name = av_name(ep->av, av_address(ep->av, event->initiator, number));
        if (name)
            give_back(ep, kind, flow, name);
    }
}

/* ---- Requests for units --------------------------------------------------------------------------------------------------------- */

bool flow_event(struct endpoint *ep, const ptl_event_t *event) {
    const enum kind kind = CONTROL_KIND(event->hdr_data);
    const unsigned value = CONTROL_VALUE(event->hdr_data), number = HEADER_NUMBER(event->hdr_data);
    struct peer *peer = peer_of(ep, event->initiator.phys.nid, number);
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
    /* The card's list is taken when the events that have come before are handled. */
    peer->waits = true;
    if (!ep->is_asked) {
        ep->is_asked = true;
        ep->next_asked = ep->domain->asked;
        ep->domain->asked = ep;
    }
    return true;
}

/* Takes the messages without a receive off the card's list, one after the other, until there are none. */
static void take_all(struct endpoint *ep) {
    const ptl_me_t any = {.ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                          .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                          .ignore_bits = UINT64_MAX,
                          .hpu_memory = PTL_INVALID_HANDLE};
    ep->taking = (struct taking){.what = TAKING, .ep = ep, .more = true};
    while (ep->taking.more) {
        if (PtlMESearch(ep->domain->ni, ep->pts[TAGGED], &any, PTL_SEARCH_DELETE, &ep->taking) != PTL_OK)
            return;
        /* The message may still be landing. */
        for (ep->taking.answered = false; !ep->taking.answered;)
            handle_next(ep->domain);
    }
}

void flow_answer(struct domain *domain) {
    while (domain->asked) {
        struct endpoint *ep = domain->asked;
        domain->asked = ep->next_asked;
        ep->is_asked = false;
        take_all(ep);
        for (size_t i = 0; i < (size_t)domain->ranks * ENDPOINTS; i++) {
            struct peer *peer = &ep->peers[i];
            if (peer->waits)
                give_back(ep, TAGGED, &peer->flows[TAGGED], &peer->name);
            peer->waits = false;
        }
    }
}
