/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations, locks, and macros. */
#ifndef UTIL_H
#define UTIL_H

#include <stdint.h>
#include <stdio.h>

#include "pspin.h"

#ifdef SPIN_NATIVE
/* These operations on this computer; load_reserved and store_conditional compare the value instead of watching the
 * word. */
#define SPIN_AMO(name, type, function)                                                                                 \
    static inline type name(volatile type *address, type value) { return function(address, value, __ATOMIC_SEQ_CST); }

SPIN_AMO(amo_swap, uint32_t, __atomic_exchange_n)
SPIN_AMO(amo_add, int32_t, __atomic_fetch_add)
SPIN_AMO(amo_and, uint32_t, __atomic_fetch_and)
SPIN_AMO(amo_or, uint32_t, __atomic_fetch_or)
SPIN_AMO(amo_xor, uint32_t, __atomic_fetch_xor)
SPIN_AMO(amo_max, int32_t, __atomic_fetch_max)
SPIN_AMO(amo_maxu, uint32_t, __atomic_fetch_max)
SPIN_AMO(amo_min, int32_t, __atomic_fetch_min)
SPIN_AMO(amo_minu, uint32_t, __atomic_fetch_min)

static inline void amo_store(volatile uint32_t *address, uint32_t value) { amo_swap(address, value); }

static inline uint32_t load_reserved(volatile uint32_t *address) {
    uint32_t value = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    native_hpu()->reserved_address = (uintptr_t)address;
    native_hpu()->reserved_value = value;
    return value;
}

