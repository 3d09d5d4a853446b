/* SPDX-License-Identifier: Apache-2.0 */
/* Domains and endpoints: the objects that core/, tx/, rx/ and fi/ share.
 *
 * The provider has four floors, and each uses only those below it:
 *
 * | floor      | content |
 * | ---        | --- |
 * | fi/        | objects and calls of libfabric: check and convert arguments, take the lock, pump events |
 * | tx/, rx/   | protocols of messages, remote memory and atomic operations; they run under the lock and do not pump |
 * | core/      | operations, completions, counters, arrivals, credit, addresses, regions |
 * | base/      | errors, the card, the wire format, the pump |
 *
 * A domain has one Portals interface and one event queue. All calls take the lock of their domain (FI_THREAD_SAFE).
 * docs/mpi.md describes the protocols. */
#ifndef OFI_DOMAIN_H
#define OFI_DOMAIN_H

#include "../base/card.h"
#include "address.h"
#include "arrival.h"
#include "completion.h"
#include "counter.h"
#include "credit.h"
#include "operation.h"
#include "region.h"

#include <pthread.h>

struct domain {
    struct fid_domain fid;
    pthread_mutex_t lock;
    struct card card;
    size_t eager; /* bytes of the longest message that is sent at once */
    bool virtual_addresses;
    bool tells_source; /* FI_SOURCE */
    uint64_t next_key;
    struct region *regions;
    struct operation *free; /* operations for reuse */
    /* Receives with handlers: HPU memory, and a stack of free indices */
    ptl_hpu_md_h states[RECEIVE_STATES];
    uint32_t free_states[RECEIVE_STATES];
    uint32_t free_count;
    size_t objects; /* open objects of the domain; it closes only without any */
    int ranks;
    struct peer *peers[ENDPOINTS]; /* peers of the endpoints with these numbers, or NULL */
    struct endpoint *asked;        /* endpoints whose messages without a receive must leave the card's list */
};

/* Entry of an endpoint for remote CQ data and for messages about credit. */
struct control {
    struct event_sink sink;
    struct endpoint *ep;
    ptl_handle_me_t entry;
};

/* The search that takes messages without a receive off the card's list. */
struct drain {
    struct event_sink sink;
    struct endpoint *ep;
    bool answered, more;
};

struct endpoint {
    struct fid_ep fid;
    struct domain *domain;
    struct address_vector *av;
    struct completion_queue *tx_cq, *rx_cq;
    bool tx_selective, rx_selective;
    struct counter *sent, *received, *read, *written;
    uint64_t tx_flags, rx_flags; /* defaults of operations */
    size_t min_multi_recv;       /* bytes */
    bool directed;               /* FI_DIRECTED_RECV: receives may ask for messages of one source */
    bool enabled;
    struct name name;
    unsigned number; /* among the endpoints of its process */
    ptl_pt_index_t pts[KINDS];
    ptl_pt_index_t data_pt, control_pt;
    struct control control;
    uint32_t cookies; /* number of the last long message */
    struct peer *peers;
    struct operation_list posted[KINDS]; /* receives, in the order of the calls */
    struct arrival_list arrivals[KINDS]; /* messages without a receive that the CPU has taken */
    struct arrival_list claimed;         /* messages that a search has taken off the lists */
    struct buffer **buffers;             /* bounce buffers */
    size_t buffer_count, buffer_room;
    /* rx/recv.c takes a message that has arrived in a bounce buffer. */
    void (*arrived)(struct endpoint *ep, enum kind kind, const struct arrival *arrival);
    struct drain drain;
    bool is_asked; /* the endpoint is in the domain's list `asked` */
    struct endpoint *next_asked;
};

/* Returns true if the card matches messages of this kind. Messages without a tag land in bounce buffers on every
 * card, because those of a receive with FI_MULTI_RECV may be long. */
static inline bool card_matches(const struct endpoint *ep, enum kind kind) {
    return kind == TAGGED && ep->domain->card.protocol != PROTOCOL_CPU;
}

#endif
