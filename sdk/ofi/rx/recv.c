/* Messages with and without tags (fi_msg(3), fi_tagged(3)).
 *
 * Up to `domain->eager` bytes are put at once. The sender of a longer message exposes it to gets and announces it; the receiver gets it. */
#include "../core/domain.h"

#include <stdlib.h>
#include <string.h>

/* ---- Portal table entries ------------------------------------------------------------------------------------------------------- */

/* HPU memory for receives with handlers. A card that has less of it serves fewer at the same time. */
static void states_alloc(struct domain *domain) {
    if (domain->protocol != PROTOCOL_SPIN || domain->free_count > 0)
        return;
    for (uint32_t i = 0; i < RECEIVE_STATES; i++) {
        if (PtlHPUAllocMem(sizeof(struct receive_state), domain->ni, &domain->states[i]) != PTL_OK)
            break;
        domain->free_states[domain->free_count++] = i;
    }
}

int messages_start(struct endpoint *ep) {
    struct domain *domain = ep->domain;
    ptl_me_t control = {.ct_handle = PTL_CT_NONE,
                        .uid = PTL_UID_ANY,
                        .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                        .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                        .ignore_bits = ~0ull,
                        .hpu_memory = PTL_INVALID_HANDLE};
    ep->control_target = (struct control){.what = CONTROL, .ep = ep};
    for (enum kind kind = MESSAGE; kind < KINDS; kind++)
        ep->arrivals[kind].end = &ep->arrivals[kind].first;
    int rc;
    if ((rc = pt_alloc(domain, endpoint_pt(ep->number, PT_MESSAGE), &ep->pts[MESSAGE])) != PTL_OK ||
        (rc = pt_alloc(domain, endpoint_pt(ep->number, PT_TAGGED), &ep->pts[TAGGED])) != PTL_OK ||
        (rc = pt_alloc(domain, endpoint_pt(ep->number, PT_DATA), &ep->data_pt)) != PTL_OK ||
        (rc = pt_alloc(domain, endpoint_pt(ep->number, PT_CONTROL), &ep->control_pt)) != PTL_OK ||
        (rc = PtlMEAppend(domain->ni, ep->control_pt, &control, PTL_PRIORITY_LIST, &ep->control_target,
                          &ep->control_target.entry)) != PTL_OK ||
        (rc = flow_start(ep)) != PTL_OK || (rc = buffers_link(ep, MESSAGE)) != PTL_OK ||
        (rc = buffers_link(ep, TAGGED)) != PTL_OK) {
        complain("fi_enable: the card's tables cannot be set up (Portals error %d)", rc);
        return -error_of(rc);
    }
    states_alloc(domain);
    ep->name = (struct name){.nid = domain->self.phys.nid,
                             .pid = domain->self.phys.pid,
                             .message_pt = (uint16_t)ep->pts[MESSAGE],
                             .tagged_pt = (uint16_t)ep->pts[TAGGED],
                             .remote_pt = (uint16_t)domain->remote_pt,
                             .control_pt = (uint16_t)ep->control_pt,
                             .number = (uint16_t)ep->number};
    return 0;
}

void messages_stop(struct endpoint *ep) {
    /* What is linked there ends with the interface; messages that still arrive are told as dropped. */
    for (enum kind kind = MESSAGE; kind < KINDS; kind++) {
        while (ep->posted[kind].first) {
            struct operation *op = ep->posted[kind].first;
            if (op->appended)
                PtlMEUnlink(handle_of(&op->entry));
            operation_free(op);
        }
    }
    PtlMEUnlink(ep->control_target.entry);
    for (size_t i = 0; i < ep->buffer_count; i++)
        if (ep->buffers[i]->linked)
            PtlMEUnlink(handle_of(&ep->buffers[i]->entry));
    PtlPTFree(ep->domain->ni, ep->control_pt);
    PtlPTFree(ep->domain->ni, ep->data_pt);
    PtlPTFree(ep->domain->ni, ep->pts[TAGGED]);
    PtlPTFree(ep->domain->ni, ep->pts[MESSAGE]);
    buffers_release(ep);
}

