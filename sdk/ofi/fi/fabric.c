/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics (fi_fabric(3)). */
#include "fi.h"

#include <stdlib.h>
#include <string.h>

struct fabric {
    struct fid_fabric fid;
};

static int fabric_close(struct fid *fid) {
    free(CONTAINER(fid, struct fabric, fid.fid));
    return 0;
}

static int passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context) {
    (void)fabric, (void)info, (void)pep, (void)context;
    return -ENOSYS;
}

static int wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set) {
    (void)fabric, (void)attr, (void)set;
    return -ENOSYS;
}

static int trywait(struct fid_fabric *fabric, struct fid **fids, int count) {
    (void)fabric, (void)fids, (void)count;
    return -ENOSYS;
}

int spin_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context) {
    static struct fi_ops ops = {sizeof ops, fabric_close, spin_ofi_no_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
    static struct fi_ops_fabric fabric_ops = {
        sizeof fabric_ops, spin_ofi_domain_open, passive_ep, spin_ofi_eq_open, wait_open, trywait};
    if (attr->name && strcmp(attr->name, SPIN_NAME) != 0)
        return -ENODATA;
    struct fabric *opened = calloc(1, sizeof *opened);
    if (!opened)
        return -ENOMEM;
    opened->fid = (struct fid_fabric){
        .fid = {FI_CLASS_FABRIC, context, &ops}, .ops = &fabric_ops, .api_version = attr->api_version};
    *fabric = &opened->fid;
    return 0;
}
