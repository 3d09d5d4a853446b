/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and free of <spin/paper.h>. A bitmap marks blocks of equal size; handlers on neighbouring HPUs search different
 * words first. Programs that do not call them do not contain the heap. */
#include <spin.h>
#include <spin/heap.h>

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function);

enum { PER_WORD = 32, MOST = 256 };

/* A program with SPIN_HEAP_BLOCKS has another definition, which the linker finds first. */
__attribute__((weak, aligned(16))) uint8_t spin_heap[SPIN_HEAP_DEFAULT_BLOCKS][SPIN_HEAP_BLOCK];
__attribute__((weak)) const uint32_t spin_heap_blocks = SPIN_HEAP_DEFAULT_BLOCKS;

static uint32_t taken[MOST / PER_WORD]; /* bit: block in use */
static uint8_t runs[MOST];              /* blocks of the allocation that begins here */

/* Returns a mask of `count` bits, 1 to 32. */
static inline uint32_t mask(uint32_t count) { return UINT32_MAX >> (PER_WORD - count); }

/* Returns the first of `count` free blocks in a row among the first `blocks` of a word, or PER_WORD. */
static inline uint32_t room(uint32_t used, uint32_t count, uint32_t blocks) {
    for (uint32_t first = 0; first + count <= blocks; first++)
        if (!(used & mask(count) << first))
            return first;
    return PER_WORD;
}

void *spin_malloc(size_t size) {
    if (size > (size_t)PER_WORD * SPIN_HEAP_BLOCK)
        return NULL;
    uint32_t count = size == 0 ? 1 : (uint32_t)((size + SPIN_HEAP_BLOCK - 1) / SPIN_HEAP_BLOCK);
    uint32_t words = (spin_heap_blocks + PER_WORD - 1) / PER_WORD, word = PTL_MY_HPU % words;
    for (uint32_t searched = 0; searched < words; searched++) {
        uint32_t left = spin_heap_blocks - word * PER_WORD, first;
        uint32_t used = __atomic_load_n(&taken[word], __ATOMIC_RELAXED);
        while ((first = room(used, count, left < PER_WORD ? left : PER_WORD)) < PER_WORD) {
            if (__atomic_compare_exchange_n(&taken[word], &used, used | mask(count) << first, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED)) {
                runs[word * PER_WORD + first] = (uint8_t)count;
                return spin_heap[word * PER_WORD + first];
            }
        }
        word = word + 1 == words ? 0 : word + 1;
    }
    return NULL;
}

void spin_free(void *block) {
    if (block == NULL)
        return;
    uint32_t offset = (uint32_t)((uintptr_t)block - (uintptr_t)spin_heap), first = offset / SPIN_HEAP_BLOCK;
    if (first >= spin_heap_blocks || offset % SPIN_HEAP_BLOCK != 0 || runs[first] == 0)
        __assert_fail("block is allocated", __FILE_NAME__, __LINE__, "free");
    uint32_t bits = mask(runs[first]) << first % PER_WORD;
    runs[first] = 0;
    __atomic_fetch_and(&taken[first / PER_WORD], ~bits, __ATOMIC_RELEASE);
}
