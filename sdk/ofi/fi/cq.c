/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues (fi_cq(3)). */
#include "fi.h"

#include <stdlib.h>
#include <string.h>

/* Moves up to `count` completions without an error to the caller. Returns their number or a negative error number. */
static ssize_t cq_take(struct completion_queue *cq, char *buf, size_t count, fi_addr_t *source) {
    if (cq->count == 0 && !cq->failure)
        spin_ofi_cq_fail(cq, cq->domain->card.pump.failure);
    if (cq->count == 0)
        return cq->failure ? -cq->failure : -EAGAIN;
    size_t taken = 0;
    while (taken < count && cq->count > 0) {
        const struct completion *first = &cq->ring[cq->first];
        if (first->error)
            return taken > 0 ? (ssize_t)taken : -FI_EAVAIL;
        memcpy(buf + taken * cq->entry_size, &first->entry, cq->entry_size);
        if (source)
            source[taken] = first->source;
        taken++;
        spin_ofi_cq_pop(cq);
    }
    return (ssize_t)taken;
}

static ssize_t cq_poll(struct completion_queue *cq, void *buf, size_t count, fi_addr_t *source) {
    pthread_mutex_lock(&cq->domain->lock);
    if (cq->count == 0)
        spin_ofi_progress(cq->domain);
    ssize_t taken = cq_take(cq, buf, count, source);
    pthread_mutex_unlock(&cq->domain->lock);
    return taken;
}

static ssize_t cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *source) {
    struct completion_queue *queue = CONTAINER(cq, struct completion_queue, fid);
    ssize_t taken = cq_poll(queue, buf, count, source);
    if (taken == -EAGAIN)
        spin_ofi_idle(queue->domain);
    return taken;
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count) { return cq_readfrom(cq, buf, count, NULL); }

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *error, uint64_t flags) {
    struct completion_queue *cq = CONTAINER(fid, struct completion_queue, fid);
    (void)flags;
    ssize_t read = -EAGAIN;
    pthread_mutex_lock(&cq->domain->lock);
    if (cq->count > 0 && cq->ring[cq->first].error) {
        const struct completion *first = &cq->ring[cq->first];
        error->op_context = first->entry.op_context;
        error->flags = first->entry.flags;
        error->len = first->entry.len;
        error->buf = first->entry.buf;
        error->data = first->entry.data;
        error->tag = first->entry.tag;
        error->olen = first->overflow;
        error->err = first->error;
        error->prov_errno = first->card_error;
        error->err_data_size = 0;
        spin_ofi_cq_pop(cq);
        read = 1;
    }
    pthread_mutex_unlock(&cq->domain->lock);
    return read;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source, const void *cond,
                            int timeout) {
    struct completion_queue *cq = CONTAINER(fid, struct completion_queue, fid);
    (void)cond;
    if (!cq->may_wait)
        return -ENOSYS;
    const uint64_t end = spin_ofi_wait_end(timeout);
    for (bool over = timeout == 0;;) {
        ssize_t taken = cq_poll(cq, buf, count, source);
        pthread_mutex_lock(&cq->domain->lock);
        const bool ends = taken != -EAGAIN || cq->signalled || over;
        if (ends)
            cq->signalled = false;
        pthread_mutex_unlock(&cq->domain->lock);
        if (ends)
            return taken;
        over = !spin_ofi_await(cq->domain, end);
    }
}

static ssize_t cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout) {
    return cq_sreadfrom(cq, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid) {
    struct completion_queue *cq = CONTAINER(fid, struct completion_queue, fid);
    pthread_mutex_lock(&cq->domain->lock);
    cq->signalled = true;
    pthread_mutex_unlock(&cq->domain->lock);
    return 0;
}

static const char *cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len) {
    static const char *const texts[] = {
        [PTL_NI_OK] = "no failure of the card",
        [PTL_NI_UNDELIVERABLE] = "PTL_NI_UNDELIVERABLE: there is no way to the target, or no acknowledgement from it",
        [PTL_NI_DROPPED] =
            "PTL_NI_DROPPED: the target has no memory with this key and of this length, or no endpoint of this name",
        [PTL_NI_PT_DISABLED] = "PTL_NI_PT_DISABLED: the target had no room for the message",
        [PTL_NI_PERM_VIOLATION] = "PTL_NI_PERM_VIOLATION: the target's memory belongs to another user",
        [PTL_NI_OP_VIOLATION] = "PTL_NI_OP_VIOLATION: the target's memory is not registered for this access",
        [PTL_NI_NO_MATCH] = "PTL_NI_NO_MATCH: no such message has arrived",
        [PTL_NI_SEGV] = "PTL_NI_SEGV: memory that is not mapped",
        [PTL_NI_HANDLER_FAIL] = "PTL_NI_HANDLER_FAIL: a handler of the provider failed",
        [PTL_NI_HANDLER_TIMEOUT] = "PTL_NI_HANDLER_TIMEOUT: the card's watchdog stopped a handler of the provider",
    };
    (void)cq, (void)err_data;
    const char *text = prov_errno >= 0 && (size_t)prov_errno < sizeof texts / sizeof *texts ? texts[prov_errno] : "";
    if (buf && len > 0) {
        strncpy(buf, text, len - 1);
        buf[len - 1] = '\0';
    }
    return text;
}

static int cq_close(struct fid *fid) {
    struct completion_queue *cq = CONTAINER(fid, struct completion_queue, fid.fid);
    spin_ofi_domain_drop(cq->domain);
    free(cq->ring);
    free(cq);
    return 0;
}

int spin_ofi_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq, void *context) {
    static struct fi_ops ops = {sizeof ops, cq_close, spin_ofi_no_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
    static struct fi_ops_cq cq_ops = {sizeof cq_ops, cq_read,      cq_readfrom, cq_readerr,
                                      cq_sread,      cq_sreadfrom, cq_signal,   cq_strerror};
    static const size_t sizes[] = {
        [FI_CQ_FORMAT_CONTEXT] = offsetof(struct fi_cq_tagged_entry, flags),
        [FI_CQ_FORMAT_MSG] = offsetof(struct fi_cq_tagged_entry, buf),
        [FI_CQ_FORMAT_DATA] = offsetof(struct fi_cq_tagged_entry, tag),
        [FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
    };
    struct domain *domain = CONTAINER(fid, struct domain, fid);
    if (attr->format > FI_CQ_FORMAT_TAGGED)
        return -EINVAL;
    /* A file descriptor cannot become readable at a simulated time. */
    if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -ENOSYS;
    struct completion_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    if (attr->format == FI_CQ_FORMAT_UNSPEC)
        attr->format = FI_CQ_FORMAT_TAGGED;
    queue->fid = (struct fid_cq){.fid = {FI_CLASS_CQ, context, &ops}, .ops = &cq_ops};
    queue->domain = domain;
    queue->entry_size = sizes[attr->format];
    queue->may_wait = attr->wait_obj != FI_WAIT_NONE;
    spin_ofi_domain_hold(domain);
    *cq = &queue->fid;
    return 0;
}
