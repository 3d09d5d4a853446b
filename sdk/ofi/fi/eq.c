/* SPDX-License-Identifier: Apache-2.0 */
/* Event queues (fi_eq(3)). They stay empty: addresses and regions are ready when their call returns. */
#include "fi.h"

#include <stdlib.h>

struct event_queue {
    struct fid_eq fid;
};

static int eq_close(struct fid *fid) {
    free(CONTAINER(fid, struct event_queue, fid.fid));
    return 0;
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags) {
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags) {
    (void)eq, (void)buf, (void)flags;
    return -EAGAIN;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags) {
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -ENOSYS;
}

static ssize_t eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags) {
    (void)timeout;
    return eq_read(eq, event, buf, len, flags);
}

static const char *eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len) {
    (void)eq, (void)prov_errno, (void)err_data, (void)buf, (void)len;
    return "no error";
}

int spin_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context) {
    static struct fi_ops ops = {sizeof ops, eq_close, spin_ofi_no_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
    static struct fi_ops_eq eq_ops = {sizeof eq_ops, eq_read, eq_readerr, eq_write, eq_sread, eq_strerror};
    (void)fabric;
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -ENOSYS;
    struct event_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->fid = (struct fid_eq){.fid = {FI_CLASS_EQ, context, &ops}, .ops = &eq_ops};
    *eq = &queue->fid;
    return 0;
}
