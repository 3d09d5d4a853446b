/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of table rows: a program in postfix order, interpreted by host and card.
 *
 * A row has a fixed size, and each column a fixed place in it. A step compares one column with a constant, or combines
 * the results of earlier steps. It is executed for all rows of a block before the next step: its result is a mask with
 * one bit for each row. So a comparison is a loop of few instructions, and one instruction combines the results of 32
 * rows. */
#ifndef HANDLERS_CONDITIONAL_READ_FILTER_H
#define HANDLERS_CONDITIONAL_READ_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum filter_operation { FILTER_LESS, FILTER_MORE, FILTER_EQUAL, FILTER_AND, FILTER_OR, FILTER_NOT, FILTER_OPERATIONS };

/* Column types: signed integers of 32 or 64 bits, or text, which is padded with zeros and compared bytewise. */
enum filter_type { FILTER_INT32, FILTER_INT64, FILTER_TEXT, FILTER_TYPES };

/* Limits: rows of a block, words of a mask, depth of the result stack. */
enum { FILTER_ROWS = 256, FILTER_WORDS = FILTER_ROWS / 32, FILTER_DEPTH = 8 };

/* Step of a filter. The constant of a comparison follows it, padded to a multiple of 8 bytes. */
struct filter_step {
    uint8_t operation, type;
    uint16_t offset; /* offset of the column in its row */
    uint16_t bytes;  /* bytes of the constant, as in the row */
    uint16_t unused;
};

static inline uint32_t filter_padded(uint32_t bytes) { return (bytes + 7) & ~7u; }

/* Result of a step for all rows; bits after the last row are undefined. */
struct filter_mask {
    uint32_t words[FILTER_WORDS];
};

/* Returns true if `bytes` bytes at `filter` are a filter for rows of `row_bytes` that leaves one result. */
static inline bool filter_is_valid(const uint8_t *filter, uint32_t bytes, uint32_t row_bytes) {
    uint32_t results = 0, at = 0;
    while (at < bytes) {
        struct filter_step step;
        if (bytes - at < sizeof step)
            return false;
        memcpy(&step, filter + at, sizeof step);
        at += sizeof step;
        if (step.operation == FILTER_NOT) {
            if (results < 1)
                return false;
        } else if (step.operation == FILTER_AND || step.operation == FILTER_OR) {
            if (results < 2)
                return false;
            results--;
        } else {
            uint32_t fixed = step.type == FILTER_INT32 ? 4 : step.type == FILTER_INT64 ? 8 : step.bytes;
            if (step.operation >= FILTER_OPERATIONS || step.type >= FILTER_TYPES || results == FILTER_DEPTH ||
                step.bytes == 0 || step.bytes != fixed || step.offset + step.bytes > row_bytes ||
                filter_padded(step.bytes) > bytes - at || (step.type != FILTER_TEXT && step.offset % 4 != 0))
                return false;
            at += filter_padded(step.bytes);
            results++;
        }
    }
    return results == 1;
}

/* Sets the bits of rows for which `test`, an expression of the column at `column`, is true. */
#define FILTER_EACH_ROW(test)                                                                                          \
    for (uint32_t row = 0; row < rows; row += 32) {                                                                    \
        uint32_t word = 0, most = rows - row < 32 ? rows - row : 32;                                                   \
        for (uint32_t bit = 0; bit < most; bit++, column += row_bytes)                                                 \
            word |= (uint32_t)(test) << bit;                                                                           \
        mask->words[row / 32] = word;                                                                                  \
    }

#define FILTER_COMPARE(type)                                                                                           \
    {                                                                                                                  \
        const type value = *(const type *)constant;                                                                    \
        if (step.operation == FILTER_LESS)                                                                             \
            FILTER_EACH_ROW(*(const type *)column < value)                                                             \
        else if (step.operation == FILTER_MORE)                                                                        \
            FILTER_EACH_ROW(*(const type *)column > value)                                                             \
        else                                                                                                           \
            FILTER_EACH_ROW(*(const type *)column == value)                                                            \
    }

