/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"
#include "domain.h"

/* Low bits of a provider's key. They distinguish regions with the same first byte; the other bits are the address of
 * this byte, by which an initiator turns a virtual address into an offset. */
enum { KEY_BITS = 16 };

static uint64_t new_key(struct domain *domain, const void *start) {
    return (uint64_t)(uintptr_t)start << KEY_BITS | (domain->next_key++ & ((1u << KEY_BITS) - 1));
}

int spin_ofi_region_add(struct domain *domain, struct region *region, ptl_me_t *me, const void *start,
                        uint64_t requested_key) {
    const uint64_t key = domain->virtual_addresses ? new_key(domain, start) : requested_key;
    for (struct region *other = domain->regions; other; other = other->next)
        if (other->fid.key == key)
            return -FI_ENOKEY;
    me->match_bits = key;
    int rc = PtlMEAppend(domain->card.ni, domain->card.remote_pt, me, PTL_PRIORITY_LIST, NULL, &region->entry);
    if (rc != PTL_OK)
        return -spin_ofi_errno(rc);
    domain->card.regions++;
    region->domain = domain;
    region->fid.key = key;
    region->next = domain->regions;
    domain->regions = region;
    return 0;
}

void spin_ofi_region_remove(struct region *region) {
    struct domain *domain = region->domain;
    struct region **at = &domain->regions;
    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
    domain->card.regions--;
}

bool spin_ofi_target_find(const struct endpoint *ep, fi_addr_t dest, uint64_t addr, uint64_t key,
                          struct target *target) {
    const struct name *name = spin_ofi_av_name(ep->av, dest);
    if (!name)
        return false;
    *target = (struct target){.process.phys = {name->nid, name->pid},
                              .pt = name->remote_pt,
                              .control_pt = name->control_pt,
                              .key = key,
                              .offset = ep->domain->virtual_addresses ? addr - (key >> KEY_BITS) : addr};
    return true;
}
