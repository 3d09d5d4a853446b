/* SPDX-License-Identifier: Apache-2.0 */
#include "bounce.h"

#include <stdlib.h>

struct buffer {
    struct event_sink sink;
    struct endpoint *ep;
    enum kind kind;
    unsigned char *memory; /* BUFFER_SIZE bytes */
    ptl_handle_me_t entry;
    size_t held;   /* messages in it that are still needed */
    bool linked;   /* the card may put messages there */
    bool referred; /* the card may find messages there */
};

void spin_ofi_bounce_lost(const ptl_event_t *event) {
    spin_ofi_complain("a message was lost on its way to memory (failure %d)", event->ni_fail_type);
}

static void relink(struct endpoint *ep, enum kind kind) {
    int rc = spin_ofi_bounce_link(ep, kind);
    if (rc != PTL_OK)
        spin_ofi_complain("the card takes no more buffers for messages without a receive (Portals error %d)", rc);
}

static void buffer_event(struct event_sink *sink, const ptl_event_t *event) {
    struct buffer *buffer = CONTAINER(sink, struct buffer, sink);
    struct endpoint *ep = buffer->ep;
    enum kind kind = buffer->kind;
    switch (event->type) {
    case PTL_EVENT_AUTO_UNLINK: buffer->linked = false; break;
    case PTL_EVENT_AUTO_FREE: buffer->referred = false; break;
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW:
        if (event->ni_fail_type == PTL_NI_OK) {
            struct arrival arrival = spin_ofi_arrival_of(event);
            arrival.buffer = buffer;
            spin_ofi_credit_taken(ep, kind, event);
            ep->arrived(ep, kind, &arrival);
            return;
        }
        spin_ofi_bounce_lost(event);
        break;
    default: spin_ofi_event_unexpected(event); return;
    }
    relink(ep, kind);
}

static int link_one(struct buffer *buffer) {
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
    return PtlMEAppend(ep->domain->card.ni, ep->pts[buffer->kind], &me,
                       overflow ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, buffer, &buffer->entry);
}

/* Returns a buffer that can be linked, or NULL. */
static struct buffer *find_free(const struct endpoint *ep, enum kind kind) {
    for (size_t i = 0; i < ep->buffer_count; i++) {
        struct buffer *buffer = ep->buffers[i];
        if (buffer->kind == kind && !buffer->linked && !buffer->referred && buffer->held == 0)
            return buffer;
    }
    return NULL;
}

/* Returns a new buffer, or NULL without memory. */
static struct buffer *new_buffer(struct endpoint *ep, enum kind kind) {
    if (ep->buffer_count == ep->buffer_room) {
        size_t room = ep->buffer_room ? 2 * ep->buffer_room : (size_t)KINDS * ANY_BUFFERS;
        struct buffer **buffers = realloc(ep->buffers, room * sizeof(struct buffer *));
        if (!buffers)
            return NULL;
        ep->buffers = buffers;
        ep->buffer_room = room;
    }
    struct buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer || !(buffer->memory = malloc(BUFFER_SIZE))) {
        free(buffer);
        return NULL;
    }
    buffer->sink.handle = buffer_event;
    buffer->ep = ep;
    buffer->kind = kind;
    ep->buffers[ep->buffer_count++] = buffer;
    return buffer;
}

/* Returns the number of buffers that hold all messages that may be in flight to an endpoint. */
static size_t needed(const struct endpoint *ep) {
    /* Each takes at least this many bytes, and one may be nearly full of messages that have been taken. */
    const size_t takes = BUFFER_SIZE - ep->domain->eager;
    const size_t count = (spin_ofi_credit_room(ep) + takes - 1) / takes + 1;
    return count > ANY_BUFFERS ? count : ANY_BUFFERS;
}

int spin_ofi_bounce_link(struct endpoint *ep, enum kind kind) {
    size_t linked = 0;
    for (size_t i = 0; i < ep->buffer_count; i++)
        linked += ep->buffers[i]->kind == kind && ep->buffers[i]->linked;
    for (const size_t wanted = needed(ep); linked < wanted; linked++) {
        struct buffer *buffer = find_free(ep, kind);
        if (!buffer && !(buffer = new_buffer(ep, kind)))
            return PTL_NO_SPACE;
        int rc = link_one(buffer);
        if (rc != PTL_OK)
            return rc;
    }
    return PTL_OK;
}

void spin_ofi_bounce_unlink(struct endpoint *ep) {
    for (size_t i = 0; i < ep->buffer_count; i++)
        if (ep->buffers[i]->linked)
            PtlMEUnlink(spin_ofi_entry_handle(&ep->buffers[i]->entry));
}

void spin_ofi_bounce_release(struct endpoint *ep) {
    for (size_t i = 0; i < ep->buffer_count; i++) {
        free(ep->buffers[i]->memory);
        free(ep->buffers[i]);
    }
    free(ep->buffers);
    ep->buffers = NULL;
    ep->buffer_count = ep->buffer_room = 0;
}

struct buffer *spin_ofi_bounce_find(const struct endpoint *ep, const unsigned char *start) {
    for (size_t i = 0; i < ep->buffer_count; i++)
        if (start >= ep->buffers[i]->memory && start < ep->buffers[i]->memory + BUFFER_SIZE)
            return ep->buffers[i];
    return NULL;
}

void spin_ofi_bounce_hold(struct buffer *buffer) {
    if (buffer)
        buffer->held++;
}

void spin_ofi_bounce_drop(struct buffer *buffer) {
    if (buffer)
        buffer->held--;
}
