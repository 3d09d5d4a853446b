/* SPDX-License-Identifier: Apache-2.0 */
#include "recv.h"
#include "handlers.h"

#include <string.h>

/* ---- HPU memory -------------------------------------------------------------------------------------------------- */

/* Allocates HPU memory for receives with handlers. A card that has less of it serves fewer at the same time. */
static void states_alloc(struct domain *domain) {
    if (domain->card.protocol != PROTOCOL_SPIN || domain->free_count > 0)
        return;
    for (uint32_t i = 0; i < RECEIVE_STATES; i++) {
        if (PtlHPUAllocMem(sizeof(struct receive_state), domain->card.ni, &domain->states[i]) != PTL_OK)
            break;
        domain->free_states[domain->free_count++] = i;
    }
}

static void state_take(struct operation *op) {
    struct domain *domain = op->ep->domain;
    op->receive.state = domain->free_states[--domain->free_count];
    domain->card.pump.numbered[op->receive.state] = &op->sink;
}

static void state_return(struct operation *op) {
    struct domain *domain = op->ep->domain;
    if (op->receive.state == NO_STATE)
        return;
    domain->card.pump.numbered[op->receive.state] = NULL;
    domain->free_states[domain->free_count++] = op->receive.state;
    op->receive.state = NO_STATE;
}

/* ---- Memory of operations ---------------------------------------------------------------------------------------- */

/* Copies a message into the memory of an operation. Returns the bytes that fit. */
static size_t copy_in(struct operation *op, const unsigned char *message, size_t length) {
    size_t copied = 0;
    for (unsigned i = 0; i < op->count && copied < length; i++) {
        size_t piece = op->pieces[i].iov_len, here = piece < length - copied ? piece : length - copied;
        memcpy(op->pieces[i].iov_base, message + copied, here);
        copied += here;
    }
    return copied;
}

/* Charges the CPU for that copy. It reads the cache lines that a piece fills in part before it writes them (sPIN
 * §5.2). */
static void charge_copy(const struct operation *op, size_t copied) {
    enum { LINE = 64 };
    if (copied == 0)
        return;
    if (op->count == 1) {
        spin_host_copy(copied);
        return;
    }
    uint64_t read = copied, written = 0;
    for (unsigned i = 0; i < op->count; i++) {
        const size_t here = op->pieces[i].iov_len < copied ? op->pieces[i].iov_len : copied;
        const uintptr_t start = (uintptr_t)op->pieces[i].iov_base, end = start + here;
        const uint64_t first_whole = (start + LINE - 1) / LINE, last_whole = end / LINE;
        const uint64_t lines = here > 0 ? (end - 1) / LINE - start / LINE + 1 : 0;
        const uint64_t whole = last_whole > first_whole ? last_whole - first_whole : 0;
        read += (lines - whole) * LINE;
        written += lines * LINE;
        copied -= here;
    }
    spin_host_memory(read, written);
}

/* ---- Delivery ---------------------------------------------------------------------------------------------------- */

/* Completes a receive whose message of `total` bytes is in its memory, as far as it fits. */
static void received(struct operation *op, uint64_t total) {
    const struct domain *domain = op->ep->domain;
    const struct receive *receive = &op->receive;
    bool fits = total <= op->length;
    uint64_t kind = op->kind == TAGGED ? FI_TAGGED : FI_MSG;
    state_return(op);
    struct completion completion = {
        .entry = {.flags = FI_RECV | kind | (receive->header & HEADER_HAS_DATA ? FI_REMOTE_CQ_DATA : 0),
                  .len = fits ? total : op->length,
                  .buf = op->count > 0 ? op->pieces[0].iov_base : NULL,
                  .data = HEADER_DATA(receive->header),
                  .tag = op->tag},
        .source = domain->tells_source
                      ? spin_ofi_av_address(op->ep->av, receive->pattern.source, HEADER_NUMBER(receive->header))
                      : FI_ADDR_NOTAVAIL,
        .error = fits ? 0 : FI_ETRUNC,
        .overflow = fits ? 0 : total - op->length,
    };
    spin_ofi_complete(op, completion);
}

