/* Memory for messages without a receive, and the lists of the CPU.
 *
 * On a card that matches, a message without a receive lands in the buffers of the overflow list, and the card finds it there when its
 * receive is appended. Otherwise every message lands in these buffers, and the CPU finds its receive and copies it. Messages without a
 * tag always do, since those of a receive with FI_MULTI_RECV may be long. */
#include "../core/domain.h"

#include <stdlib.h>

/* ---- Buffers -------------------------------------------------------------------------------------------------------------------- */

bool card_matches(const struct endpoint *ep, enum kind kind) {
    return kind == TAGGED && ep->domain->protocol != PROTOCOL_CPU;
}

static int buffer_link(struct buffer *buffer) {
    struct endpoint *ep = buffer->ep;
    bool overflow = card_matches(ep, buffer->kind);
    ptl_me_t me = {.start = buffer->memory,
                   .length = BUFFER_SIZE,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE |
                              (overflow ? PTL_ME_EVENT_COMM_DISABLE : 0),
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~0ull,
                   .min_free = ep->domain->eager,
                   .hpu_memory = PTL_INVALID_HANDLE};
    buffer->entry = PTL_INVALID_HANDLE;
    buffer->linked = true;
    buffer->referred = overflow;
    return PtlMEAppend(ep->domain->ni, ep->pts[buffer->kind], &me, overflow ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                       buffer, &buffer->entry);
}

int buffers_link(struct endpoint *ep, enum kind kind) {
    size_t linked = 0;
    for (size_t i = 0; i < ep->buffer_count; i++)
        linked += ep->buffers[i]->kind == kind && ep->buffers[i]->linked;
    for (const size_t needed = flow_buffers(ep); linked < needed; linked++) {
        struct buffer *buffer = NULL;
        for (size_t i = 0; i < ep->buffer_count && !buffer; i++) {
            struct buffer *b = ep->buffers[i];
            if (b->kind == kind && !b->linked && !b->referred && b->held == 0)
                buffer = b;
        }
        if (!buffer) {
            if (ep->buffer_count == ep->buffer_room) {
                size_t room = ep->buffer_room ? 2 * ep->buffer_room : (size_t)KINDS * ANY_BUFFERS;
                struct buffer **buffers = realloc(ep->buffers, room * sizeof(struct buffer *));
                if (!buffers)
                    return PTL_NO_SPACE;
                ep->buffers = buffers;
                ep->buffer_room = room;
            }
            buffer = calloc(1, sizeof *buffer);
            if (!buffer || !(buffer->memory = malloc(BUFFER_SIZE))) {
                free(buffer);
                return PTL_NO_SPACE;
            }
            buffer->what = BUFFER;
            buffer->ep = ep;
            buffer->kind = kind;
            ep->buffers[ep->buffer_count++] = buffer;
        }
        int rc = buffer_link(buffer);
        if (rc != PTL_OK)
            return rc;
    }
    return PTL_OK;
}

void buffers_release(struct endpoint *ep) {
    for (size_t i = 0; i < ep->buffer_count; i++) {
        free(ep->buffers[i]->memory);
        free(ep->buffers[i]);
    }
    free(ep->buffers);
    for (enum kind kind = MESSAGE; kind < KINDS; kind++) {
        for (struct arrival *next, *arrival = ep->arrivals[kind].first; arrival; arrival = next) {
            next = arrival->next;
            free(arrival);
        }
    }
    for (struct arrival *next, *arrival = ep->claimed; arrival; arrival = next) {
        next = arrival->next;
        free(arrival);
    }
}

struct buffer *buffer_of(struct endpoint *ep, const unsigned char *start) {
    for (size_t i = 0; i < ep->buffer_count; i++)
        if (start >= ep->buffers[i]->memory && start < ep->buffers[i]->memory + BUFFER_SIZE)
            return ep->buffers[i];
    return NULL;
}

void buffer_drop(struct buffer *buffer) {
    if (buffer)
        buffer->held--;
}

/* ---- The CPU's lists -------------------------------------------------------------------------------------------------------------- */

static bool matches(const struct operation *op, const struct arrival *arrival) {
    bool source = op->source.phys.nid == PTL_NID_ANY ||
                  (op->source.phys.nid == arrival->source.phys.nid && op->source.phys.pid == arrival->source.phys.pid &&
                   op->source_number == HEADER_NUMBER(arrival->header));
    return source && ((op->tag ^ arrival->tag) & ~op->ignore) == 0;
}

/* A receive with FI_MULTI_RECV takes no more messages. */
static void close_multi(struct operation *op) {
    list_remove(op);
    if (op->children == 0)
        complete(op, (struct completion){0});
}

/* Places a message in the rest of a receive with FI_MULTI_RECV, next to the one before. Returns false if the receive has been closed instead, because it has not
 * enough room any more. */
static bool deliver_to_multi(struct operation *op, const struct arrival *arrival) {
    size_t total = arrival_total(arrival), rest = op->length - op->used;
    if (total > rest && op->used > 0) {
        close_multi(op);
        return false;
    }
    const struct iovec iov = {(char *)op->pieces[0].iov_base + op->used, rest};
    struct operation *child = operation_new(op->ep, RECEIVE, op->context, op->flags & ~FI_MULTI_RECV, op->report);
    if (!child) {
        complain("no memory for a message");
        abort();
    }
    operation_memory(child, &iov, 1);
    child->kind = op->kind;
    child->parent = op;
    op->children++;
    op->used += total < rest ? total : rest;
    if (op->length - op->used < op->ep->min_multi_recv || op->length == op->used)
        list_remove(op);
    deliver(child, arrival);
    return true;
}

