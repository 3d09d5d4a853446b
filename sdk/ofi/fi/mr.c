/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions (fi_mr(3)). */
#include "fi.h"

#include <stdlib.h>

static int mr_close(struct fid *fid) {
    struct region *region = CONTAINER(fid, struct region, fid.fid);
    struct domain *domain = region->domain;
    /* An operation that uses the entry ends in a finite simulated time. */
    int rc;
    while ((rc = PtlMEUnlink(region->entry)) == PTL_IN_USE)
        spin_ofi_await(domain, spin_ofi_wait_end(1));
    pthread_mutex_lock(&domain->lock);
    domain->objects--;
    spin_ofi_region_remove(region);
    pthread_mutex_unlock(&domain->lock);
    free(region->pieces);
    free(region);
    return -spin_ofi_errno(rc);
}

/* Regions belong to all endpoints. Counters of remote accesses are not supported: they need an event of each access. */
static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EP ? 0 : -ENOSYS;
}

static int mr_control(struct fid *fid, int command, void *arg) {
    (void)fid, (void)arg;
    return command == FI_ENABLE ? 0 : -ENOSYS;
}

/* Stores the memory of a region in its entry. Returns false without memory for the list of its pieces. */
static bool set_memory(struct region *region, ptl_me_t *me, const struct iovec *iov, size_t count) {
    if (count == 1) {
        me->start = iov->iov_base;
        me->length = iov->iov_len;
        /* The whole address space (MPI_BOTTOM) */
        if (!me->start && me->length >= PTL_SIZE_MAX / 2)
            me->length = PTL_SIZE_MAX;
        return true;
    }
    region->pieces = calloc(count, sizeof *region->pieces);
    if (!region->pieces)
        return false;
    for (size_t i = 0; i < count; i++)
        region->pieces[i] = (ptl_iovec_t){iov[i].iov_base, iov[i].iov_len};
    me->start = region->pieces;
    me->length = count;
    me->options |= PTL_IOVEC;
    return true;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
                   uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context) {
    static struct fi_ops ops = {sizeof ops, mr_close, mr_bind, mr_control, spin_ofi_no_ops_open};
    struct domain *domain = CONTAINER(fid, struct domain, fid.fid);
    (void)flags;
    if (count > IOV_LIMIT || offset != 0 || fid->fclass != FI_CLASS_DOMAIN)
        return -EINVAL;
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return -ENOMEM;
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                              PTL_ME_NO_TRUNCATE, /* an access beyond the end is refused */
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .hpu_memory = PTL_INVALID_HANDLE};
    if (access & FI_REMOTE_WRITE)
        me.options |= PTL_ME_OP_PUT;
    if (access & FI_REMOTE_READ)
        me.options |= PTL_ME_OP_GET;
    int rc = set_memory(region, &me, iov, count) ? 0 : -ENOMEM;
    if (rc == 0) {
        region->fid = (struct fid_mr){.fid = {FI_CLASS_MR, context, &ops}};
        pthread_mutex_lock(&domain->lock);
        rc = spin_ofi_region_add(domain, region, &me, iov->iov_base, requested_key);
        domain->objects += rc == 0;
        pthread_mutex_unlock(&domain->lock);
    }
    if (rc != 0) {
        free(region->pieces);
        free(region);
        return rc;
    }
    *mr = &region->fid;
    return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context) {
    const struct iovec iov = {(void *)buf, len};
    return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr) {
    return mr_regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key, flags, mr,
                   attr->context);
}

struct fi_ops_mr spin_ofi_mr_ops = {sizeof spin_ofi_mr_ops, mr_reg, mr_regv, mr_regattr};
