/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with and without tags (fi_msg(3), fi_tagged(3)). */
#include "../rx/peek.h"
#include "../tx/send.h"
#include "fi.h"

/* ---- Receives and searches --------------------------------------------------------------------------------------- */

/* Stores the matching criteria of a call. Returns false for an unknown source or a tag with bits that the card
 * lacks. */
static bool pattern_of(const struct endpoint *ep, fi_addr_t source, uint64_t tag, uint64_t ignore,
                       struct pattern *pattern) {
    *pattern = (struct pattern){.source.phys = {PTL_NID_ANY, PTL_PID_ANY}, .tag = tag, .ignore = ignore};
    if (tag & ~spin_ofi_tag_mask(ep->domain->card.protocol))
        return false;
    if (source == FI_ADDR_UNSPEC || !ep->directed)
        return true;
    const struct name *name = spin_ofi_av_name(ep->av, source);
    if (!name)
        return false;
    pattern->source = (ptl_process_t){.phys = {name->nid, name->pid}};
    pattern->number = name->number;
    return true;
}

static ssize_t perform(struct endpoint *ep, const struct recv *call) {
    if (call->flags & FI_PEEK) {
        /* The search finds messages that have arrived. */
        if (!card_matches(ep, call->kind))
            spin_ofi_progress(ep->domain);
        return spin_ofi_peek(ep, call);
    }
    return call->flags & FI_CLAIM ? spin_ofi_claim(ep, call) : spin_ofi_recv(ep, call);
}

static ssize_t recv_call(struct fid_ep *fid, enum kind kind, const struct iovec *iov, size_t count, fi_addr_t source,
                         uint64_t tag, uint64_t ignore, uint64_t flags, void *context) {
    struct endpoint *ep = endpoint_of(fid);
    struct domain *domain = ep->domain;
    if (!ep->enabled || !ep->rx_cq)
        return -FI_EOPBADSTATE;
    struct recv call = {.kind = kind,
                        .iov = iov,
                        .count = count,
                        .flags = flags,
                        .context = context,
                        .report = !ep->rx_selective || flags & FI_COMPLETION};
    pthread_mutex_lock(&domain->lock);
    const int before = spin_ofi_defer_begin(&domain->card);
    ssize_t rc = spin_ofi_lost(domain);
    if (rc == 0)
        rc = pattern_of(ep, source, tag, ignore, &call.pattern) ? perform(ep, &call) : -EINVAL;
    spin_ofi_defer_end(before);
    pthread_mutex_unlock(&domain->lock);
    return rc;
}

/* ---- Sends ------------------------------------------------------------------------------------------------------- */

/* Returns true if there is credit for a message. Handles the card's events, which may return credit, and then
 * requests credit from the peer. A peer that has ended returns none; messages to it fail in flight. */
static bool has_credit(struct endpoint *ep, const struct send *call) {
    const unsigned units = spin_ofi_send_units(ep, call);
    struct peer *peer = spin_ofi_credit_peer(ep, call->name);
    if (!peer || peer->gone || spin_ofi_credit_fits(ep, peer, call->kind, call->name, units))
        return true;
    spin_ofi_progress(ep->domain);
    if (spin_ofi_credit_fits(ep, peer, call->kind, call->name, units))
        return true;
    spin_ofi_credit_ask(ep, peer, call->kind, call->name);
    return peer->gone;
}

static ssize_t send_call(struct fid_ep *fid, enum kind kind, const struct iovec *iov, size_t count, fi_addr_t dest,
                         uint64_t tag, uint64_t data, uint64_t flags, void *context, bool report) {
    struct endpoint *ep = endpoint_of(fid);
    struct domain *domain = ep->domain;
    const ptl_ni_limits_t *limits = &domain->card.limits;
    struct send call = {.kind = kind,
                        .iov = iov,
                        .count = count,
                        .tag = tag,
                        .data = data,
                        .flags = flags,
                        .context = context,
                        .report = report};
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    for (size_t i = 0; i < count; i++)
        call.length += iov[i].iov_len;
    if (call.length > limits->max_msg_size)
        return -EMSGSIZE;
    if (count > IOV_LIMIT || (flags & FI_INJECT && call.length > spin_ofi_inject_size(limits)) ||
        tag & ~spin_ofi_tag_mask(domain->card.protocol))
        return -EINVAL;
    pthread_mutex_lock(&domain->lock);
    const int before = spin_ofi_defer_begin(&domain->card);
    int rc = PTL_ARG_INVALID;
    call.name = spin_ofi_av_name(ep->av, dest);
    if (call.name)
        rc = !spin_ofi_lost(domain) && has_credit(ep, &call) ? spin_ofi_send(ep, &call) : PTL_NO_SPACE;
    /* A domain that has lost events gets no credit. */
    const ssize_t lost = spin_ofi_lost(domain);
    spin_ofi_defer_end(before);
    pthread_mutex_unlock(&domain->lock);
    return rc == PTL_NO_SPACE && lost ? lost : spin_ofi_result(rc);
}

