/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over Portals: `connect` takes the handlers, as in the program in sPIN §1 and its talk.
 *
 *     channel_id_t channel = connect(peer, , &header_handler, &payload_handler, &completion_handler);
 *
 * The papers leave the argument between peer and handlers open: it is empty, as here, or a pointer to `struct
 * channel_options`. Both ranks call `connect` for each other, with the same match bits; it returns when both are ready
 * to receive. Ranks with several peers must therefore connect in an order without a cycle. A message is a put to the
 * entry of the peer's channel, and runs the handlers on the peer's card. All other Portals calls can be used beside
 * channels. For C; include it after <sys/socket.h>, whose connect it hides. */
#ifndef SPIN_CONNECT_H
#define SPIN_CONNECT_H

#include <spin.h>
#include <stdlib.h>

enum {
    CHANNEL_PT = 0,      /* portal table index of all channels */
    CHANNEL_BITS = 10,   /* default match bits of a channel: those to which the talk's handler answers */
    CHANNEL_BYTES = 4096 /* default size of its memory, and */
};
enum { CHANNEL_STATE_BYTES = 64 }; /* default size of its HPU memory */

/* Parameters of a channel; a field that is 0 has the default given last in its comment. */
struct channel_options {
    void *start;             /* host memory of the caller for sent and received messages; the channel's own */
    ptl_size_t length;       /* bytes at start; CHANNEL_BYTES */
    ptl_match_bits_t bits;   /* match bits of the messages, below 2^63; CHANNEL_BITS */
    const void *state;       /* initial HPU memory, the handlers' `state`; zeros */
    ptl_size_t state_length; /* bytes of HPU memory; CHANNEL_STATE_BYTES */
};

/* A connection to one peer, made by `connect`; valid until `channel_close`. */
struct channel {
    union ptl_process peer;
    ptl_match_bits_t bits;
    void *start; /* as in the options */
    ptl_size_t length;
    void *own; /* memory allocated by the channel */
    ptl_hpu_md_h hpu_memory;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    ptl_handle_ct_t arrived;
};
typedef struct channel *channel_id_t;

/* Return code of the Portals call that made the last `connect` return NULL; PTL_NO_SPACE without host memory. */
static __attribute__((unused)) int channel_error;

/* The interface of all channels; PTL_INVALID_HANDLE before the first. */
static ptl_handle_ni_t channel_ni = PTL_INVALID_HANDLE;

/* Match bit of the message that reports that one side of a channel is ready. */
#define CHANNEL_READY (1ull << 63)

/* Starts Portals, once. Every rank of the job must call it or `connect`, which calls it: it waits for the others. */
static __attribute__((unused)) int channels_start(void) {
    const ptl_me_t early = {.ct_handle = PTL_CT_NONE, /* receives messages of peers that are ready before this rank */
                            .uid = PTL_UID_ANY,
                            .match_id.rank = PTL_RANK_ANY,
                            .match_bits = CHANNEL_READY,
                            .ignore_bits = ~CHANNEL_READY,
                            .options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                            .hpu_memory = PTL_INVALID_HANDLE};
    ptl_pt_index_t index;
    ptl_handle_me_t entry;
    int rc = PtlInit();
    if (rc == PTL_OK)
        rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &channel_ni);
    if (rc == PTL_OK)
        rc = spin_set_map(channel_ni);
    if (rc == PTL_OK)
        rc = PtlPTAlloc(channel_ni, 0, PTL_EQ_NONE, CHANNEL_PT, &index);
    if (rc == PTL_OK)
        rc = PtlMEAppend(channel_ni, CHANNEL_PT, &early, PTL_OVERFLOW_LIST, NULL, &entry);
    return rc == PTL_OK ? spin_barrier() : rc;
}

