/* SPDX-License-Identifier: Apache-2.0 */
#include "domain.h"

#include <stdlib.h>

struct operation *spin_ofi_operation_new(struct endpoint *ep, enum job job, event_callback *handle, void *context,
                                         uint64_t flags, bool report) {
    struct domain *domain = ep->domain;
    struct operation *op = domain->free;
    if (op)
        domain->free = op->next;
    else if (!(op = malloc(sizeof *op)))
        return NULL;
    op->sink.handle = handle;
    op->job = job;
    op->ep = ep;
    op->next = op->previous = NULL;
    op->list = NULL;
    op->context = context;
    op->flags = flags;
    op->report = report;
    op->appended = false;
    op->entry = PTL_INVALID_HANDLE;
    op->md = PTL_INVALID_HANDLE;
    op->count = 0;
    op->length = 0;
    op->tag = 0;
    return op;
}

bool spin_ofi_operation_memory(struct operation *op, const struct iovec *iov, size_t count) {
    if (count > IOV_LIMIT)
        return false;
    op->count = (unsigned)count;
    op->length = 0;
    for (size_t i = 0; i < count; i++) {
        op->pieces[i] = (ptl_iovec_t){iov[i].iov_base, iov[i].iov_len};
        op->length += iov[i].iov_len;
    }
    return true;
}

void spin_ofi_operation_free(struct operation *op) {
    struct domain *domain = op->ep->domain;
    if (op->list)
        spin_ofi_operations_remove(op);
    if (op->md != PTL_INVALID_HANDLE)
        PtlMDRelease(op->md);
    domain->card.appended -= op->appended;
    op->next = domain->free;
    domain->free = op;
}

void spin_ofi_operations_append(struct operation_list *list, struct operation *op) {
    op->list = list;
    op->next = NULL;
    op->previous = list->last;
    if (list->last)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
}

void spin_ofi_operations_remove(struct operation *op) {
    struct operation_list *list = op->list;
    *(op->previous ? &op->previous->next : &list->first) = op->next;
    *(op->next ? &op->next->previous : &list->last) = op->previous;
    op->list = NULL;
}

int spin_ofi_operation_append(struct operation *op, ptl_pt_index_t pt, const ptl_me_t *me) {
    struct card *card = &op->ep->domain->card;
    int rc = PtlMEAppend(card->ni, pt, me, PTL_PRIORITY_LIST, op, &op->entry);
    op->appended = rc == PTL_OK;
    card->appended += op->appended;
    return rc;
}

int spin_ofi_operation_unlink(struct operation *op) { return PtlMEUnlink(spin_ofi_entry_handle(&op->entry)); }

int spin_ofi_operation_descriptor(struct operation *op, ptl_handle_md_t all, unsigned options, ptl_handle_md_t *md,
                                  ptl_size_t *offset) {
    if (op->count <= 1) {
        *md = all;
        *offset = op->count == 1 ? (uintptr_t)op->pieces[0].iov_base : 0;
        return PTL_OK;
    }
    const struct card *card = &op->ep->domain->card;
    ptl_md_t pieces = {.start = &op->pieces[0],
                       .length = op->count,
                       .options = options | PTL_IOVEC,
                       .eq_handle = card->pump.eq,
                       .ct_handle = PTL_CT_NONE};
    int rc = PtlMDBind(card->ni, &pieces, &op->md);
    *md = op->md;
    *offset = 0;
    return rc;
}