/* Returns 0 if the store took place, 1 if the word has changed. */
static inline uint32_t store_conditional(volatile uint32_t *address, uint32_t value) {
    uint32_t old = native_hpu()->reserved_value, reserved = native_hpu()->reserved_address;
    native_hpu()->reserved_address = 0;
    return reserved != (uintptr_t)address ||
           !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#else
/* Atomic operations on a word in L1 or L2 (RISC-V Unpriv. "A" extension), one instruction each. They return the old
 * value, and are compiler barriers. */
#define SPIN_AMO(name, type, instruction)                                                                              \
    static inline type name(volatile type *address, type value) {                                                      \
        type old;                                                                                                      \
        __asm__ volatile(instruction " %0, %2, %1" : "=r"(old), "+A"(*address) : "r"(value) : "memory");               \
        return old;                                                                                                    \
    }

SPIN_AMO(amo_swap, uint32_t, "amoswap.w")
SPIN_AMO(amo_add, int32_t, "amoadd.w")
SPIN_AMO(amo_and, uint32_t, "amoand.w")
SPIN_AMO(amo_or, uint32_t, "amoor.w")
SPIN_AMO(amo_xor, uint32_t, "amoxor.w")
SPIN_AMO(amo_max, int32_t, "amomax.w")
SPIN_AMO(amo_maxu, uint32_t, "amomaxu.w")
SPIN_AMO(amo_min, int32_t, "amomin.w")
SPIN_AMO(amo_minu, uint32_t, "amominu.w")

static inline void amo_store(volatile uint32_t *address, uint32_t value) { amo_swap(address, value); }

static inline uint32_t load_reserved(volatile uint32_t *address) {
    uint32_t value;
    __asm__ volatile("lr.w %0, %1" : "=r"(value) : "A"(*address) : "memory");
    return value;
}

/* Returns 0 if the store took place, 1 if the reservation was lost. */
static inline uint32_t store_conditional(volatile uint32_t *address, uint32_t value) {
    uint32_t failed;
    __asm__ volatile("sc.w %0, %2, %1" : "=r"(failed), "+A"(*address) : "r"(value) : "memory");
    return failed;
}
#endif

/* Returns 0 if `old` was replaced, -1 if the word has another value, more than 0 if another HPU was faster. */
static inline int compare_and_swap(volatile uint32_t *address, uint32_t old, uint32_t desired) {
    if (load_reserved(address) != old)
        return -1;
    return (int)store_conditional(address, desired);
}

/* A lock in L1 or L2: 0 is free. */
typedef volatile uint32_t spin_lock_t;

static inline int spin_lock_init(spin_lock_t *lock) {
    amo_store(lock, 0);
    return SPIN_OK;
}

/* Returns 1 if the lock was taken, 0 if it is busy. */
static inline int spin_lock_try_lock(spin_lock_t *lock) { return amo_or(lock, 1) == 0; }

static inline int spin_lock_lock(spin_lock_t *lock) {
    while (!spin_lock_try_lock(lock))
        rt_time_wait_cycles(32);
    return SPIN_OK;
}

static inline int spin_lock_unlock(spin_lock_t *lock) {
    amo_store(lock, 0);
    return SPIN_OK;
}

/* Lock for many readers or one writer; all zeros is free. A writer takes `glock`. Readers count themselves in
 * `num_readers`; the first takes `glock` and the last frees it. As in the published runtime, a reader that arrives
 * while the first one still waits for a writer does not wait, and a program may set `num_readers` itself: with 1,
 * readers leave `glock` to it. */
typedef struct spin_rw_lock {
    spin_lock_t glock;
    volatile int32_t num_readers;
} spin_rw_lock_t;

static inline int spin_rw_lock_r_lock(spin_rw_lock_t *lock) {
    if (amo_add(&lock->num_readers, 1) == 0)
        spin_lock_lock(&lock->glock);
    return SPIN_OK;
}

static inline int spin_rw_lock_r_unlock(spin_rw_lock_t *lock) {
    if (amo_add(&lock->num_readers, -1) == 1)
        spin_lock_unlock(&lock->glock);
    return SPIN_OK;
}

static inline int spin_rw_lock_w_lock(spin_rw_lock_t *lock) { return spin_lock_lock(&lock->glock); }

static inline int spin_rw_lock_w_unlock(spin_rw_lock_t *lock) { return spin_lock_unlock(&lock->glock); }

#ifdef SPIN_NATIVE
#define asm_mem_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#define asm_mem_fence() __asm__ volatile("fence" ::: "memory")
#endif

#define STRINGIFY_AGAIN(x) #x
#define STRINGIFY(x) STRINGIFY_AGAIN(x)

#define read_csr(csr)                                                                                                  \
    __extension__({                                                                                                    \
        uint32_t read_csr_value;                                                                                       \
        __asm__ volatile("csrr %0, " STRINGIFY(csr) : "=r"(read_csr_value));                                           \
        read_csr_value;                                                                                                \
    })
#define write_csr(csr, value) __asm__ volatile("csrw " STRINGIFY(csr) ", %0" ::"rK"(value))
#define clear_csr(csr, bits) __asm__ volatile("csrc " STRINGIFY(csr) ", %0" ::"rK"(bits))
#define read_register(r)                                                                                               \
    __extension__({                                                                                                    \
        uint32_t read_register_value;                                                                                  \
        __asm__ volatile("mv %0, " STRINGIFY(r) : "=r"(read_register_value));                                          \
        read_register_value;                                                                                           \
    })
#define write_register(r, value) __asm__ volatile("mv " STRINGIFY(r) ", %0" ::"r"(value))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define DIV_CEIL(a, b) (((a) + (b) - 1) / (b))
/* Quotient and remainder by a power of two, given as its exponent or as itself. */
#define FAST_DIV(a, exponent) ((a) >> (exponent))
#define FAST_MOD(a, power) ((a) & ((power) - 1))
#define AND(a, b) ((a) & (b))
#define LABEL(name) __asm__ volatile(#name ":")
#define ALIGN_UP(a, power) (((a) + (power) - 1) & ~((power) - 1))

/* Ends the run with an error. */
#define TERMINATE MMIO_WRITE(0x1B200000u, 1)

#ifdef CHECK_ASSERTS
#define ASSERT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: the assertion %s failed\n", __FILE__, __LINE__, #condition);                                \
            TERMINATE;                                                                                                 \
        }                                                                                                              \
    } while (0)
#else
#define ASSERT(condition)
#endif

#define SPIN_PRINTF(...) printf(__VA_ARGS__)
#ifdef LOG
#define DEBUG_PRINT(...) printf(__VA_ARGS__)
#else
#define DEBUG_PRINT(...)
#endif

#endif