/* ---- Memory of operations ----------------------------------------------------------------------------------------------------------- */

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

/* Charges what that copy costs the CPU. Of cache lines that a piece fills in part it needs the rest, so that it reads them before it writes
 * them (sPIN §5.2). */
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

/* ---- Receiving -------------------------------------------------------------------------------------------------------------------- */

static void state_return(struct operation *op) {
    struct domain *domain = op->ep->domain;
    if (op->state == NO_STATE)
        return;
    domain->with_state[op->state] = NULL;
    domain->free_states[domain->free_count++] = op->state;
    op->state = NO_STATE;
}

size_t arrival_total(const struct arrival *arrival) {
    return arrival->header & HEADER_IS_LONG ? LONG_TOTAL(arrival->offset) : arrival->length;
}

/* A message of `total` bytes is in the memory of its receive, as far as it fits. */
static void received(struct operation *op, uint64_t total) {
    bool fits = total <= op->length;
    uint64_t kind = op->kind == TAGGED ? FI_TAGGED : FI_MSG;
    state_return(op);
    struct completion completion = {
        .entry = {.flags = FI_RECV | kind | (op->header & HEADER_HAS_DATA ? FI_REMOTE_CQ_DATA : 0),
                  .len = fits ? total : op->length,
                  .buf = op->count > 0 ? op->pieces[0].iov_base : NULL,
                  .data = HEADER_DATA(op->header),
                  .tag = op->tag},
        .source = op->ep->domain->tells_source ? av_address(op->ep->av, op->source, HEADER_NUMBER(op->header))
                                               : FI_ADDR_NOTAVAIL,
        .error = fits ? 0 : FI_ETRUNC,
        .overflow = fits ? 0 : total - op->length,
    };
    complete(op, completion);
}

/* Match bits of the get of a long message. */
static uint64_t long_bits(const struct domain *domain, uint64_t header) {
    return domain->protocol == PROTOCOL_SPIN ? LONG_BITS(LONG_COOKIE(header)) : LONG_COOKIE(header);
}

/* Gets a long message. */
static void fetch(struct operation *op) {
    struct domain *domain = op->ep->domain;
    size_t total = LONG_TOTAL(op->offset), length = total < op->length ? total : op->length;
    ptl_handle_md_t md;
    ptl_size_t start;
    state_return(op);
    int rc = descriptor(op, domain->md_quiet, PTL_MD_EVENT_SEND_DISABLE, &md, &start);
    if (rc == PTL_OK)
        rc = PtlGet(md, start, length, op->source, LONG_PT(op->offset), long_bits(domain, op->header), 0, op);
    if (rc != PTL_OK)
        fail(op, error_of(rc), PTL_NI_OK);
}

/* Takes note of which message an operation has received. */
static void identify(struct operation *op, const struct arrival *arrival) {
    op->source = arrival->source;
    op->tag = arrival->tag;
    op->header = arrival->header;
    op->offset = arrival->offset;
}

void deliver(struct operation *op, const struct arrival *arrival) {
    identify(op, arrival);
    if (arrival->header & HEADER_IS_LONG) {
        fetch(op);
        return;
    }
    charge_copy(op, copy_in(op, arrival->start, arrival->length));
    received(op, arrival->length);
}

void discard(struct endpoint *ep, const struct arrival *arrival) {
    if (!(arrival->header & HEADER_IS_LONG))
        return;
    int rc = PtlGet(ep->domain->md_quiet, 0, 0, arrival->source, LONG_PT(arrival->offset),
                    long_bits(ep->domain, arrival->header), 0, NULL);
    if (rc != PTL_OK)
        complain("a message cannot be discarded (Portals error %d)", rc);
}

