/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of the current HPU in the runtime. */
#ifndef PSPIN_RT_H
#define PSPIN_RT_H

#include <stdint.h>

#ifdef SPIN_NATIVE
#include "native.h"

static inline uint32_t rt_hart_id(void) { return native_hpu()->cluster << 5 | native_hpu()->within; }
#else
/* The runtime keeps cluster and HPU in a register that compiled code does not change. */
static inline uint32_t rt_hart_id(void) {
    uint32_t id;
    __asm__ volatile("mv %0, tp" : "=r"(id));
    return id;
}
#endif

/* Returns the number of this HPU within its cluster. */
static inline uint32_t rt_core_id(void) { return rt_hart_id() & 0x1F; }

/* Returns the number of this HPU's cluster. */
static inline uint32_t rt_cluster_id(void) { return rt_hart_id() >> 5; }

/* Waits about `cycles` cycles, in steps of four. Returns at once for four or fewer. */
static inline void rt_time_wait_cycles(uint32_t cycles) {
    for (uint32_t turns = cycles >> 2; turns > 1; turns--)
        __asm__ volatile("nop");
}

#endif
