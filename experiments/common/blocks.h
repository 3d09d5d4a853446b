/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of equal size at a fixed distance, MPI's vector type, as the CPU copies them and as a list describes them. */
#ifndef EXPERIMENTS_BLOCKS_H
#define EXPERIMENTS_BLOCKS_H

#include "common.h"

enum { CACHE_LINE = 64 }; /* bytes */

/* `count` blocks, whose starts are `stride` bytes apart. */
struct layout {
    size_t block, stride, count;
};

/* Bytes of the cache lines that the blocks touch, and of those of them that they do not fill; the first block begins at
 * a line. */
static inline void count_lines(struct layout l, size_t *touched, size_t *partial) {
    size_t line = SIZE_MAX, filled = CACHE_LINE;
    *touched = *partial = 0;
    for (size_t i = 0; i < l.count; i++)
        for (size_t at = i * l.stride, end = at + l.block, next; at < end; at = next) {
            next = (at / CACHE_LINE + 1) * CACHE_LINE < end ? (at / CACHE_LINE + 1) * CACHE_LINE : end;
            if (at / CACHE_LINE != line) {
                *partial += filled < CACHE_LINE ? CACHE_LINE : 0;
                *touched += CACHE_LINE;
                line = at / CACHE_LINE;
                filled = 0;
            }
            filled += next - at;
        }
    *partial += filled < CACHE_LINE ? CACHE_LINE : 0;
}

/* Copies blocks to one piece of memory, and charges a core for the lines that it reads. */
static inline void pack_on_cpu(unsigned char *piece, const unsigned char *blocks, struct layout l) {
    size_t touched, partial;
    for (size_t i = 0; i < l.count; i++)
        memcpy(piece + i * l.block, blocks + i * l.stride, l.block);
    count_lines(l, &touched, &partial);
    spin_host_memory(touched, l.count * l.block);
}

/* The opposite copy; lines that are not filled are read before they are written. */
static inline void unpack_on_cpu(unsigned char *blocks, const unsigned char *piece, struct layout l) {
    size_t touched, partial;
    for (size_t i = 0; i < l.count; i++)
        memcpy(blocks + i * l.stride, piece + i * l.block, l.block);
    count_lines(l, &touched, &partial);
    spin_host_memory(l.count * l.block + partial, touched);
}

/* Writes the list of the blocks to `list`. */
static inline void list_blocks(ptl_iovec_t *list, unsigned char *blocks, struct layout l) {
    for (size_t i = 0; i < l.count; i++)
        list[i] = (ptl_iovec_t){.iov_base = blocks + i * l.stride, .iov_len = l.block};
}

#endif