/* All events of a long message have come. */
static void fetched(struct operation *op) {
    if (op->failure == PTL_NI_OK) {
        received(op, LONG_TOTAL(op->offset));
        return;
    }
    state_return(op);
    fail(op, error_of_event(op->failure), op->failure);
}

struct arrival arrival_of(const ptl_event_t *event) {
    return (struct arrival){.source = event->initiator,
                            .tag = event->match_bits,
                            .header = event->hdr_data,
                            .offset = event->remote_offset,
                            .start = event->start,
                            .length = event->mlength};
}

/* An event of a receive on the card, or of the get of a long message. */
void receive_event(struct operation *op, const ptl_event_t *event) {
    if (op->list && event->type != PTL_EVENT_REPLY)
        list_remove(op);
    /* The handler's get may end before the event of the announcement. */
    bool reply = event->type == PTL_EVENT_REPLY;
    if (!reply)
        flow_taken(op->ep, TAGGED, event);
    if (event->ni_fail_type != PTL_NI_OK) {
        op->failure = event->ni_fail_type;
        if (!reply)
            op->awaited = 1;
    }
    if (reply || op->failure != PTL_NI_OK) {
        if (op->state == NO_STATE || --op->awaited == 0)
            fetched(op);
        return;
    }
    struct arrival arrival = arrival_of(event);
    if (event->type == PTL_EVENT_PUT_OVERFLOW) {
        state_return(op);
        deliver(op, &arrival);
        return;
    }
    identify(op, &arrival);
    if (!(event->hdr_data & HEADER_IS_LONG))
        received(op, event->rlength);
    else if (op->state == NO_STATE || LONG_PT(op->offset) != op->ep->pts[TAGGED])
        fetch(op);
    else if (--op->awaited == 0)
        fetched(op);
}

/* Appends an entry for a receive. */
static int card_receive(struct operation *op) {
    struct endpoint *ep = op->ep;
    struct domain *domain = ep->domain;
    struct receive_state state;
    ptl_me_t me = {.start = op->count > 0 ? op->pieces[0].iov_base : NULL,
                   .length = op->length,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id = op->source,
                   .match_bits = op->tag,
                   .ignore_bits = op->ignore,
                   .hpu_memory = PTL_INVALID_HANDLE};
    /* Gets of long messages have the highest bit, and are for no receive. */
    if (domain->protocol == PROTOCOL_SPIN)
        me.ignore_bits &= UINT64_MAX >> 1;
    if (op->count > 1) {
        me.start = &op->pieces[0];
        me.length = op->count;
        me.options |= PTL_IOVEC;
    }
    /* A long message does not fit into less. */
    if (op->length > domain->eager && domain->free_count > 0) {
        op->state = domain->free_states[--domain->free_count];
        domain->with_state[op->state] = op;
        op->awaited = 2;
        state = (struct receive_state){.index = op->state + 1, .pt = ep->pts[TAGGED], .room = op->length};
        me.hpu_memory = domain->states[op->state];
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
        me.header_handler = ofi_header_handler;
    }
    int rc = operation_append(op, ep->pts[TAGGED], &me);
    if (rc != PTL_OK)
        state_return(op);
    else
        list_append(&ep->posted[TAGGED], op);
    return rc;
}

void search_found(struct operation *op, const struct arrival *arrival) {
    uint64_t kind = op->kind == TAGGED ? FI_TAGGED : FI_MSG;
    complete(op, (struct completion){
                     .entry = {.flags = FI_RECV | kind | (arrival->header & HEADER_HAS_DATA ? FI_REMOTE_CQ_DATA : 0),
                               .len = arrival_total(arrival),
                               .data = HEADER_DATA(arrival->header),
                               .tag = arrival->tag},
                     .source = av_address(op->ep->av, arrival->source, HEADER_NUMBER(arrival->header))});
}