/* Appends the entry that runs the handlers; returns PTL_OK or the code of the failed call. */
static inline int channel_append(struct channel *c, const struct channel_options *o, ptl_header_handler_t header,
                                 ptl_payload_handler_t payload, ptl_completion_handler_t completion) {
    ptl_md_t md = {.start = c->start, .length = c->length, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_me_t me = {.start = c->start,
                   .length = c->length,
                   .uid = PTL_UID_ANY,
                   .match_id = c->peer,
                   .match_bits = c->bits,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .header_handler = header,
                   .payload_handler = payload,
                   .completion_handler = completion,
                   .hpu_initial_state = o->state,
                   .hpu_initial_state_length = o->state == NULL ? 0 : o->state_length};
    int rc = PtlMDBind(channel_ni, &md, &c->md);
    if (rc == PTL_OK)
        rc = PtlCTAlloc(channel_ni, &c->arrived);
    if (rc == PTL_OK)
        rc = PtlHPUAllocMem(o->state_length != 0 ? o->state_length : CHANNEL_STATE_BYTES, channel_ni, &c->hpu_memory);
    me.ct_handle = c->arrived;
    me.hpu_memory = c->hpu_memory;
    return rc == PTL_OK ? PtlMEAppend(channel_ni, CHANNEL_PT, &me, PTL_PRIORITY_LIST, NULL, &c->entry) : rc;
}

/* Reports to the peer that this side is ready, and waits until the peer is. */
static inline int channel_meet(const struct channel *c) {
    ptl_me_t me = {.uid = PTL_UID_ANY,
                   .match_id = c->peer,
                   .match_bits = CHANNEL_READY | c->bits,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW,
                   .hpu_memory = PTL_INVALID_HANDLE};
    ptl_handle_me_t entry;
    ptl_ct_event_t counted;
    int rc = PtlCTAlloc(channel_ni, &me.ct_handle);
    if (rc == PTL_OK)
        rc = PtlMEAppend(channel_ni, CHANNEL_PT, &me, PTL_PRIORITY_LIST, NULL, &entry);
    if (rc == PTL_OK)
        rc = PtlPut(c->md, 0, 0, PTL_NO_ACK_REQ, c->peer, CHANNEL_PT, CHANNEL_READY | c->bits, 0, NULL, 0);
    if (rc == PTL_OK)
        rc = PtlCTWait(me.ct_handle, 1, &counted);
    return rc == PTL_OK ? PtlCTFree(me.ct_handle) : rc;
}

/* See `connect`. */
static __attribute__((unused)) channel_id_t channel_connect(int peer, const struct channel_options *options,
                                                            ptl_header_handler_t header, ptl_payload_handler_t payload,
                                                            ptl_completion_handler_t completion) {
    static const struct channel_options none;
    const struct channel_options *o = options == NULL ? &none : options;
    struct channel *c = (struct channel *)calloc(1, sizeof *c);
    channel_error = PTL_NO_SPACE;
    if (c == NULL)
        return NULL;
    c->peer.rank = (ptl_rank_t)peer;
    c->bits = o->bits != 0 ? o->bits : CHANNEL_BITS;
    c->length = o->length != 0 ? o->length : CHANNEL_BYTES;
    c->own = o->start == NULL ? calloc(1, c->length) : NULL;
    c->start = o->start == NULL ? c->own : o->start;
    if (c->start != NULL && o->bits >= CHANNEL_READY)
        channel_error = PTL_ARG_INVALID;
    else if (c->start != NULL) {
        channel_error = PtlHandleIsEqual(channel_ni, PTL_INVALID_HANDLE) ? channels_start() : PTL_OK;
        if (channel_error == PTL_OK)
            channel_error = channel_append(c, o, header, payload, completion);
        if (channel_error == PTL_OK)
            channel_error = channel_meet(c);
    }
    if (channel_error == PTL_OK)
        return c;
    free(c->own);
    free(c);
    return NULL;
}

/* Connects this rank to rank `peer`: messages of `peer` run the handlers, each of which may be NULL. `options` is a
 * pointer to struct channel_options, or empty. Returns the channel, or NULL (see channel_error). */
#define connect(peer, options, header, payload, completion)                                                            \
    channel_connect(peer, (options + 0), header, payload, completion)

/* Sends `length` bytes at `offset` of the channel's memory to the same offset at the peer. The card reads them after
 * the call: the memory must not change until the peer answers. Errors: as PtlPut. */
static __attribute__((unused)) int channel_send(channel_id_t c, ptl_size_t offset, ptl_size_t length) {
    return PtlPut(c->md, offset, length, PTL_NO_ACK_REQ, c->peer, CHANNEL_PT, c->bits, offset, NULL, 0);
}

/* Waits until `messages` messages of the peer since `connect` are processed, or one fails; a handler's put or get with
 * PTL_LOCAL_ME_CT counts too. Returns PTL_FAIL if one failed; errors: as PtlCTWait. */
static __attribute__((unused)) int channel_wait(channel_id_t c, ptl_size_t messages) {
    ptl_ct_event_t counted;
    int rc = PtlCTWait(c->arrived, messages, &counted);
    return rc == PTL_OK && counted.failure != 0 ? PTL_FAIL : rc;
}

/* Frees the channel; the peer must not send any longer. Errors: as PtlMEUnlink, PTL_IN_USE while a message arrives. */
static __attribute__((unused)) int channel_close(channel_id_t c) {
    int rc = PtlMEUnlink(c->entry);
    if (rc == PTL_OK)
        rc = PtlHPUFreeMem(&c->hpu_memory);
    if (rc == PTL_OK)
        rc = PtlMDRelease(c->md);
    if (rc == PTL_OK)
        rc = PtlCTFree(c->arrived);
    if (rc == PTL_OK) {
        free(c->own);
        free(c);
    }
    return rc;
}

#endif
