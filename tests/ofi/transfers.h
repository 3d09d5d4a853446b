/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives in all their forms, with data that is checked. */
#ifndef OFI_TRANSFERS_H
#define OFI_TRANSFERS_H

#include "ofi.h"

enum kind { MSG, TAGGED };
enum send_form {
    SEND,
    SENDV,
    SENDMSG,
    SENDMSG_DATA,
    SENDMSG_DELIVERED,
    SENDMSG_INJECTED,
    SENDDATA,
    INJECT,
    INJECTDATA,
    SEND_FORMS
};
enum receive_form { RECV, RECVV, RECVMSG, RECEIVE_FORMS };
enum { PIECES = 5, MOST_PIECES = 64 /* more than iov_limit */ };

static inline bool injects(enum send_form form) {
    return form == INJECT || form == INJECTDATA || form == SENDMSG_INJECTED;
}
static inline bool has_data(enum send_form form) {
    return form == SENDDATA || form == INJECTDATA || form == SENDMSG_DATA;
}
/* Returns true if the form reports its completion. */
static inline bool is_told(enum send_form form) { return form != INJECT && form != INJECTDATA; }

/* Cuts memory into pieces of different lengths, one of them empty. */
static inline void cut(void *buffer, size_t length, struct iovec *pieces) {
    const size_t ends[PIECES] = {length / 7, length / 7, length / 2, length - length / 9, length};
    size_t from = 0;
    for (int i = 0; i < PIECES; from = ends[i++])
        pieces[i] = (struct iovec){(char *)buffer + from, ends[i] - from};
}

static inline ssize_t post_send(struct fid_ep *ep, enum kind kind, enum send_form form, void *buffer, size_t length,
                                fi_addr_t to, uint64_t tag, uint64_t data, void *context) {
    struct iovec pieces[PIECES];
    static const uint64_t flags[SEND_FORMS] = {[SENDMSG] = FI_COMPLETION,
                                               [SENDMSG_DATA] = FI_COMPLETION | FI_REMOTE_CQ_DATA,
                                               [SENDMSG_DELIVERED] = FI_COMPLETION | FI_DELIVERY_COMPLETE,
                                               [SENDMSG_INJECTED] = FI_COMPLETION | FI_INJECT};
    cut(buffer, length, pieces);
    struct fi_msg message = {.msg_iov = pieces, .iov_count = PIECES, .addr = to, .context = context, .data = data};
    struct fi_msg_tagged tagged = {
        .msg_iov = pieces, .iov_count = PIECES, .addr = to, .tag = tag, .context = context, .data = data};
    if (kind == MSG) {
        switch (form) {
        case SEND: return ON(ep, msg, send, buffer, length, NULL, to, context);
        case SENDV: return ON(ep, msg, sendv, pieces, NULL, PIECES, to, context);
        case SENDDATA: return ON(ep, msg, senddata, buffer, length, NULL, data, to, context);
        case INJECT: return ON(ep, msg, inject, buffer, length, to);
        case INJECTDATA: return ON(ep, msg, injectdata, buffer, length, data, to);
        default: return ON(ep, msg, sendmsg, &message, flags[form]);
        }
    }
    switch (form) {
    case SEND: return ON(ep, tagged, send, buffer, length, NULL, to, tag, context);
    case SENDV: return ON(ep, tagged, sendv, pieces, NULL, PIECES, to, tag, context);
    case SENDDATA: return ON(ep, tagged, senddata, buffer, length, NULL, data, to, tag, context);
    case INJECT: return ON(ep, tagged, inject, buffer, length, to, tag);
    case INJECTDATA: return ON(ep, tagged, injectdata, buffer, length, data, to, tag);
    default: return ON(ep, tagged, sendmsg, &tagged, flags[form]);
    }
}

static inline ssize_t post_receive(struct fid_ep *ep, enum kind kind, enum receive_form form, void *buffer,
                                   size_t length, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context) {
    struct iovec pieces[PIECES];
    cut(buffer, length, pieces);
    struct fi_msg message = {.msg_iov = pieces, .iov_count = PIECES, .addr = from, .context = context};
    struct fi_msg_tagged tagged = {
        .msg_iov = pieces, .iov_count = PIECES, .addr = from, .tag = tag, .ignore = ignore, .context = context};
    if (kind == MSG) {
        switch (form) {
        case RECV: return ON(ep, msg, recv, buffer, length, NULL, from, context);
        case RECVV: return ON(ep, msg, recvv, pieces, NULL, PIECES, from, context);
        default: return ON(ep, msg, recvmsg, &message, FI_COMPLETION);
        }
    }
    switch (form) {
    case RECV: return ON(ep, tagged, recv, buffer, length, NULL, from, tag, ignore, context);
    case RECVV: return ON(ep, tagged, recvv, pieces, NULL, PIECES, from, tag, ignore, context);
    default: return ON(ep, tagged, recvmsg, &tagged, FI_COMPLETION);
    }
}

static inline int next_rank(void) { return (rank + 1) % ranks; }
static inline int previous_rank(void) { return (rank + ranks - 1) % ranks; }

#endif