void search_event(struct operation *op, const ptl_event_t *event) {
    if (event->ni_fail_type != PTL_NI_OK) {
        fail(op, error_of_event(event->ni_fail_type), event->ni_fail_type);
        return;
    }
    struct arrival arrival = arrival_of(event);
    arrival.buffer = buffer_of(op->ep, event->start);
    if (event->type == PTL_EVENT_PUT_OVERFLOW)
        flow_taken(op->ep, TAGGED, event);
    if (op->search_flags & FI_CLAIM)
        claim_keep(op->ep, &arrival, op->context);
    if (op->search_flags & FI_DISCARD)
        discard(op->ep, &arrival);
    search_found(op, &arrival);
}

static int card_search(struct operation *op) {
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE, /* the first message, and no others */
                   .match_id = op->source,
                   .match_bits = op->tag,
                   .ignore_bits = op->ignore,
                   .hpu_memory = PTL_INVALID_HANDLE};
    bool takes = op->search_flags & (FI_CLAIM | FI_DISCARD);
    return PtlMESearch(op->ep->domain->ni, op->ep->pts[TAGGED], &me, takes ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY, op);
}

/* A receive, a search, or what is done with a message that a search has claimed. */
static ssize_t receive(struct fid_ep *fid, enum kind kind, const struct iovec *iov, size_t count, fi_addr_t source,
                       uint64_t tag, uint64_t ignore, uint64_t flags, void *context) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    struct domain *domain = ep->domain;
    const ptl_process_t any = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};
    if (!ep->enabled || !ep->rx_cq)
        return -FI_EOPBADSTATE;
    if (!ep->directed)
        source = FI_ADDR_UNSPEC;
    bool report = !ep->rx_selective || flags & FI_COMPLETION;
    pthread_mutex_lock(&domain->lock);
    const int before = defer_begin(domain);
    ssize_t rc = -EINVAL;
    const struct name *name = source == FI_ADDR_UNSPEC ? NULL : av_name(ep->av, source);
    struct operation *op = operation_new(ep, flags & FI_PEEK ? SEARCH : RECEIVE, context, 0, report);
    if (!op) {
        rc = -EAGAIN;
        goto out;
    }
    bool claims = flags & FI_CLAIM && !(flags & FI_PEEK);
    struct arrival *claimed = claims ? claim_take(ep, context) : NULL;
    op->kind = kind;
    op->source = name ? (ptl_process_t){.phys = {name->nid, name->pid}} : any;
    op->source_number = name ? name->number : 0;
    op->tag = tag;
    op->ignore = ignore;
    op->search_flags = flags;
    op->multi = flags & FI_MULTI_RECV;
    op->report |= (flags & FI_PEEK) != 0;
    if (!operation_memory(op, iov, flags & FI_PEEK ? 0 : count) || (source != FI_ADDR_UNSPEC && !name) ||
        (op->multi && (kind == TAGGED || count != 1)) || (claims && !claimed) || tag & ~tag_format(domain->protocol)) {
        if (claimed) { /* The search's message stays claimed. */
            claimed->next = ep->claimed;
            ep->claimed = claimed;
        }
        operation_free(op);
        goto out;
    }
    bool card = kind == TAGGED && domain->protocol != PROTOCOL_CPU;
    rc = 0;
    if (claims) {
        if (flags & FI_DISCARD) {
            discard(ep, claimed);
            complete(op, (struct completion){.entry.flags = FI_RECV | FI_TAGGED});
        } else {
            deliver(op, claimed);
        }
        buffer_drop(claimed->buffer);
        free(claimed);
        buffers_link(ep, kind);
    } else if (card) {
        /* Messages that the CPU has taken off the card's list came before those that are still there. */
        int failed = flags & FI_PEEK  ? match_search(op) ? PTL_OK : card_search(op)
                     : match_kept(op) ? PTL_OK
                                      : card_receive(op);
        if (failed != PTL_OK) {
            operation_free(op);
            rc = result_of(failed);
        }
    } else if (flags & FI_PEEK) {
        progress(domain);
        if (!match_search(op))
            fail(op, ENOMSG, PTL_NI_NO_MATCH);
    } else {
        match_receive(op);
    }
