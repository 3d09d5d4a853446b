/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the handlers of all-reduce and barrier (cost.h), apart from cost.c: on ARM, whose compiler unrolls their
 * vector loops, all do not fit into one program. */
#include "cost.h"
#include <handlers/allreduce/doubling.h>
#include <handlers/allreduce/ring.h>
#include <handlers/allreduce/tree.h>

static void allreduce(const struct allreduce_algorithm *algorithm, uint32_t ranks, uint32_t places, uint32_t sets) {
    enum { DATA = PACKET - sizeof(struct allreduce_packet) };
    struct allreduce state = {
        .bits = BITS, .rank = CARD, .ranks = ranks, .type = ALLREDUCE_FLOAT, .bytes = DATA, .arity = 1, .twos = 1};
    uint32_t bytes = allreduce_divide(&state, DATA, places, sets);
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(allreduce_attach(ni, PT, &state, bytes, algorithm, memory, memory, ct));
}

static void allreduce_doubles(void) { allreduce(&allreduce_doubling, 2, 3, 2); }
static void allreduce_rings(void) { allreduce(&allreduce_ring, 2, 0, 1); }
static void allreduce_trees(void) { allreduce(&allreduce_tree, 3, 1, 1); }

static void allreduce_packets(void) {
    static uint32_t operation;
    put(0, BITS + ALLREDUCE_START, operation);
    spin_host_compute(PATIENCE_NS);
    put(0, BITS + ALLREDUCE_READY, operation);
    spin_host_compute(PATIENCE_NS);
    *(struct allreduce_packet *)memory = (struct allreduce_packet){.operation = operation++, .step = 1};
    one_packet();
}

static void meets(void) {
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(barrier_attach(ni, PT, (struct barrier){.bits = BITS, .rank = CARD, .ranks = 2}, ct));
}

static void meet(void) {
    static uint32_t number;
    put(0, BITS, barrier_enter(number));
    spin_host_compute(PATIENCE_NS);
    put(0, BITS, number++);
}

static const struct test cases[] = {
    {"allreduce-doubling", "allreduce", "doubling, two ranks, floats", STATE(struct allreduce), allreduce_doubles,
     allreduce_packets},
    {"allreduce-ring", "allreduce", "ring, two ranks, floats", STATE(struct allreduce), allreduce_rings,
     allreduce_packets},
    {"allreduce-tree", "allreduce", "tree, one child, floats", STATE(struct allreduce), allreduce_trees,
     allreduce_packets},
    {"barrier", "barrier", "two ranks", STATE(struct barrier), meets, meet},
};

int main(int argc, char **argv) { return cost(argc, argv, cases, sizeof cases / sizeof *cases); }
