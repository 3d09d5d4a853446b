/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of HPU memory by handlers, for malloc and free of <spin/paper.h>. Only for code on the card. */
#ifndef SPIN_HEAP_H
#define SPIN_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the smallest allocation, a full packet of the SC'17 cards: the paper's listings ask for a quarter of the
 * bytes that they use. */
enum { SPIN_HEAP_BLOCK = 4096 };

/* Number of blocks, for all handlers that run at a time; part of the program's static data. A program that needs another
 * number, at most 256, defines it (spincc -DSPIN_HEAP_BLOCKS=15). The default fits into the memories of the cards with
 * this kind of HPU: SC'17 has 64 KiB for static data, PsPIN 4 MiB. */
#ifdef SPIN_HEAP_BLOCKS
__attribute__((weak, aligned(16))) uint8_t spin_heap[SPIN_HEAP_BLOCKS][SPIN_HEAP_BLOCK];
__attribute__((weak)) const uint32_t spin_heap_blocks = SPIN_HEAP_BLOCKS;
_Static_assert(SPIN_HEAP_BLOCKS > 0 && SPIN_HEAP_BLOCKS <= 256, "SPIN_HEAP_BLOCKS is from 1 to 256");
#elif defined(__riscv_flen) || defined(__arm__)
enum { SPIN_HEAP_DEFAULT_BLOCKS = 12 };
#else
enum { SPIN_HEAP_DEFAULT_BLOCKS = 64 };
#endif

/* Allocates `size` bytes of HPU memory, aligned for every type, uninitialised, and shared by all handlers of the
 * program. Returns NULL above 128 KiB, or if no room is left; does not wait. */
void *spin_malloc(size_t size);

/* Frees a block of spin_malloc, or does nothing for NULL. Another address ends the handler with FAIL. */
void spin_free(void *block);

#endif
