/* SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 1 << 16 }; /* places of the event queue */

/* ---- Protocol and limits ----------------------------------------------------------------------------------------- */

/* Returns the protocol of the card, or the lesser one that SPIN_FI_PROTOCOL asks for. */
static enum protocol choose_protocol(const ptl_ni_limits_t *limits) {
    static const char *const names[] = {"cpu", "portals4", "spin"};
    const char *asked = getenv("SPIN_FI_PROTOCOL");
    const char *nic = getenv("SPIN_NIC");
    enum protocol best = limits->max_handler_mem > 0 ? PROTOCOL_SPIN : PROTOCOL_CPU;
    if (nic)
        best = strcmp(nic, "spin") == 0       ? PROTOCOL_SPIN
               : strcmp(nic, "portals4") == 0 ? PROTOCOL_PORTALS4
                                              : PROTOCOL_CPU;
    for (enum protocol p = PROTOCOL_CPU; asked && p <= best; p++)
        if (strcmp(asked, names[p]) == 0)
            return p;
    if (asked)
        spin_ofi_complain("SPIN_FI_PROTOCOL=%s: this card knows %s%s%s; it uses %s", asked, names[0],
                          best >= PROTOCOL_PORTALS4 ? ", portals4" : "", best >= PROTOCOL_SPIN ? ", spin" : "",
                          names[best]);
    return best;
}

uint64_t spin_ofi_tag_mask(enum protocol protocol) { return protocol == PROTOCOL_SPIN ? UINT64_MAX >> 1 : UINT64_MAX; }

size_t spin_ofi_inject_size(const ptl_ni_limits_t *limits) {
    return limits->max_volatile_size < INJECT_MAX ? limits->max_volatile_size : INJECT_MAX;
}

/* ---- Interface --------------------------------------------------------------------------------------------------- */

int spin_ofi_card_open(struct card *card) {
    *card = (struct card){.md_lossy = PTL_INVALID_HANDLE};
    if (PtlInit() != PTL_OK)
        return -ENODATA;
    int rc =
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, &card->limits, &card->ni);
    if (rc != PTL_OK) {
        PtlFini();
        return -spin_ofi_errno(rc);
    }
    rc = PtlGetPhysId(card->ni, &card->self);
    if (rc != PTL_OK) {
        spin_ofi_card_close(card);
        return -spin_ofi_errno(rc);
    }
    card->protocol = choose_protocol(&card->limits);
    return 0;
}

void spin_ofi_card_close(struct card *card) {
    PtlNIFini(card->ni);
    PtlFini();
}

/* Binds a descriptor of all memory. */
static int bind_all(const struct card *card, unsigned options, ptl_handle_md_t *md) {
    ptl_md_t all = {.length = PTL_SIZE_MAX, .options = options, .eq_handle = card->pump.eq, .ct_handle = PTL_CT_NONE};
    return PtlMDBind(card->ni, &all, md);
}

int spin_ofi_card_bind_lossy(struct card *card) {
    const unsigned options = PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_UNRELIABLE;
    return card->md_lossy == PTL_INVALID_HANDLE ? bind_all(card, options, &card->md_lossy) : PTL_OK;
}

int spin_ofi_card_pt_alloc(struct card *card, ptl_pt_index_t wanted, ptl_pt_index_t *pt) {
    int rc = PtlPTAlloc(card->ni, 0, card->pump.eq, wanted, pt);
    return rc == PTL_PT_IN_USE ? PtlPTAlloc(card->ni, 0, card->pump.eq, PTL_PT_ANY, pt) : rc;
}

/* Allocates the entry for remote memory: the first free one of those that wire.h gives to domains. */
static int remote_pt_alloc(struct card *card) {
    int rc = PtlPTAlloc(card->ni, 0, card->pump.eq, FIRST_REMOTE_PT, &card->remote_pt);
    for (ptl_pt_index_t pt = FURTHER_REMOTE_PTS; rc == PTL_PT_IN_USE; pt++)
        rc = PtlPTAlloc(card->ni, 0, card->pump.eq, pt, &card->remote_pt);
    return rc == PTL_ARG_INVALID ? PtlPTAlloc(card->ni, 0, card->pump.eq, PTL_PT_ANY, &card->remote_pt) : rc;
}

int spin_ofi_card_start(struct card *card) {
    int rc = PtlEQAlloc(card->ni, EVENTS, &card->pump.eq);
    if (rc == PTL_OK)
        rc = remote_pt_alloc(card);
    if (rc == PTL_OK)
        rc = bind_all(card, 0, &card->md_send);
    if (rc == PTL_OK)
        rc = bind_all(card, PTL_MD_EVENT_SEND_DISABLE, &card->md_quiet);
    if (rc == PTL_OK)
        rc = bind_all(card, PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE, &card->md_volatile);
    return rc;
}

void spin_ofi_card_stop(struct card *card) {
    PtlMDRelease(card->md_send);
    PtlMDRelease(card->md_quiet);
    PtlMDRelease(card->md_volatile);
    if (card->md_lossy != PTL_INVALID_HANDLE)
        PtlMDRelease(card->md_lossy);
    PtlPTFree(card->ni, card->remote_pt);
    PtlEQFree(card->pump.eq);
}

/* ---- Deferred calls ---------------------------------------------------------------------------------------------- */

/* Deferring must not change what the program reads. Buffers of messages belong to the provider until their
 * completion, which only a call that waits can return, but others may write registered memory at any time, and
 * programs may read it without a call. A deferred append must find room, so it is allowed while the card's tables
 * are at most half full. */
int spin_ofi_defer_begin(const struct card *card) {
    return spin_defer(card->regions == 0 && card->appended < (unsigned)card->limits.max_entries / 2 &&
                      card->appended < (unsigned)card->limits.max_list_size / 2);
}

void spin_ofi_defer_end(int before) { spin_defer(before); }

ptl_handle_me_t spin_ofi_entry_handle(const ptl_handle_me_t *entry) {
    const volatile ptl_handle_me_t *handle = entry;
    const int before = spin_defer(0);
    /* A call that waits stores the handles of this thread's entries. Another thread's deferred calls (it was the
     * only thread when it made them) complete when their simulated time has passed. */
    if (*handle == PTL_INVALID_HANDLE)
        PtlAtomicSync();
    while (*handle == PTL_INVALID_HANDLE)
        spin_host_compute(100);
    spin_ofi_defer_end(before);
    return *handle;
}