out:
    defer_end(before);
    pthread_mutex_unlock(&domain->lock);
    return rc;
}

static ssize_t cancel(struct endpoint *ep, void *context) {
    for (enum kind kind = MESSAGE; kind < KINDS; kind++) {
        for (struct operation *op = ep->posted[kind].first; op; op = op->next) {
            if (op->context != context)
                continue;
            /* A receive whose message has arrived ends as if it had not been cancelled. */
            if (op->appended && PtlMEUnlink(handle_of(&op->entry)) != PTL_OK)
                return 0;
            state_return(op);
            if (op->children > 0) {
                list_remove(op);
                op->cancelled = true;
            } else {
                cancelled(op);
            }
            return 0;
        }
    }
    return 0;
}

ssize_t message_cancel(struct endpoint *ep, void *context) {
    /* What has arrived comes first. */
    progress(ep->domain);
    return cancel(ep, context);
}

void control_event(struct control *control, const ptl_event_t *event) {
    struct endpoint *ep = control->ep;
    if (!flow_event(ep, event) && ep->rx_cq)
        cq_push(ep->rx_cq,
                &(struct completion){.entry = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                                               .len = event->remote_offset,
                                               .data = HEADER_DATA(event->hdr_data)},
                                     .source = av_address(ep->av, event->initiator, HEADER_NUMBER(event->hdr_data))});
}

/* ---- Sending ---------------------------------------------------------------------------------------------------------------------- */

/* Sends a short message. Without an operation its data is read during the call, and only a failure is told. */
static int put_short(struct endpoint *ep, struct operation *op, ptl_process_t target, ptl_pt_index_t pt, uint64_t tag,
                     uint64_t header, bool acknowledged) {
    struct domain *domain = ep->domain;
    ptl_handle_md_t md;
    ptl_size_t offset;
    int rc = descriptor(op, acknowledged ? domain->md_quiet : domain->md_send,
                        acknowledged ? PTL_MD_EVENT_SEND_DISABLE : 0, &md, &offset);
    if (rc != PTL_OK)
        return rc;
    return PtlPut(md, offset, op->length, acknowledged ? PTL_ACK_REQ : PTL_NO_ACK_REQ, target, pt, tag, 0, op, header);
}

/* Exposes a long message and announces it. */
static int put_long(struct endpoint *ep, struct operation *op, ptl_process_t target, ptl_pt_index_t pt, uint64_t tag,
                    uint64_t header, unsigned owed) {
    struct domain *domain = ep->domain;
    bool spin = domain->protocol == PROTOCOL_SPIN && op->kind == TAGGED;
    uint32_t cookie = ++ep->cookies & COOKIES;
    ptl_pt_index_t data_pt = spin ? ep->pts[TAGGED] : ep->data_pt;
    ptl_me_t me = {.start = op->count == 1 ? op->pieces[0].iov_base : &op->pieces[0],
                   .length = op->count == 1 ? op->length : op->count,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE | (op->count == 1 ? 0 : PTL_IOVEC),
                   .match_id = target,
                   .match_bits = domain->protocol == PROTOCOL_SPIN ? LONG_BITS(cookie) : cookie,
                   .hpu_memory = PTL_INVALID_HANDLE};
    int rc = operation_append(op, data_pt, &me);
    if (rc != PTL_OK)
        return rc;
    header |= HEADER_IS_LONG | (uint64_t)cookie << 32;
    /* Only a failure makes an event: nobody would get the message then. */
    rc = PtlPut(domain->md_volatile, 0, 0, PTL_ACK_REQ, target, pt, tag, LONG_OFFSET(op->length, owed, data_pt), op,
                header);
    if (rc != PTL_OK)
        PtlMEUnlink(handle_of(&op->entry));
    return rc;
}

