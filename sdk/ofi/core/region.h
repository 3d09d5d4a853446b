/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory regions, their keys, and places in remote memory (fi_mr(3)). */
#ifndef OFI_REGION_H
#define OFI_REGION_H

#include "../base/card.h"

struct domain;
struct endpoint;

struct region {
    struct fid_mr fid;
    struct region *next; /* next region of the domain */
    struct domain *domain;
    ptl_handle_me_t entry;
    ptl_iovec_t *pieces; /* pieces of the entry, or NULL */
};

/* Place in remote memory. */
struct target {
    ptl_process_t process;
    ptl_pt_index_t pt, control_pt;
    uint64_t key;
    ptl_size_t offset;
};

/* Adds a region, which begins at `start`, to a domain, and appends its entry `me` with its key as match bits. The
 * key is `requested_key`, or one of the provider for a domain with virtual addresses. Returns 0, -FI_ENOKEY for a
 * key that another region has, or another negative error number. The lock is taken. */
int spin_ofi_region_add(struct domain *domain, struct region *region, ptl_me_t *me, const void *start,
                        uint64_t requested_key);
/* Removes a region, whose entry is unlinked, from its domain. The lock is taken. */
void spin_ofi_region_remove(struct region *region);
/* Stores the place of an address and a key of fi_rma(3) at the peer `dest`. Returns false for an unknown peer. */
bool spin_ofi_target_find(const struct endpoint *ep, fi_addr_t dest, uint64_t addr, uint64_t key,
                          struct target *target);

#endif