/* Returns the match bits for the get of a long message. */
static uint64_t long_bits(const struct domain *domain, uint64_t header) {
    return domain->card.protocol == PROTOCOL_SPIN ? LONG_BITS(LONG_COOKIE(header)) : LONG_COOKIE(header);
}

/* Gets a long message. */
static void fetch(struct operation *op) {
    const struct domain *domain = op->ep->domain;
    const struct receive *receive = &op->receive;
    size_t total = LONG_TOTAL(receive->offset), length = total < op->length ? total : op->length;
    ptl_handle_md_t md;
    ptl_size_t start;
    state_return(op);
    int rc = spin_ofi_operation_descriptor(op, domain->card.md_quiet, PTL_MD_EVENT_SEND_DISABLE, &md, &start);
    if (rc == PTL_OK)
        rc = PtlGet(md, start, length, receive->pattern.source, LONG_PT(receive->offset),
                    long_bits(domain, receive->header), 0, op);
    if (rc != PTL_OK)
        spin_ofi_fail(op, spin_ofi_errno(rc), PTL_NI_OK);
}

/* Stores the source, the tag and the protocol's data of the message that an operation receives. */
static void identify(struct operation *op, const struct arrival *arrival) {
    op->tag = arrival->tag;
    op->receive.pattern.source = arrival->source;
    op->receive.header = arrival->header;
    op->receive.offset = arrival->offset;
}

void spin_ofi_recv_deliver(struct operation *op, const struct arrival *arrival) {
    identify(op, arrival);
    if (arrival->header & HEADER_IS_LONG) {
        fetch(op);
        return;
    }
    charge_copy(op, copy_in(op, arrival->start, arrival->length));
    received(op, arrival->length);
}

