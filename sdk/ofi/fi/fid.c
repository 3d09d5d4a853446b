/* SPDX-License-Identifier: Apache-2.0 */
#include "fi.h"

int spin_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)other, (void)flags;
    return -ENOSYS;
}

int spin_ofi_no_control(struct fid *fid, int command, void *arg) {
    (void)fid, (void)command, (void)arg;
    return -ENOSYS;
}

int spin_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) {
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -ENOSYS;
}

void spin_ofi_domain_hold(struct domain *domain) {
    pthread_mutex_lock(&domain->lock);
    domain->objects++;
    pthread_mutex_unlock(&domain->lock);
}

void spin_ofi_domain_drop(struct domain *domain) {
    pthread_mutex_lock(&domain->lock);
    domain->objects--;
    pthread_mutex_unlock(&domain->lock);
}