/* Gives a message to a receive. Returns false if that has been closed instead. */
static bool give(struct operation *op, const struct arrival *arrival) {
    if (op->multi)
        return deliver_to_multi(op, arrival);
    if (op->list)
        list_remove(op);
    deliver(op, arrival);
    return true;
}

static void lost(const ptl_event_t *event) {
    complain("a message was lost on its way to memory (failure %d)", event->ni_fail_type);
}

/* Appends a message to the CPU's list. */
static void keep(struct endpoint *ep, enum kind kind, const struct arrival *arrival) {
    struct arrival *kept = malloc(sizeof *kept);
    if (!kept) {
        complain("no memory for a message without a receive");
        abort();
    }
    *kept = *arrival;
    kept->next = NULL;
    kept->buffer->held++;
    *ep->arrivals[kind].end = kept;
    ep->arrivals[kind].end = &kept->next;
}

static void arrived(struct endpoint *ep, enum kind kind, const struct arrival *arrival) {
    for (struct operation *next, *op = ep->posted[kind].first; op; op = next) {
        next = op->next;
        if (matches(op, arrival) && give(op, arrival))
            return;
    }
    keep(ep, kind, arrival);
}

/* Takes the first message that matches off the list. */
static struct arrival *take(struct operation *op) {
    struct arrivals *arrivals = &op->ep->arrivals[op->kind];
    for (struct arrival **at = &arrivals->first; *at; at = &(*at)->next) {
        struct arrival *arrival = *at;
        if (matches(op, arrival)) {
            *at = arrival->next;
            if (arrivals->end == &arrival->next)
                arrivals->end = at;
            return arrival;
        }
    }
    return NULL;
}

/* Puts a message back where it was taken, at the beginning of the list. */
static void put_back(struct arrivals *arrivals, struct arrival *arrival) {
    if (!arrivals->first)
        arrivals->end = &arrival->next;
    arrival->next = arrivals->first;
    arrivals->first = arrival;
}

void taken(struct endpoint *ep, const ptl_event_t *event) {
    ep->taking.answered = true;
    ep->taking.more = event->type == PTL_EVENT_PUT_OVERFLOW;
    if (!ep->taking.more)
        return;
    flow_taken(ep, TAGGED, event);
    if (event->ni_fail_type != PTL_NI_OK) {
        lost(event);
        return;
    }
    struct arrival arrival = arrival_of(event);
    arrival.buffer = buffer_of(ep, event->start);
    keep(ep, TAGGED, &arrival);
}

void match_receive(struct operation *op) {
    struct endpoint *ep = op->ep;
    list_append(&ep->posted[op->kind], op);
    for (;;) {
        struct arrival *arrival = take(op);
        if (!arrival)
            return;
        bool given = give(op, arrival);
        /* A receive that has been closed, or has taken its one message, may be gone. */
        bool more = given && ep->posted[op->kind].last == op && op->multi;
        if (given) {
            buffer_drop(arrival->buffer);
            free(arrival);
        } else {
            put_back(&ep->arrivals[op->kind], arrival);
        }
        if (!more)
            break;
    }
    buffers_link(ep, op->kind);
}

bool match_kept(struct operation *op) {
    struct endpoint *ep = op->ep;
    struct arrival *arrival = take(op);
    if (!arrival)
        return false;
    deliver(op, arrival);
    buffer_drop(arrival->buffer);
    free(arrival);
    buffers_link(ep, TAGGED);
    return true;
}

bool match_search(struct operation *op) {
    struct endpoint *ep = op->ep;
    struct arrival *arrival = NULL;
    if (op->search_flags & (FI_CLAIM | FI_DISCARD)) {
        arrival = take(op);
    } else {
        for (arrival = ep->arrivals[op->kind].first; arrival && !matches(op, arrival);)
            arrival = arrival->next;
    }
    if (!arrival)
        return false;
    if (op->search_flags & FI_CLAIM)
        claim_keep(ep, arrival, op->context);
    if (op->search_flags & FI_DISCARD)
        discard(ep, arrival);
    bool takes = op->search_flags & (FI_CLAIM | FI_DISCARD);
    search_found(op, arrival);
    if (takes) {
        buffer_drop(arrival->buffer);
        free(arrival);
    }
    return true;
}

struct arrival *claim_take(struct endpoint *ep, void *context) {
    for (struct arrival **at = &ep->claimed; *at; at = &(*at)->next) {
        struct arrival *arrival = *at;
        if (arrival->claimed == context) {
            *at = arrival->next;
            return arrival;
        }
    }
    return NULL;
}

void claim_keep(struct endpoint *ep, const struct arrival *arrival, void *context) {
    struct arrival *kept = malloc(sizeof *kept);
    if (!kept) {
        complain("no memory for a message that is claimed");
        abort();
    }
    *kept = *arrival;
    kept->claimed = context;
    kept->next = ep->claimed;
    ep->claimed = kept;
    if (kept->buffer)
        kept->buffer->held++;
}

/* ---- Events --------------------------------------------------------------------------------------------------------------------- */

void buffer_event(struct buffer *buffer, const ptl_event_t *event) {
    struct endpoint *ep = buffer->ep;
    enum kind kind = buffer->kind;
    if (event->type == PTL_EVENT_AUTO_UNLINK) {
        buffer->linked = false;
    } else if (event->type == PTL_EVENT_AUTO_FREE) {
        buffer->referred = false;
    } else if (event->ni_fail_type != PTL_NI_OK) {
        lost(event);
    } else {
        struct arrival arrival = arrival_of(event);
        arrival.buffer = buffer;
        flow_taken(ep, kind, event);
        arrived(ep, kind, &arrival);
        return;
    }
    int rc = buffers_link(ep, kind);
    if (rc != PTL_OK)
        complain("the card takes no more buffers for messages without a receive (Portals error %d)", rc);
}
