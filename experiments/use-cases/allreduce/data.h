/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the ranks, and their serially computed sum. */
#ifndef EXPERIMENTS_ALLREDUCE_DATA_H
#define EXPERIMENTS_ALLREDUCE_DATA_H

#include "../../common/common.h"
#include <handlers/allreduce/doubling.h>
#include <handlers/allreduce/ring.h>
#include <handlers/allreduce/tree.h>
#include <handlers/common/hash.h>
#include <math.h>

enum algorithm { DOUBLING, RING, TREE, ALGORITHMS };
static const char *const algorithms[ALGORITHMS + 1] = {"doubling", "ring", "tree", "best"};
enum data { EXACT, ROUNDED, DATA };
static const char *const kinds_of_data[DATA] = {"exact", "rounded"};
static const char *const types[] = {"int32", "float", "double"};
static const size_t type_bytes[] = {4, 4, 8};

enum { WEIGHTS = 5 };

static enum allreduce_type type;
static enum data data;

static uint32_t weight(uint32_t rank, size_t i) { return (rank * (2 * (uint32_t)(i % WEIGHTS) + 3) + 7) % 61; }
static uint32_t base(size_t i, uint32_t operation) { return (uint32_t)(i * 2654435761u >> 20) % 32 + operation % 16; }

/* Element `i` of a rank's vector. Exact data are small whole numbers, whose sum has no rounding error in any order; rounded data have
 * all bits of the mantissa, and exponents so different that almost every order of additions has another sum. */
static double value(size_t i, uint32_t rank, uint32_t operation) {
    uint32_t hash = hash_mix((uint32_t)i * 40503u + rank * 977u + operation * 31337u + 1);
    if (data == EXACT)
        return base(i, operation) + weight(rank, i);
    double exact = ldexp(1 + (hash & 0xffffff) * 0x1p-24, (int)(hash >> 24 & 15)) * (hash >> 31 ? -1 : 1);
    return type == ALLREDUCE_FLOAT ? (double)(float)exact : exact;
}

static void store(void *vector, size_t i, double number) {
    switch (type) {
    case ALLREDUCE_INT32: ((int32_t *)vector)[i] = (int32_t)number; break;
    case ALLREDUCE_FLOAT: ((float *)vector)[i] = (float)number; break;
    case ALLREDUCE_DOUBLE: ((double *)vector)[i] = number; break;
    }
}

static double element(const void *vector, size_t i) {
    switch (type) {
    case ALLREDUCE_INT32: return ((const int32_t *)vector)[i];
    case ALLREDUCE_FLOAT: return (double)((const float *)vector)[i];
    case ALLREDUCE_DOUBLE: break;
    }
    return ((const double *)vector)[i];
}

/* One addition as the card does it. */
static double plus(double a, double b) { return type == ALLREDUCE_FLOAT ? (double)((float)a + (float)b) : a + b; }

/* Element `i` of the sum of the part of the tree below `rank`, itself first and then its children one after the other. */
static double sum_of_tree(const struct allreduce *a, uint32_t rank, size_t i, uint32_t operation) {
    double sum = value(i, rank, operation);
    for (uint32_t child = rank * a->arity + 1, n = 0; n < a->arity && child + n < a->ranks; n++)
        sum = plus(sum, sum_of_tree(a, child + n, i, operation));
    return sum;
}

/* The sum that the ranks have which differ from rank `number` (of those that double) in the lowest `steps` bits only. */
static double sum_of_doubling(const struct allreduce *a, uint32_t number, uint32_t steps, size_t i,
                              uint32_t operation) {
    if (steps > 0)
        return plus(sum_of_doubling(a, number, steps - 1, i, operation),
                    sum_of_doubling(a, number ^ 1u << (steps - 1), steps - 1, i, operation));
    if (number >= a->folded)
        return value(i, number + a->folded, operation);
    return plus(value(i, 2 * number, operation), value(i, 2 * number + 1, operation));
}

/* The sum in the order of the ring. */
static double sum_of_ring(const struct allreduce *a, size_t i, uint32_t operation) {
    uint32_t first = (uint32_t)(i * type_bytes[type] / a->segment) % a->ranks;
    double sum = value(i, first, operation);
    for (uint32_t n = 1; n < a->ranks; n++)
        sum = plus(sum, value(i, (first + n) % a->ranks, operation));
    return sum;
}

/* Compares this rank's sum with a serial computation: bit by bit if `a` gives the card's order of additions, else
 * (NULL) with the error that a different order can cause. */
static void check_sum(const void *sums, size_t elements, uint32_t ranks, uint32_t operation, enum algorithm algorithm,
                      const struct allreduce *a) {
    double weights[WEIGHTS] = {0};
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < WEIGHTS; i++)
            weights[i] += weight(rank, i);
    for (size_t i = 0; i < elements; i++) {
        double is = element(sums, i), expected = 0, most = 0;
        if (data == EXACT) {
            expected = (double)base(i, operation) * ranks + weights[i % WEIGHTS];
        } else if (a != NULL) {
            expected = algorithm == TREE       ? sum_of_tree(a, 0, i, operation)
                       : algorithm == DOUBLING ? sum_of_doubling(a, 0, a->twos, i, operation)
                                               : sum_of_ring(a, i, operation);
        } else {
            for (uint32_t rank = 0; rank < ranks; rank++) {
                expected += value(i, rank, operation);
                most += fabs(value(i, rank, operation)) * ranks * (type == ALLREDUCE_FLOAT ? 0x1p-24 : 0x1p-53);
            }
        }
        if (!(fabs(is - expected) <= most))
            fail("element %zu of %zu in all-reduce %u of %u ranks is %.17g, not %.17g", i, elements, operation, ranks,
                 is, expected);
    }
}

#endif
