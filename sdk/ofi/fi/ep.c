/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: binding, names and options (fi_endpoint(3), fi_cm(3)). */
#include "../rx/control.h"
#include "../rx/recv.h"
#include "fi.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned numbers_used; /* a bit for each endpoint of the process */

/* Takes the number of a new endpoint. Returns -FI_EMFILE if the process has ENDPOINTS. */
static int number_take(unsigned *number) {
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

static void number_return(unsigned number) {
    pthread_mutex_lock(&numbers_lock);
    numbers_used &= ~(1u << number);
    pthread_mutex_unlock(&numbers_lock);
}

/* ---- Portal table entries ---------------------------------------------------------------------------------------- */

static int alloc_pt(struct endpoint *ep, enum pt_use use, ptl_pt_index_t *pt) {
    return spin_ofi_card_pt_alloc(&ep->domain->card, ENDPOINT_PT(ep->number, use), pt);
}

/* Allocates the portal table entries of an endpoint, and links the entries and bounce buffers in them. Returns 0 or
 * a negative error number. */
static int start(struct endpoint *ep) {
    const struct card *card = &ep->domain->card;
    spin_ofi_unexpected_start(ep);
    int rc;
    if ((rc = alloc_pt(ep, PT_MESSAGE, &ep->pts[MESSAGE])) != PTL_OK ||
        (rc = alloc_pt(ep, PT_TAGGED, &ep->pts[TAGGED])) != PTL_OK ||
        (rc = alloc_pt(ep, PT_DATA, &ep->data_pt)) != PTL_OK ||
        (rc = alloc_pt(ep, PT_CONTROL, &ep->control_pt)) != PTL_OK || (rc = spin_ofi_control_start(ep)) != PTL_OK ||
        (rc = spin_ofi_credit_start(ep)) != PTL_OK || (rc = spin_ofi_recv_start(ep)) != PTL_OK) {
        spin_ofi_complain("fi_enable: the card's tables cannot be set up (Portals error %d)", rc);
        return -spin_ofi_errno(rc);
    }
    ep->name = (struct name){.nid = card->self.phys.nid,
                             .pid = card->self.phys.pid,
                             .message_pt = (uint16_t)ep->pts[MESSAGE],
                             .tagged_pt = (uint16_t)ep->pts[TAGGED],
                             .remote_pt = (uint16_t)card->remote_pt,
                             .control_pt = (uint16_t)ep->control_pt,
                             .number = (uint16_t)ep->number};
    return 0;
}

/* The interface unlinks other entries when it ends. Messages that still arrive are reported as dropped to their
 * senders. */
static void stop(struct endpoint *ep) {
    const ptl_handle_ni_t ni = ep->domain->card.ni;
    spin_ofi_recv_stop(ep);
    spin_ofi_control_stop(ep);
    spin_ofi_bounce_unlink(ep);
    PtlPTFree(ni, ep->control_pt);
    PtlPTFree(ni, ep->data_pt);
    PtlPTFree(ni, ep->pts[TAGGED]);
    PtlPTFree(ni, ep->pts[MESSAGE]);
    spin_ofi_bounce_release(ep);
    spin_ofi_unexpected_release(ep);
}

/* ---- Operations of the object ------------------------------------------------------------------------------------ */

static int ep_close(struct fid *fid) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    struct domain *domain = ep->domain;
    pthread_mutex_lock(&domain->lock);
    if (ep->enabled) {
        stop(ep);
        number_return(ep->number);
    }
    domain->objects--;
    pthread_mutex_unlock(&domain->lock);
    free(ep);
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    if (ep->enabled)
        return -FI_EOPBADSTATE;
    switch (other->fclass) {
    case FI_CLASS_AV: ep->av = CONTAINER(other, struct address_vector, fid.fid); return 0;
    case FI_CLASS_EQ: return 0;
    case FI_CLASS_CQ: {
        struct completion_queue *cq = CONTAINER(other, struct completion_queue, fid.fid);
        if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
            return -FI_EBADFLAGS;
        if (flags & FI_TRANSMIT) {
            ep->tx_cq = cq;
            ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
        }
        if (flags & FI_RECV) {
            ep->rx_cq = cq;
            ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
        }
        return 0;
    }
    case FI_CLASS_CNTR: {
        struct counter *counter = CONTAINER(other, struct counter, fid.fid);
        /* Counting remote accesses needs an event of each, so it is not supported. */
        if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE))
            return -ENOSYS;
        if (flags & FI_SEND)
            ep->sent = counter;
        if (flags & FI_RECV)
            ep->received = counter;
        if (flags & FI_READ)
            ep->read = counter;
        if (flags & FI_WRITE)
            ep->written = counter;
        return 0;
    }
    default: return -EINVAL;
    }
}

