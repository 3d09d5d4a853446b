/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues (fi_cq(3)), and the end of operations. */
#ifndef OFI_COMPLETION_H
#define OFI_COMPLETION_H

#include "operation.h"

struct completion {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    int error;       /* 0, or a positive error number */
    int card_error;  /* ptl_ni_fail_t */
    size_t overflow; /* bytes that did not fit */
};

struct completion_queue {
    struct fid_cq fid;
    struct domain *domain;
    size_t entry_size; /* bytes that fi_cq_read stores for each completion */
    bool may_wait;
    bool signalled;
    int failure; /* 0, or the positive error number with which the queue has lost completions; it stays */
    struct completion *ring;
    size_t first, count, room;
};

/* Appends a completion to a queue, which grows as needed. Without memory the completion is lost and the queue fails
 * with FI_ENOMEM. The lock is taken. */
void spin_ofi_cq_push(struct completion_queue *cq, const struct completion *completion);
/* Removes the oldest completion. The queue must have one. */
void spin_ofi_cq_pop(struct completion_queue *cq);
/* Lets a queue fail: once the program has read its completions, reads return -error. The queue may be NULL. */
void spin_ofi_cq_fail(struct completion_queue *cq, int error);

/* Completes an operation, successfully or with an error number, and frees it. Stores context and flags of the
 * operation. */
void spin_ofi_complete(struct operation *op, struct completion completion);
/* Completes an operation with a positive error number, and frees it. */
void spin_ofi_fail(struct operation *op, int error, ptl_ni_fail_t card_error);
/* Completes a receive that the program has cancelled, and frees it. */
void spin_ofi_cancelled(struct operation *op);
/* Event callback of operations that end with one event at their initiator: SEND, ACK, REPLY or GET. */
void spin_ofi_initiator_event(struct event_sink *sink, const ptl_event_t *event);

#endif
