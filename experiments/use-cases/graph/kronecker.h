/* SPDX-License-Identifier: Apache-2.0 */
/* Kronecker graphs as Graph500 defines them: 2^scale vertices, 16 edges for each, drawn by A, B, C = 0.57, 0.19, 0.19, with
 * permuted names. Edge number `i` is computed from `i` alone, so that every rank draws the same graph. Weights are whole
 * numbers from 1 to 255, where Graph500 has numbers between 0 and 1. */
#ifndef EXPERIMENTS_KRONECKER_H
#define EXPERIMENTS_KRONECKER_H

#include <handlers/common/random.h>
#include <stdint.h>
#include <stdlib.h>

enum { KRONECKER_FACTOR = 16, KRONECKER_WEIGHTS = 255 };

struct kronecker_edge {
    uint32_t from, to, weight;
};

/* A permutation of the numbers of `scale` bits: each step is invertible. */
static inline uint32_t kronecker_name(uint32_t vertex, unsigned scale) {
    uint32_t mask = (1u << scale) - 1;
    for (int i = 0; i < 3; i++) {
        vertex = (vertex * 0x9e3779b1u + 0x7f4a7c15u) & mask;
        vertex ^= vertex >> (scale / 2 + 1);
    }
    return vertex;
}

/* Edge `number` of the graph of 2^scale vertices. */
static inline struct kronecker_edge kronecker_edge(uint64_t number, unsigned scale) {
    struct kronecker_edge edge = {0, 0, 0};
    uint64_t random = 0;
    for (unsigned level = 0; level < scale; level++, random >>= 16) {
        if (level % 4 == 0)
            random = random_mix((number * 8 + level / 4 + 1) * RANDOM_STEP);
        uint32_t draw = random & 0xffff; /* of 65,536: 0.57, 0.19, 0.19, 0.05 */
        edge.from = edge.from * 2 + (draw >= 49807);
        edge.to = edge.to * 2 + ((draw >= 37356 && draw < 49807) || draw >= 62259);
    }
    edge.weight = 1 + random_mix(number * 8 * RANDOM_STEP) % KRONECKER_WEIGHTS;
    edge.from = kronecker_name(edge.from, scale);
    edge.to = kronecker_name(edge.to, scale);
    return edge;
}

/* The edges of every `step`-th vertex from `first` on, in both directions: those of vertex first + i step are from begin[i] to
 * begin[i + 1]. */
struct kronecker_rows {
    uint32_t vertices;
    uint32_t *begin, *to;
    uint8_t *weight;
};

static inline void *kronecker_memory(size_t count, size_t bytes) {
    void *memory = calloc(count + 1, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

static inline struct kronecker_rows kronecker_rows(unsigned scale, uint32_t first, uint32_t step) {
    uint32_t count = 1u << scale;
    struct kronecker_rows rows = {.vertices = first < count ? (count - first + step - 1) / step : 0};
    uint64_t edges = (uint64_t)KRONECKER_FACTOR << scale;
    rows.begin = kronecker_memory(rows.vertices + 1, sizeof *rows.begin);
    for (uint64_t i = 0; i < edges; i++) {
        struct kronecker_edge edge = kronecker_edge(i, scale);
        for (int way = 0; way < 2; way++)
            if ((way ? edge.to : edge.from) % step == first)
                rows.begin[(way ? edge.to : edge.from) / step + 1]++;
    }
    for (uint32_t i = 0; i < rows.vertices; i++)
        rows.begin[i + 1] += rows.begin[i];
    rows.to = kronecker_memory(rows.begin[rows.vertices], sizeof *rows.to);
    rows.weight = kronecker_memory(rows.begin[rows.vertices], sizeof *rows.weight);
    uint32_t *next = kronecker_memory(rows.vertices, sizeof *next);
    for (uint64_t i = 0; i < edges; i++) {
        struct kronecker_edge edge = kronecker_edge(i, scale);
        for (int way = 0; way < 2; way++) {
            uint32_t vertex = way ? edge.to : edge.from;
            if (vertex % step != first)
                continue;
            uint32_t place = rows.begin[vertex / step] + next[vertex / step]++;
            rows.to[place] = way ? edge.from : edge.to;
            rows.weight[place] = (uint8_t)edge.weight;
        }
    }
    free(next);
    return rows;
}

static inline void kronecker_free(struct kronecker_rows rows) {
    free(rows.begin);
    free(rows.to);
    free(rows.weight);
}

#endif
