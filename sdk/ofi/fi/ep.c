/* Endpoints: binding, names and options (fi_endpoint(3)). */
#include "../core/domain.h"

#include <stdlib.h>
#include <string.h>

static int ep_close(struct fid *fid) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    struct domain *domain = ep->domain;
    pthread_mutex_lock(&domain->lock);
    if (ep->enabled) {
        messages_stop(ep);
        endpoint_number_return(ep->number);
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
        /* What others do to memory is not counted: it would need an event of each access. */
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
    int rc = endpoint_number_take(&ep->number);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&ep->domain->lock);
    rc = messages_start(ep);
    ep->enabled = rc == 0;
    pthread_mutex_unlock(&ep->domain->lock);
    if (rc != 0)
        endpoint_number_return(ep->number);
    return rc;
}

static int ep_control(struct fid *fid, int command, void *arg) {
    struct endpoint *ep = CONTAINER(fid, struct endpoint, fid.fid);
    uint64_t *flags = arg;
    switch (command) {
    case FI_ENABLE: return ep_enable(ep);
    case FI_GETOPSFLAG:
        /* The argument names a direction, and is replaced by its flags. */
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
    ssize_t rc = message_cancel(ep, context);
    pthread_mutex_unlock(&ep->domain->lock);
    return rc;
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

int endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context) {
    static struct fi_ops ops = {sizeof ops, ep_close, ep_bind, ep_control, no_ops_open};
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
                                    .msg = &message_ops,
                                    .rma = &rma_ops,
                                    .tagged = &tagged_ops,
                                    .atomic = &atomic_ops};
    endpoint->domain = domain;
    endpoint->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->directed = info->caps & FI_DIRECTED_RECV;
    endpoint->min_multi_recv = 64;
    pthread_mutex_lock(&domain->lock);
    domain->objects++;
    pthread_mutex_unlock(&domain->lock);
    *ep = &endpoint->fid;
    return 0;
}
