/* SPDX-License-Identifier: Apache-2.0 */
/* The card: its Portals interface, limits and protocol, and deferred calls. */
#ifndef OFI_CARD_H
#define OFI_CARD_H

#include "event.h"

/* Name of the provider, its fabric and its domain, and version of the provider. */
#define SPIN_NAME "spin"
#define SPIN_VERSION FI_VERSION(1, 0)

#define CONTAINER(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

enum { IOV_LIMIT = 32 };   /* pieces of memory of one operation */
enum { INJECT_MAX = 256 }; /* bytes of max_volatile_size that the provider uses at most */

/* Place of matching, and of the get for a long message. */
enum protocol {
    PROTOCOL_CPU,      /* the CPU matches and fetches: cards of kind rdma */
    PROTOCOL_PORTALS4, /* the card matches, the CPU fetches */
    PROTOCOL_SPIN      /* the card matches, and header handlers fetch */
};

struct card {
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t self;
    enum protocol protocol;
    struct pump pump;
    /* Descriptors of all memory. md_send has SEND events. md_quiet has none, only acknowledgements and replies.
     * md_volatile reads its data during the call and only reports failures. md_lossy is the same for messages that a
     * peer may miss; it is PTL_INVALID_HANDLE until a message needs it. */
    ptl_handle_md_t md_send, md_quiet, md_volatile, md_lossy;
    ptl_pt_index_t remote_pt; /* entry for remote memory */
    unsigned appended;        /* linked entries for receives and long messages */
    unsigned regions;         /* registered memory regions */
};

/* Opens the card: `ni`, `limits`, `self` and `protocol`. Returns 0 or a negative error number; each success needs a
 * spin_ofi_card_close. */
int spin_ofi_card_open(struct card *card);
void spin_ofi_card_close(struct card *card);
/* Allocates the event queue, the descriptors and the entry for remote memory of an open card. Returns a Portals
 * code; after an error the card must be closed. */
int spin_ofi_card_start(struct card *card);
/* Releases what spin_ofi_card_start has allocated. */
void spin_ofi_card_stop(struct card *card);

/* Returns the mask of tag bits: 64 bits, or 63 where the card's handlers need one. */
uint64_t spin_ofi_tag_mask(enum protocol protocol);
/* Returns the bytes of the longest data for a call with FI_INJECT. */
size_t spin_ofi_inject_size(const ptl_ni_limits_t *limits);

/* Allocates a portal table entry: `wanted`, or another one if a library of the process has it. Returns a Portals
 * code. */
int spin_ofi_card_pt_alloc(struct card *card, ptl_pt_index_t wanted, ptl_pt_index_t *pt);
/* Makes sure that md_lossy exists. Returns a Portals code. */
int spin_ofi_card_bind_lossy(struct card *card);

/* Lets the library defer calls of the card that need no answer (spin_defer), or ends that. `before` is the result of
 * the begin. */
int spin_ofi_defer_begin(const struct card *card);
void spin_ofi_defer_end(int before);
/* Returns the handle of an entry whose append may have been deferred. Waits for a deferred append. */
ptl_handle_me_t spin_ofi_entry_handle(const ptl_handle_me_t *entry);

#endif