/* Puts what the caller may change as soon as the call returns. */
static int put_volatile(struct endpoint *ep, const struct iovec *iov, size_t count, size_t length, ptl_process_t target,
                        ptl_pt_index_t pt, uint64_t tag, uint64_t header) {
    unsigned char gathered[INJECT_MAX];
    const void *data = count > 0 ? iov->iov_base : NULL;
    if (count > 1) {
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            memcpy(gathered + at, iov[i].iov_base, iov[i].iov_len);
            at += iov[i].iov_len;
        }
        data = gathered;
    }
    return PtlPut(ep->domain->md_volatile, (uintptr_t)data, length, PTL_NO_ACK_REQ, target, pt, tag, 0, NULL, header);
}

static ssize_t send(struct fid_ep *fid, enum kind kind, const struct iovec *iov, size_t count, fi_addr_t dest,
                    uint64_t tag, uint64_t data, uint64_t flags, void *context, bool report) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    struct domain *domain = ep->domain;
    size_t length = 0;
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    for (size_t i = 0; i < count; i++)
        length += iov[i].iov_len;
    const size_t inject_limit = inject_size(&domain->limits);
    if (count > IOV_LIMIT || length > domain->limits.max_msg_size || (flags & FI_INJECT && length > inject_limit) ||
        tag & ~tag_format(domain->protocol))
        return length > domain->limits.max_msg_size ? -EMSGSIZE : -EINVAL;
    pthread_mutex_lock(&domain->lock);
    const int before = defer_begin(domain);
    const struct name *name = av_name(ep->av, dest);
    int rc = PTL_ARG_INVALID;
    if (!name)
        goto out;
    const ptl_process_t target = {.phys = {name->nid, name->pid}};
    ptl_pt_index_t pt = kind == TAGGED ? name->tagged_pt : name->message_pt;
    uint64_t header = HEADER_FROM(ep->number) | (flags & FI_REMOTE_CQ_DATA ? HEADER_HAS_DATA | (uint32_t)data : 0);
    uint64_t sent = FI_SEND | (kind == TAGGED ? FI_TAGGED : FI_MSG);
    bool acknowledged = flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) && (report || ep->sent);
    bool is_short = flow_is_short(ep, name, length);
    const unsigned units = is_short ? flow_units(length) : 1;
    if (!flow_has_room(ep, kind, name, units)) {
        rc = PTL_NO_SPACE;
        goto out;
    }
    struct peer *peer = flow_peer(ep, name);
    const unsigned owed = peer ? peer->flows[kind].owed : 0;
    if (length <= inject_limit && (!acknowledged || flags & FI_INJECT)) {
        rc = put_volatile(ep, iov, count, length, target, pt, tag, header | HEADER_WITH_OWED(owed));
        if (rc == PTL_OK && ep->sent)
            ep->sent->value++;
        if (rc == PTL_OK && report)
            cq_push(ep->tx_cq,
                    &(struct completion){.entry = {.op_context = context, .flags = sent, .len = length, .tag = tag}});
    } else {
        struct operation *op = operation_new(ep, SEND, context, sent, report);
        if (!op) {
            rc = PTL_NO_SPACE;
            goto out;
        }
        operation_memory(op, iov, count);
        op->kind = kind;
        op->tag = tag;
        rc = is_short ? put_short(ep, op, target, pt, tag, header | HEADER_WITH_OWED(owed), acknowledged)
                      : put_long(ep, op, target, pt, tag, header, owed);
        if (rc != PTL_OK)
            operation_free(op);
    }
    if (rc == PTL_OK && peer) {
        peer->flows[kind].under_way += units;
        peer->flows[kind].owed = 0;
    }
out:
    defer_end(before);
    pthread_mutex_unlock(&domain->lock);
    return result_of(rc);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------- */

/* Whether a call without flags is reported. */
static bool reports(struct fid_ep *fid) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    return ep->tx_cq && (!ep->tx_selective || ep->tx_flags & FI_COMPLETION);
}

