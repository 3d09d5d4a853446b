/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations on remote memory (fi_atomic(3)). */
#ifndef OFI_ATOMIC_H
#define OFI_ATOMIC_H

#include "../core/domain.h"

/* Form of an atomic operation, by the call of Portals for it. */
enum form {
    PLAIN,   /* PtlAtomic, without a result */
    FETCH,   /* PtlFetchAtomic, or PtlSwap without an operand; PtlGet for FI_ATOMIC_READ */
    COMPARE, /* PtlSwap with an operand */
};

/* Arguments of a call. Operands, results and comparands are each in one piece. */
struct atomic {
    enum form form;
    const void *operand;
    void *result;
    const void *comparand;
    size_t count; /* elements */
    fi_addr_t peer;
    uint64_t addr, key; /* address and key of the remote memory */
    enum fi_datatype type;
    enum fi_op op;
    uint64_t flags;
    void *context;
    bool report; /* a success is put into the completion queue */
};

/* Returns true if the card combines values of this type by this operation, in this form. Stores the elements that
 * one operation may have, and their size in bytes, where the pointers are not NULL. */
bool spin_ofi_atomic_valid(const struct domain *domain, enum fi_datatype type, enum fi_op op, enum form form,
                           size_t *count, size_t *size);
/* Starts an operation. Returns 0 or a negative error number: -FI_EOPNOTSUPP for an invalid combination. */
ssize_t spin_ofi_atomic(struct endpoint *ep, const struct atomic *call);

#endif
