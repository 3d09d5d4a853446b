/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: calls that have not completed. */
#ifndef OFI_OPERATION_H
#define OFI_OPERATION_H

#include "../base/card.h"
#include "arrival.h"

struct endpoint;
struct operation;

/* Operations with links in both directions. */
struct operation_list {
    struct operation *first, *last;
};

enum job { SEND, RECEIVE, SEARCH, READ, WRITE, ATOMIC };

enum { NO_STATE = UINT32_MAX };

/* Data of a receive. After the message has matched, `pattern.source` is its source. */
struct receive {
    struct pattern pattern;
    uint64_t header;       /* hdr_data of the message */
    uint64_t offset;       /* offset of its put; the length of a long message */
    uint32_t state;        /* index of its HPU memory, or NO_STATE */
    unsigned awaited;      /* events until the end */
    ptl_ni_fail_t failure; /* failure of one event */
    /* Receives with FI_MULTI_RECV: each message is a child, whose `parent` is the receive that owns the memory. */
    bool multi;
    bool cancelled; /* the program has cancelled it while messages were landing in its memory */
    size_t used;    /* bytes that messages have taken */
    unsigned children;
    struct operation *parent;
};

/* Data of a search (FI_PEEK). */
struct search {
    struct pattern pattern;
    uint64_t flags; /* FI_CLAIM, FI_DISCARD */
};

struct operation {
    struct event_sink sink;
    enum job job;
    enum kind kind;
    struct endpoint *ep;
    struct operation *next, *previous;
    struct operation_list *list; /* that holds it, or NULL */
    void *context;
    uint64_t flags; /* of its completion */
    bool report;    /* a success is put into the completion queue */
    bool appended;
    ptl_handle_me_t entry; /* stored later if the append is deferred */
    ptl_handle_md_t md;
    ptl_iovec_t pieces[IOV_LIMIT];
    unsigned count;
    size_t length; /* bytes of all pieces */
    uint64_t tag;  /* of its completion */
    union {
        struct receive receive;         /* RECEIVE */
        struct search search;           /* SEARCH */
        unsigned char copy[INJECT_MAX]; /* WRITE, ATOMIC: data that the caller may change at once */
    };
};

/* Returns an operation without memory and without the data of its job, or NULL without memory for it. */
struct operation *spin_ofi_operation_new(struct endpoint *ep, enum job job, event_callback *handle, void *context,
                                         uint64_t flags, bool report);
/* Sets the memory of an operation. Returns false for more than IOV_LIMIT pieces. */
bool spin_ofi_operation_memory(struct operation *op, const struct iovec *iov, size_t count);
/* Frees an operation, and removes it from its list. */
void spin_ofi_operation_free(struct operation *op);

/* Appends an operation to a list, or removes it from its list. */
void spin_ofi_operations_append(struct operation_list *list, struct operation *op);
void spin_ofi_operations_remove(struct operation *op);

/* Appends an entry for an operation to the priority list of `pt`. Returns a Portals code. */
int spin_ofi_operation_append(struct operation *op, ptl_pt_index_t pt, const ptl_me_t *me);
/* Unlinks the entry of an operation. Returns a Portals code: PTL_IN_USE if a message has taken it. */
int spin_ofi_operation_unlink(struct operation *op);
/* Stores the descriptor for the memory of an operation, and the offset in it: that of all memory, or a new one for
 * several pieces, with the event options `options`. Returns a Portals code. */
int spin_ofi_operation_descriptor(struct operation *op, ptl_handle_md_t all, unsigned options, ptl_handle_md_t *md,
                                  ptl_size_t *offset);

#endif
