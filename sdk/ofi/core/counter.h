/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of completed operations (fi_cntr(3)). */
#ifndef OFI_COUNTER_H
#define OFI_COUNTER_H

#include "../base/card.h"

struct domain;
struct counter {
    struct fid_cntr fid;
    struct domain *domain;
    uint64_t value, errors;
};

/* Counts one operation, successful or not. The counter may be NULL. */
void spin_ofi_counter_count(struct counter *counter, bool failed);

#endif