static int ep_enable(struct endpoint *ep) {
    if (ep->enabled)
        return 0;
    if (!ep->av)
        return -FI_ENOAV;
    if (!ep->tx_cq && !ep->rx_cq && !ep->sent && !ep->received)
        return -FI_ENOCQ;
    int rc = number_take(&ep->number);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&ep->domain->lock);
    rc = start(ep);
    ep->enabled = rc == 0;
    pthread_mutex_unlock(&ep->domain->lock);
    if (rc != 0)
        number_return(ep->number);
    return rc;
}

static int ep_control(struct fid *fid, int command, void *arg) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    uint64_t *flags = arg;
    switch (command) {
    case FI_ENABLE: return ep_enable(ep);
    case FI_GETOPSFLAG:
        /* The argument names a direction; its flags replace it. */
        *flags = *flags & FI_RECV ? ep->rx_flags : ep->tx_flags;
        return 0;
    case FI_SETOPSFLAG:
        if (*flags & FI_TRANSMIT)
            ep->tx_flags = *flags & ~FI_TRANSMIT;
        else if (*flags & FI_RECV)
            ep->rx_flags = *flags & ~FI_RECV;
        else
            return -EINVAL;
        return 0;
    default: return -ENOSYS;
    }
}

static ssize_t ep_cancel(struct fid *fid, void *context) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    pthread_mutex_lock(&ep->domain->lock);
    /* A message that has arrived completes its receive. */
    spin_ofi_progress(ep->domain);
    spin_ofi_recv_cancel(ep, context);
    pthread_mutex_unlock(&ep->domain->lock);
    return 0;
}

static int ep_getopt(struct fid *fid, int level, int name, void *value, size_t *length) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
        return -ENOPROTOOPT;
    if (*length < sizeof(size_t))
        return -FI_ETOOSMALL;
    *(size_t *)value = ep->min_multi_recv;
    *length = sizeof(size_t);
    return 0;
}

static int ep_setopt(struct fid *fid, int level, int name, const void *value, size_t length) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
        return -ENOPROTOOPT;
    if (length != sizeof(size_t))
        return -EINVAL;
    ep->min_multi_recv = *(const size_t *)value;
    return 0;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep, void *context) {
    (void)sep, (void)index, (void)attr, (void)ep, (void)context;
    return -ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) {
    (void)sep, (void)index, (void)attr, (void)ep, (void)context;
    return -ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep) {
    (void)ep;
    return -ENOSYS;
}

static int cm_setname(struct fid *fid, void *addr, size_t length) {
    (void)fid, (void)addr, (void)length;
    return -ENOSYS;
}

static int cm_getname(struct fid *fid, void *addr, size_t *length) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    size_t room = *length;
    *length = sizeof ep->name;
    if (addr)
        memcpy(addr, &ep->name, room < sizeof ep->name ? room : sizeof ep->name);
    return room < sizeof ep->name ? -FI_ETOOSMALL : 0;
}

int spin_ofi_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context) {
    static struct fi_ops ops = {sizeof ops, ep_close, ep_bind, ep_control, spin_ofi_no_ops_open};
    static struct fi_ops_ep ep_ops = {sizeof ep_ops, ep_cancel, ep_getopt,    ep_setopt,
                                      no_tx_ctx,     no_rx_ctx, no_size_left, no_size_left};
    static struct fi_ops_cm cm_ops = {sizeof cm_ops, cm_setname, cm_getname};
    struct domain *domain = CONTAINER(fid, struct domain, fid);
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return -ENOMEM;
    endpoint->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &ops},
                                    .ops = &ep_ops,
                                    .cm = &cm_ops,
                                    .msg = &spin_ofi_msg_ops,
                                    .rma = &spin_ofi_rma_ops,
                                    .tagged = &spin_ofi_tagged_ops,
                                    .atomic = &spin_ofi_atomic_ops};
    endpoint->domain = domain;
    endpoint->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->directed = info->caps & FI_DIRECTED_RECV;
    endpoint->min_multi_recv = 64;
    spin_ofi_domain_hold(domain);
    *ep = &endpoint->fid;
    return 0;
}
