/* SPDX-License-Identifier: Apache-2.0 */
/* A lock among the handlers of a card: a word of HPU memory or of handlers' static data, 0 when it is free.
 *
 * A handler that holds a lock may wait for DMA, but must not wait for a message: the handlers that wait for the lock occupy HPUs,
 * and the message may need one. */
#ifndef HANDLERS_COMMON_LOCK_H
#define HANDLERS_COMMON_LOCK_H

#include <spin.h>

/* Takes the lock if it is free. Returns true on success. */
static inline bool lock_try(uint32_t *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0; }

/* Iterations of an empty loop between two polls of a lock. Each poll takes two cycles of the memory's bank: HPUs that
 * poll continuously delay the one that releases the lock, for up to four cycles each (docs/pspin.md, "Who waits for a
 * word"). */
enum { LOCK_PAUSE = 64 };

/* Waits until the lock is free, and takes it. */
static inline void lock_take(uint32_t *lock) {
    while (!lock_try(lock)) {
        PtlHandlerYield();
        for (int i = 0; i < LOCK_PAUSE; i++)
            __asm__ volatile("");
    }
}

/* Releases the lock. */
static inline void lock_give(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

#endif
