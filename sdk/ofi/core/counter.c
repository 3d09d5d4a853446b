/* SPDX-License-Identifier: Apache-2.0 */
#include "counter.h"

void spin_ofi_counter_count(struct counter *counter, bool failed) {
    if (counter)
        *(failed ? &counter->errors : &counter->value) += 1;
}