static uint64_t tx_flags(const struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid)->tx_flags; }
static uint64_t rx_flags(const struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid)->rx_flags; }

/* ---- Messages without a tag -------------------------------------------------------------------------------------- */

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context) {
    const struct iovec iov = {buf, len};
    (void)desc;
    return recv_call(ep, MESSAGE, &iov, 1, src, 0, 0, rx_flags(ep), context);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                         void *context) {
    (void)desc;
    return recv_call(ep, MESSAGE, iov, count, src, 0, 0, rx_flags(ep), context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    return recv_call(ep, MESSAGE, msg->msg_iov, msg->iov_count, msg->addr, 0, 0, flags, msg->context);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send_call(ep, MESSAGE, &iov, 1, dest, 0, 0, tx_flags(ep), context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                         void *context) {
    (void)desc;
    return send_call(ep, MESSAGE, iov, count, dest, 0, 0, tx_flags(ep), context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    return send_call(ep, MESSAGE, msg->msg_iov, msg->iov_count, msg->addr, 0, msg->data, flags, msg->context,
                     is_reported(endpoint_of(ep), flags));
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest) {
    const struct iovec iov = {(void *)buf, len};
    return send_call(ep, MESSAGE, &iov, 1, dest, 0, 0, FI_INJECT, NULL, false);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                            void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send_call(ep, MESSAGE, &iov, 1, dest, 0, data, tx_flags(ep) | FI_REMOTE_CQ_DATA, context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest) {
    const struct iovec iov = {(void *)buf, len};
    return send_call(ep, MESSAGE, &iov, 1, dest, 0, data, FI_INJECT | FI_REMOTE_CQ_DATA, NULL, false);
}

struct fi_ops_msg spin_ofi_msg_ops = {sizeof spin_ofi_msg_ops,
                                      msg_recv,
                                      msg_recvv,
                                      msg_recvmsg,
                                      msg_send,
                                      msg_sendv,
                                      msg_sendmsg,
                                      msg_inject,
                                      msg_senddata,
                                      msg_injectdata};

/* ---- Messages with a tag ----------------------------------------------------------------------------------------- */

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
                           uint64_t ignore, void *context) {
    const struct iovec iov = {buf, len};
    (void)desc;
    return recv_call(ep, TAGGED, &iov, 1, src, tag, ignore, rx_flags(ep) & ~FI_MULTI_RECV, context);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                            uint64_t tag, uint64_t ignore, void *context) {
    (void)desc;
    return recv_call(ep, TAGGED, iov, count, src, tag, ignore, rx_flags(ep) & ~FI_MULTI_RECV, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    return recv_call(ep, TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->ignore, flags, msg->context);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t tag,
                           void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send_call(ep, TAGGED, &iov, 1, dest, tag, 0, tx_flags(ep), context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                            uint64_t tag, void *context) {
    (void)desc;
    return send_call(ep, TAGGED, iov, count, dest, tag, 0, tx_flags(ep), context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    return send_call(ep, TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->data, flags, msg->context,
                     is_reported(endpoint_of(ep), flags));
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t tag) {
    const struct iovec iov = {(void *)buf, len};
    return send_call(ep, TAGGED, &iov, 1, dest, tag, 0, FI_INJECT, NULL, false);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
                               fi_addr_t dest, uint64_t tag, void *context) {
    const struct iovec iov = {(void *)buf, len};
    (void)desc;
    return send_call(ep, TAGGED, &iov, 1, dest, tag, data, tx_flags(ep) | FI_REMOTE_CQ_DATA, context,
                     is_reported(endpoint_of(ep), tx_flags(ep)));
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                                 uint64_t tag) {
    const struct iovec iov = {(void *)buf, len};
    return send_call(ep, TAGGED, &iov, 1, dest, tag, data, FI_INJECT | FI_REMOTE_CQ_DATA, NULL, false);
}

struct fi_ops_tagged spin_ofi_tagged_ops = {sizeof spin_ofi_tagged_ops,
                                            tagged_recv,
                                            tagged_recvv,
                                            tagged_recvmsg,
                                            tagged_send,
                                            tagged_sendv,
                                            tagged_sendmsg,
                                            tagged_inject,
                                            tagged_senddata,
                                            tagged_injectdata};