static bool reports_with(struct fid_ep *fid, uint64_t flags) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid);
    return ep->tx_cq && (!ep->tx_selective || flags & FI_COMPLETION);
}

static uint64_t defaults(struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid)->tx_flags; }
static uint64_t receive_defaults(struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid)->rx_flags; }

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context) {
    const struct iovec iov = {buf, len};
    (void)desc;
    return receive(ep, MESSAGE, &iov, 1, src, 0, 0, receive_defaults(ep), context);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                         void *context) {
    (void)desc;
    return receive(ep, MESSAGE, iov, count, src, 0, 0, receive_defaults(ep), context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    return receive(ep, MESSAGE, msg->msg_iov, msg->iov_count, msg->addr, 0, 0, flags, msg->context);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send(ep, MESSAGE, &iov, 1, dest, 0, 0, defaults(ep), context, reports(ep));
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                         void *context) {
    (void)desc;
    return send(ep, MESSAGE, iov, count, dest, 0, 0, defaults(ep), context, reports(ep));
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    return send(ep, MESSAGE, msg->msg_iov, msg->iov_count, msg->addr, 0, msg->data, flags, msg->context,
                reports_with(ep, flags));
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest) {
    const struct iovec iov = {(void *)buf, len};
    return send(ep, MESSAGE, &iov, 1, dest, 0, 0, FI_INJECT, NULL, false);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                            void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send(ep, MESSAGE, &iov, 1, dest, 0, data, defaults(ep) | FI_REMOTE_CQ_DATA, context, reports(ep));
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest) {
    const struct iovec iov = {(void *)buf, len};
    return send(ep, MESSAGE, &iov, 1, dest, 0, data, FI_INJECT | FI_REMOTE_CQ_DATA, NULL, false);
}

struct fi_ops_msg message_ops = {sizeof message_ops, msg_recv,    msg_recvv,  msg_recvmsg,  msg_send,
                                 msg_sendv,          msg_sendmsg, msg_inject, msg_senddata, msg_injectdata};

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
                           uint64_t ignore, void *context) {
    const struct iovec iov = {buf, len};
    (void)desc;
    return receive(ep, TAGGED, &iov, 1, src, tag, ignore, receive_defaults(ep) & ~FI_MULTI_RECV, context);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                            uint64_t tag, uint64_t ignore, void *context) {
    (void)desc;
    return receive(ep, TAGGED, iov, count, src, tag, ignore, receive_defaults(ep) & ~FI_MULTI_RECV, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    return receive(ep, TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->ignore, flags, msg->context);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t tag,
                           void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send(ep, TAGGED, &iov, 1, dest, tag, 0, defaults(ep), context, reports(ep));
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                            uint64_t tag, void *context) {
    (void)desc;
    return send(ep, TAGGED, iov, count, dest, tag, 0, defaults(ep), context, reports(ep));
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    return send(ep, TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->data, flags, msg->context,
                reports_with(ep, flags));
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t tag) {
    const struct iovec iov = {(void *)buf, len};
    return send(ep, TAGGED, &iov, 1, dest, tag, 0, FI_INJECT, NULL, false);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
                               fi_addr_t dest, uint64_t tag, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send(ep, TAGGED, &iov, 1, dest, tag, data, defaults(ep) | FI_REMOTE_CQ_DATA, context, reports(ep));
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                                 uint64_t tag) {
    const struct iovec iov = {(void *)buf, len};
    return send(ep, TAGGED, &iov, 1, dest, tag, data, FI_INJECT | FI_REMOTE_CQ_DATA, NULL, false);
}

struct fi_ops_tagged tagged_ops = {sizeof tagged_ops, tagged_recv,      tagged_recvv,   tagged_recvmsg,
                                   tagged_send,       tagged_sendv,     tagged_sendmsg, tagged_inject,
                                   tagged_senddata,   tagged_injectdata};