/* Integers in rows are aligned to 4 bytes, whatever their size. */
typedef int64_t filter_int64 __attribute__((aligned(4), may_alias));
typedef int32_t filter_int32 __attribute__((may_alias));

/* Compares a column of `rows` rows, starting at `column`, with a constant. */
static inline void filter_compare(struct filter_step step, const uint8_t *constant, const uint8_t *column,
                                  uint32_t rows, uint32_t row_bytes, struct filter_mask *mask) {
    if (step.type == FILTER_INT32)
        FILTER_COMPARE(filter_int32)
    else if (step.type == FILTER_INT64)
        FILTER_COMPARE(filter_int64)
    else if (step.operation == FILTER_LESS)
        FILTER_EACH_ROW(memcmp(column, constant, step.bytes) < 0)
    else if (step.operation == FILTER_MORE)
        FILTER_EACH_ROW(memcmp(column, constant, step.bytes) > 0)
    else
        FILTER_EACH_ROW(memcmp(column, constant, step.bytes) == 0)
}

/* Executes a valid filter for `rows` rows at `block`, at most FILTER_ROWS. The result is masks[0]; there are
 * FILTER_DEPTH masks. Filter and rows are aligned to 4 bytes. */
static inline void filter_rows(const uint8_t *filter, uint32_t bytes, const uint8_t *block, uint32_t rows,
                               uint32_t row_bytes, struct filter_mask *masks) {
    uint32_t words = (rows + 31) / 32, results = 0;
    for (const uint8_t *at = filter, *end = filter + bytes; at < end;) {
        struct filter_step step;
        memcpy(&step, at, sizeof step);
        at += sizeof step;
        switch (step.operation) {
        case FILTER_AND:
            results--;
            for (uint32_t i = 0; i < words; i++)
                masks[results - 1].words[i] &= masks[results].words[i];
            break;
        case FILTER_OR:
            results--;
            for (uint32_t i = 0; i < words; i++)
                masks[results - 1].words[i] |= masks[results].words[i];
            break;
        case FILTER_NOT:
            for (uint32_t i = 0; i < words; i++)
                masks[results - 1].words[i] = ~masks[results - 1].words[i];
            break;
        default:
            filter_compare(step, at, block + step.offset, rows, row_bytes, &masks[results++]);
            at += filter_padded(step.bytes);
        }
    }
}

/* Copies words to a lower address, eight reads before their writes, so that reads need not wait for writes. */
static inline void filter_move(uint32_t *to, const uint32_t *from, uint32_t words) {
    uint32_t i = 0;
    for (; i + 8 <= words; i += 8) {
        uint32_t held[8];
#pragma GCC unroll 8
        for (uint32_t j = 0; j < 8; j++)
            held[j] = from[i + j];
#pragma GCC unroll 8
        for (uint32_t j = 0; j < 8; j++)
            to[i + j] = held[j];
    }
    for (; i < words; i++)
        to[i] = from[i];
}

/* Moves the selected rows of a block to its start, in order. Returns their number. */
static inline uint32_t filter_pack(uint8_t *block, uint32_t rows, uint32_t row_bytes, const struct filter_mask *mask) {
    uint32_t *to = (uint32_t *)(void *)block, words = row_bytes / 4, count = 0;
    const uint32_t *from = to;
    for (uint32_t row = 0; row < rows; row += 32, from += 32 * words) {
        const uint32_t *next = from;
        uint32_t left = mask->words[row / 32] & (rows - row < 32 ? (1u << (rows - row)) - 1 : ~0u);
        for (; left != 0; left >>= 1, next += words) {
            if ((left & 1) == 0)
                continue;
            if (to != next)
                filter_move(to, next, words);
            to += words;
            count++;
        }
    }
    return count;
}

#endif