void spin_ofi_recv_discard(const struct endpoint *ep, const struct arrival *arrival) {
    if (!(arrival->header & HEADER_IS_LONG))
        return;
    int rc = PtlGet(ep->domain->card.md_quiet, 0, 0, arrival->source, LONG_PT(arrival->offset),
                    long_bits(ep->domain, arrival->header), 0, NULL);
    if (rc != PTL_OK)
        spin_ofi_complain("a message cannot be discarded (Portals error %d)", rc);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Ends a receive after all events of its long message, or after a failure. */
static void fetched(struct operation *op) {
    const ptl_ni_fail_t failure = op->receive.failure;
    if (failure == PTL_NI_OK) {
        received(op, LONG_TOTAL(op->receive.offset));
        return;
    }
    state_return(op);
    spin_ofi_fail(op, spin_ofi_event_errno(failure), failure);
}

/* Handles the event of a message for a receive on the card, or the reply to the get of a long message. The reply to
 * a handler's get may precede the event of the announcement. */
static void receive_event(struct event_sink *sink, const ptl_event_t *event) {
    struct operation *op = CONTAINER(sink, struct operation, sink);
    struct receive *receive = &op->receive;
    const bool reply = event->type == PTL_EVENT_REPLY;
    if (!reply && event->type != PTL_EVENT_PUT && event->type != PTL_EVENT_PUT_OVERFLOW) {
        spin_ofi_event_unexpected(event);
        return;
    }
    if (!reply) {
        if (op->list)
            spin_ofi_operations_remove(op);
        spin_ofi_credit_taken(op->ep, TAGGED, event);
    }
    if (event->ni_fail_type != PTL_NI_OK) {
        receive->failure = event->ni_fail_type;
        if (!reply)
            receive->awaited = 1;
    }
    if (reply || receive->failure != PTL_NI_OK) {
        if (receive->state == NO_STATE || --receive->awaited == 0)
            fetched(op);
        return;
    }
    struct arrival arrival = spin_ofi_arrival_of(event);
    if (event->type == PTL_EVENT_PUT_OVERFLOW) {
        state_return(op);
        spin_ofi_recv_deliver(op, &arrival);
        return;
    }
    identify(op, &arrival);
    if (!(event->hdr_data & HEADER_IS_LONG))
        received(op, event->rlength);
    else if (receive->state == NO_STATE || LONG_PT(receive->offset) != op->ep->pts[TAGGED])
        fetch(op);
    else if (--receive->awaited == 0)
        fetched(op);
}

/* ---- Matching on the CPU ----------------------------------------------------------------------------------------- */

/* Closes a receive with FI_MULTI_RECV: it takes no more messages. */
static void close_multi(struct operation *op) {
    spin_ofi_operations_remove(op);
    if (op->receive.children == 0)
        spin_ofi_complete(op, (struct completion){0});
}

static struct operation *receive_new(struct endpoint *ep, enum kind kind, void *context, uint64_t flags, bool report) {
    struct operation *op = spin_ofi_operation_new(ep, RECEIVE, receive_event, context, flags, report);
    if (op) {
        op->kind = kind;
        op->receive = (struct receive){.state = NO_STATE, .awaited = 1, .failure = PTL_NI_OK};
    }
    return op;
}

/* Places a message behind the previous one in the memory of a receive with FI_MULTI_RECV. Closes the receive and
 * returns false if it has not enough room left. */
static bool deliver_to_multi(struct operation *op, const struct arrival *arrival) {
    struct receive *receive = &op->receive;
    size_t total = spin_ofi_arrival_total(arrival), rest = op->length - receive->used;
    if (total > rest && receive->used > 0) {
        close_multi(op);
        return false;
    }
    const struct iovec iov = {(char *)op->pieces[0].iov_base + receive->used, rest};
    struct operation *child = receive_new(op->ep, op->kind, op->context, op->flags & ~FI_MULTI_RECV, op->report);
    if (!child) {
        spin_ofi_complain("no memory for a message");
        spin_ofi_cq_fail(op->ep->rx_cq, ENOMEM);
        return true;
    }
    spin_ofi_operation_memory(child, &iov, 1);
    child->receive.parent = op;
    receive->children++;
    receive->used += total < rest ? total : rest;
    if (op->length - receive->used < op->ep->min_multi_recv || op->length == receive->used)
        spin_ofi_operations_remove(op);
    spin_ofi_recv_deliver(child, arrival);
    return true;
}

/* Gives a message to a receive. Returns false if the receive has been closed instead. */
static bool give(struct operation *op, const struct arrival *arrival) {
    if (op->receive.multi)
        return deliver_to_multi(op, arrival);
    if (op->list)
        spin_ofi_operations_remove(op);
    spin_ofi_recv_deliver(op, arrival);
    return true;
}

/* Gives a message to the first receive that matches, or keeps it. */
static void arrived(struct endpoint *ep, enum kind kind, const struct arrival *arrival) {
    for (struct operation *next, *op = ep->posted[kind].first; op; op = next) {
        next = op->next;
        if (spin_ofi_arrival_matches(arrival, &op->receive.pattern) && give(op, arrival))
            return;
    }
    spin_ofi_unexpected_keep(ep, kind, arrival);
}

/* Posts a receive in the CPU's list, and gives it the messages that have arrived. */
static void match_receive(struct operation *op) {
    struct endpoint *ep = op->ep;
    const enum kind kind = op->kind;
    spin_ofi_operations_append(&ep->posted[kind], op);
    for (bool more = true; more;) {
        struct arrival *arrival = spin_ofi_unexpected_take(ep, kind, &op->receive.pattern);
        if (!arrival)
            return;
        bool given = give(op, arrival);
        /* A receive that has been closed, or has taken its one message, may be freed. */
        more = given && ep->posted[kind].last == op && op->receive.multi;
        if (given)
            spin_ofi_unexpected_free(arrival);
        else
            spin_ofi_arrivals_prepend(&ep->arrivals[kind], arrival);
    }
    spin_ofi_bounce_link(ep, kind);
}

/* Gives a receive the first message in the CPU's list that matches. Returns false without one. */
static bool match_kept(struct operation *op) {
    struct endpoint *ep = op->ep;
    struct arrival *arrival = spin_ofi_unexpected_take(ep, op->kind, &op->receive.pattern);
    if (!arrival)
        return false;
    spin_ofi_recv_deliver(op, arrival);
    spin_ofi_unexpected_free(arrival);
    spin_ofi_bounce_link(ep, TAGGED);
    return true;
}

/* ---- Matching on the card ---------------------------------------------------------------------------------------- */

/* Appends an entry for a receive. Returns a Portals code. */
static int card_receive(struct operation *op) {
    struct endpoint *ep = op->ep;
    struct domain *domain = ep->domain;
    const struct pattern *pattern = &op->receive.pattern;
    struct receive_state state;
    ptl_me_t me = {.start = op->count > 0 ? op->pieces[0].iov_base : NULL,
                   .length = op->length,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id = pattern->source,
                   .match_bits = pattern->tag,
                   .ignore_bits = pattern->ignore,
                   .hpu_memory = PTL_INVALID_HANDLE};
    /* Gets of long messages have the highest bit. No receive matches them. */
    if (domain->card.protocol == PROTOCOL_SPIN)
        me.ignore_bits &= UINT64_MAX >> 1;
    if (op->count > 1) {
        me.start = &op->pieces[0];
        me.length = op->count;
        me.options |= PTL_IOVEC;
    }
    /* A long message does not fit into less. */
    if (op->length > domain->eager && domain->free_count > 0) {
        state_take(op);
        op->receive.awaited = 2;
        state = (struct receive_state){.index = op->receive.state + 1, .pt = ep->pts[TAGGED], .room = op->length};
        me.hpu_memory = domain->states[op->receive.state];
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
        me.header_handler = spin_ofi_header_handler;
    }
    int rc = spin_ofi_operation_append(op, ep->pts[TAGGED], &me);
    if (rc != PTL_OK)
        state_return(op);
    else
        spin_ofi_operations_append(&ep->posted[TAGGED], op);
    return rc;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

ssize_t spin_ofi_recv_new(struct endpoint *ep, const struct recv *call, struct operation **op) {
    const bool multi = call->flags & FI_MULTI_RECV;
    *op = NULL;
    if (call->count > IOV_LIMIT || (multi && (call->kind == TAGGED || call->count != 1)))
        return -EINVAL;
    *op = receive_new(ep, call->kind, call->context, 0, call->report);
    if (!*op)
        return -EAGAIN;
    spin_ofi_operation_memory(*op, call->iov, call->count);
    (*op)->tag = call->pattern.tag;
    (*op)->receive.pattern = call->pattern;
    (*op)->receive.multi = multi;
    return 0;
}

ssize_t spin_ofi_recv(struct endpoint *ep, const struct recv *call) {
    struct operation *op;
    ssize_t failed = spin_ofi_recv_new(ep, call, &op);
    if (failed)
        return failed;
    if (!card_matches(ep, call->kind)) {
        match_receive(op);
        return 0;
    }
    /* The messages that the CPU has taken off the card's list precede those that are still there. */
    int rc = match_kept(op) ? PTL_OK : card_receive(op);
    if (rc != PTL_OK)
        spin_ofi_operation_free(op);
    return spin_ofi_result(rc);
}

void spin_ofi_recv_cancel(struct endpoint *ep, const void *context) {
    for (enum kind kind = MESSAGE; kind < KINDS; kind++) {
        for (struct operation *op = ep->posted[kind].first; op; op = op->next) {
            if (op->context != context)
                continue;
            /* A receive whose message has arrived ends as usual. */
            if (op->appended && spin_ofi_operation_unlink(op) != PTL_OK)
                return;
            state_return(op);
            if (op->receive.children > 0) {
                spin_ofi_operations_remove(op);
                op->receive.cancelled = true;
            } else {
                spin_ofi_cancelled(op);
            }
            return;
        }
    }
}

int spin_ofi_recv_start(struct endpoint *ep) {
    ep->arrived = arrived;
    int rc = spin_ofi_bounce_link(ep, MESSAGE);
    if (rc == PTL_OK)
        rc = spin_ofi_bounce_link(ep, TAGGED);
    if (rc == PTL_OK)
        states_alloc(ep->domain);
    return rc;
}

void spin_ofi_recv_stop(struct endpoint *ep) {
    for (enum kind kind = MESSAGE; kind < KINDS; kind++) {
        while (ep->posted[kind].first) {
            struct operation *op = ep->posted[kind].first;
            if (op->appended)
                spin_ofi_operation_unlink(op);
            spin_ofi_operation_free(op);
        }
    }
}
