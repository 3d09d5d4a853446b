/* SPDX-License-Identifier: Apache-2.0 */
/* The three algorithms by triggered atomic operations (Portals 4): the card adds in host memory, and sends the sum
 * after all parts of a step arrive. An atomic operation is at most max_atomic_size bytes, so that a vector is as many
 * independent chains.
 *
 * Doubling: the sum of each step has a separate place, to which this rank and its partner add. Ring and tree: this rank and
 * its predecessors add to one place; triggered puts then send the total to the other ranks. A chain of the ring
 * begins at one rank and ends at its predecessor; the chains are divided evenly among the ranks.
 *
 * The host sets a place to zero, and sets up the operations, before they are needed; neither costs time here. The host posts
 * the first part of its vector, and starts all others by one increment of a counter; another counter signals that all parts of the
 * sum have arrived. Two sets of places are needed, because other ranks may be one all-reduce ahead. */
#ifndef EXPERIMENTS_ALLREDUCE_TRIGGERED_H
#define EXPERIMENTS_ALLREDUCE_TRIGGERED_H

#include "cpu.h"

enum { ADDED = 1024 };        /* first match bits: one for each set, part and step */
enum { GATHERED = 1u << 30 }; /* first match bits of totals: one for each part (ring, tree) */
enum { CHAINS = 512 };        /* maximum number of parts of a vector */

static struct triggered {
    unsigned char *places; /* two sets of a place for each step */
    ptl_handle_md_t md, sums_md;
    ptl_handle_ct_t *counts; /* counts of each set, part and step */
    ptl_handle_ct_t sums;    /* doubling: received parts of the sum, at a rank folded into its neighbour */
    ptl_handle_ct_t *come;   /* ring, tree: for each part, received sums */
    ptl_handle_ct_t left;    /* operations whose data has left the places */
    ptl_handle_ct_t go;      /* all-reduces for which the host has its vector */
    ptl_handle_ct_t all;     /* received parts of sums, over all all-reduces */
    ptl_size_t armed;        /* operations that the card does in an all-reduce */
    size_t part, parts;
    uint32_t steps;
    enum algorithm algorithm;
} triggered;

static const ptl_datatype_t datatypes[] = {PTL_INT32_T, PTL_FLOAT, PTL_DOUBLE};

static size_t part_bytes(size_t part) {
    size_t left = cpu.bytes - part * triggered.part;
    return left < triggered.part ? left : triggered.part;
}

/* Offset of the place of a part after a step, and its counter. */
static size_t place_of(uint32_t set, uint32_t step, size_t part) {
    return (set * triggered.steps + step) * cpu.bytes + part * triggered.part;
}
static ptl_handle_ct_t *count_of(uint32_t set, uint32_t step, size_t part) {
    return &triggered.counts[(set * triggered.parts + part) * triggered.steps + step];
}
static ptl_match_bits_t bits_of(uint32_t set, uint32_t step, size_t part) {
    return ADDED + (set * triggered.parts + part) * triggered.steps + step;
}

/* The way of a part through ring or tree. */
struct way {
    uint32_t inputs; /* contributions to this rank's place, its own included; 0: it sends its own from the vector */
    uint32_t up;     /* the rank that receives their sum, or NOBODY if it is the total */
    uint32_t down, downs; /* the ranks to which this rank passes the sum of all on */
    uint32_t before;      /* the rank that sends the total, or NOBODY */
};

static struct way way_of(const struct allreduce *a, size_t part) {
    if (triggered.algorithm == TREE) {
        uint32_t children = allreduce_children(a), parent = cpu.rank == 0 ? NOBODY : allreduce_parent(a);
        return (struct way){.inputs = children > 0 ? children + 1 : 0,
                            .up = parent,
                            .down = allreduce_child(a),
                            .downs = children,
                            .before = parent};
    }
    uint32_t place = (cpu.rank + cpu.ranks - (uint32_t)(part % cpu.ranks)) % cpu.ranks, last = cpu.ranks - 1;
    uint32_t next = (cpu.rank + 1) % cpu.ranks;
    return (struct way){.inputs = place == 0 ? 0 : 2,
                        .up = place == last ? NOBODY : next,
                        .down = next,
                        .downs = place + 2 == cpu.ranks ? 0 : 1,
                        .before = place == last ? NOBODY : (cpu.rank + last) % cpu.ranks};
}

/* Adds a part of this rank's vector to the place of a rank: now, or, set up, when the host lets it go. */
static void contribute(size_t part, uint32_t to, ptl_match_bits_t bits) {
    CHECK(PtlAtomic(cpu.source_md, part * triggered.part, part_bytes(part), PTL_NO_ACK_REQ, (ptl_process_t){.rank = to},
                    PT, bits, 0, NULL, 0, PTL_SUM, datatypes[type]));
}
static void contribute_later(size_t part, uint32_t to, ptl_match_bits_t bits, uint32_t operation) {
    CHECK(PtlTriggeredAtomic(cpu.source_md, part * triggered.part, part_bytes(part), PTL_NO_ACK_REQ,
                             (ptl_process_t){.rank = to}, PT, bits, 0, NULL, 0, PTL_SUM, datatypes[type], triggered.go,
                             operation + 1));
}

/* Destinations of a rank's own vector: a partner or a rank of the way, and with doubling also to its own place. */
static void contribute_all(const struct allreduce *a, uint32_t operation, bool is_now) {
    uint32_t set = operation & 1, first = cpu.rank < 2 * a->folded ? 0 : 1;
    for (size_t part = is_now ? 0 : 1; part < (is_now ? 1 : triggered.parts); part++) {
        uint32_t to[2] = {NOBODY, NOBODY}, step = 0;
        if (triggered.algorithm == DOUBLING) {
            step = first;
            to[0] = allreduce_has_folded(a) ? NOBODY : allreduce_partner(a, first);
            to[1] = allreduce_is_folded(a) ? NOBODY : cpu.rank;
        } else {
            struct way way = way_of(a, part);
            to[0] = way.inputs > 0 ? cpu.rank : way.up;
        }
        for (int i = 0; i < 2; i++)
            if (to[i] != NOBODY && is_now)
                contribute(part, to[i], bits_of(set, step, part));
            else if (to[i] != NOBODY)
                contribute_later(part, to[i], bits_of(set, step, part), operation);
    }
}

/* Messages that these are in an all-reduce. */
static ptl_size_t contributions(const struct allreduce *a) {
    bool is_one = triggered.algorithm != DOUBLING || allreduce_has_folded(a) || allreduce_is_folded(a);
    return triggered.parts * (is_one ? 1 : 2);
}

/* Sets up the count of a part of the sum, triggered when `ct` reaches `count`. */
static void tell_of_part(ptl_handle_ct_t ct, ptl_size_t count) {
    CHECK(PtlTriggeredCTInc(triggered.all, (ptl_ct_event_t){.success = 1}, ct, count));
}

/* Sets up the operations of ring or tree. */
static void arm_ways(const struct allreduce *a, uint32_t operation) {
    uint32_t set = operation & 1, turn = operation / 2 + 1;
    for (size_t part = 0; part < triggered.parts; part++) {
        struct way way = way_of(a, part);
        ptl_handle_ct_t added = *count_of(set, 0, part);
        triggered.armed += (way.inputs > 0) + way.downs;
        tell_of_part(triggered.come[part], operation + 1);
        if (way.inputs > 0 && way.up != NOBODY)
            CHECK(PtlTriggeredAtomic(triggered.md, place_of(set, 0, part), part_bytes(part), PTL_NO_ACK_REQ,
                                     (ptl_process_t){.rank = way.up}, PT, bits_of(set, 0, part), 0, NULL, 0, PTL_SUM,
                                     datatypes[type], added, (ptl_size_t)way.inputs * turn));
        else if (way.inputs > 0) /* the sum of all */
            CHECK(PtlTriggeredPut(triggered.md, place_of(set, 0, part), part_bytes(part), PTL_NO_ACK_REQ,
                                  (ptl_process_t){.rank = cpu.rank}, PT, GATHERED + part, 0, NULL, 0, added,
                                  (ptl_size_t)way.inputs * turn));
        for (uint32_t i = 0; i < way.downs; i++)
            CHECK(PtlTriggeredPut(triggered.sums_md, part * triggered.part, part_bytes(part), PTL_NO_ACK_REQ,
                                  (ptl_process_t){.rank = way.down + i}, PT, GATHERED + part, 0, NULL, 0,
                                  triggered.come[part], operation + 1));
    }
}

/* Sets up the card's operations of an all-reduce. This precedes the previous all-reduce, during which others may
 * already send for this one. */
static void arm(const struct allreduce *a, uint32_t operation) {
    uint32_t set = operation & 1, turn = operation / 2 + 1;
    memset(triggered.places + place_of(set, 0, 0), 0, triggered.steps * cpu.bytes);
    triggered.armed = 0;
    contribute_all(a, operation, false);
    if (triggered.algorithm != DOUBLING)
        return arm_ways(a, operation);
    for (size_t part = 0; part < triggered.parts && !allreduce_is_folded(a); part++)
        tell_of_part(*count_of(set, a->twos, part), 2 * (ptl_size_t)turn);
    for (size_t part = 0; part < triggered.parts && !allreduce_is_folded(a); part++) {
        for (uint32_t step = 0; step < a->twos; step++) {
            /* The first place is not used by ranks without a neighbour that is folded into them: their host begins with step 1. */
            const uint32_t to[2] = {cpu.rank, allreduce_partner(a, step + 1)};
            if (step == 0 && !allreduce_has_folded(a))
                continue;
            triggered.armed += 2;
            for (int i = 0; i < 2; i++)
                CHECK(PtlTriggeredAtomic(triggered.md, place_of(set, step, part), part_bytes(part), PTL_NO_ACK_REQ,
                                         (ptl_process_t){.rank = to[i]}, PT, bits_of(set, step + 1, part), 0, NULL, 0,
                                         PTL_SUM, datatypes[type], *count_of(set, step, part), 2 * turn));
        }
        if (!allreduce_has_folded(a))
            continue;
        triggered.armed++;
        CHECK(PtlTriggeredPut(triggered.md, place_of(set, a->twos, part), part_bytes(part), PTL_NO_ACK_REQ,
                              (ptl_process_t){.rank = cpu.rank - 1}, PT, SUMS, part * triggered.part, NULL, 0,
                              *count_of(set, a->twos, part), 2 * turn));
    }
}

/* Appends the entries; `a` names the partners. */
static void prepare_triggered(const struct allreduce *a, enum algorithm algorithm) {
    size_t share = algorithm == RING ? ((cpu.bytes + cpu.ranks - 1) / cpu.ranks + 7) & ~(size_t)7 : cpu.bytes;
    triggered.algorithm = algorithm;
    triggered.part = share < limits.max_atomic_size ? share : limits.max_atomic_size;
    triggered.parts = (cpu.bytes + triggered.part - 1) / triggered.part;
    triggered.steps = algorithm == DOUBLING ? a->twos + 1 : 1;
    if (triggered.parts > CHAINS)
        fail("%zu bytes are more than %d atomic operations of %zu bytes", cpu.bytes, CHAINS, triggered.part);
    triggered.places = allocate(2 * triggered.steps * cpu.bytes);
    triggered.counts = allocate(2 * triggered.steps * triggered.parts * sizeof *triggered.counts);
    CHECK(PtlCTAlloc(ni, &triggered.left));
    triggered.md = bind_memory(triggered.places, 2 * triggered.steps * cpu.bytes, PTL_MD_EVENT_CT_SEND, triggered.left);
    CHECK(PtlCTAlloc(ni, &triggered.sums));
    CHECK(PtlCTAlloc(ni, &triggered.go));
    CHECK(PtlCTAlloc(ni, &triggered.all));
    for (uint32_t set = 0; set < 2; set++)
        for (size_t part = 0; part < triggered.parts; part++)
            for (uint32_t step = 0; step < triggered.steps; step++) {
                CHECK(PtlCTAlloc(ni, count_of(set, step, part)));
                append_entry(PT, bits_of(set, step, part), triggered.places + place_of(set, step, part),
                             part_bytes(part),
                             (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                                        .ct_handle = *count_of(set, step, part),
                                        .hpu_memory = PTL_INVALID_HANDLE});
            }
    for (size_t part = 0; part < triggered.parts && algorithm != DOUBLING; part++) {
        if (part == 0)
            triggered.come = allocate(triggered.parts * sizeof *triggered.come);
        CHECK(PtlCTAlloc(ni, &triggered.come[part]));
        append_entry(PT, GATHERED + part, cpu.sums + part * triggered.part, part_bytes(part),
                     (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                                .ct_handle = triggered.come[part],
                                .hpu_memory = PTL_INVALID_HANDLE});
    }
    triggered.sums_md = bind_memory(cpu.sums, cpu.bytes, PTL_MD_EVENT_CT_SEND, triggered.left);
    arm(a, 0);
    arm(a, 1);
    append_entry(PT, SUMS, cpu.sums, cpu.bytes,
                 (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                            .ct_handle = triggered.sums,
                            .hpu_memory = PTL_INVALID_HANDLE});
}

/* The rank whose part of a step is missing. */
static uint32_t missing_from(const struct allreduce *a, uint32_t set, ptl_size_t count) {
    for (uint32_t step = cpu.rank < 2 * a->folded ? 0 : 1; step <= a->twos; step++)
        for (size_t part = 0; part < triggered.parts; part++) {
            ptl_ct_event_t counted;
            CHECK(PtlCTGet(*count_of(set, step, part), &counted));
            if (counted.success < count)
                return allreduce_partner(a, step);
        }
    return NOBODY;
}

/* Waits for a counter; returns true if it reaches `count`. */
static bool await_counter(ptl_handle_ct_t ct, ptl_size_t count) {
    ptl_ct_event_t counted;
    unsigned which;
    int rc = PtlCTPoll(&ct, &count, 1, (ptl_time_t)(patience_ps / 1000000000), &counted, &which);
    if (rc == PTL_CT_NONE_REACHED)
        return false;
    check_card(rc);
    return counted.failure == 0;
}

/* The rank for whose part of ring or tree this rank waits. */
static uint32_t missing_on_the_way(const struct allreduce *a, size_t part, uint32_t set, uint32_t turn) {
    struct way way = way_of(a, part);
    ptl_ct_event_t counted;
    CHECK(PtlCTGet(*count_of(set, 0, part), &counted));
    if (counted.success >= (ptl_size_t)way.inputs * turn)
        return way.before;
    if (triggered.algorithm == RING)
        return (cpu.rank + cpu.ranks - 1) % cpu.ranks;
    /* The counter does not identify the missing part of the tree: report the first child that does not answer. */
    for (uint32_t i = 0; i < allreduce_children(a); i++)
        if (ping(PT, PING, allreduce_child(a) + i) != PTL_NI_OK)
            return allreduce_child(a) + i;
    return allreduce_child(a);
}

/* Waits until the data of an all-reduce has left the places, and sets up the one after the next in them. */
static void arm_next(const struct allreduce *a, uint32_t operation) {
    await_left(triggered.left, triggered.armed * (operation + 1));
    arm(a, operation + 2);
}

/* Does an all-reduce of ring or tree. */
static void reduce_on_ways(const struct allreduce *a, uint32_t operation) {
    size_t part = 0;
    if (await_counter(triggered.all, (ptl_size_t)triggered.parts * (operation + 1)))
        return;
    for (ptl_ct_event_t counted = {.success = operation + 1}; counted.success > operation; part++)
        CHECK(PtlCTGet(triggered.come[part], &counted));
    give_up(missing_on_the_way(a, part - 1, operation & 1, operation / 2 + 1));
}

/* Does an all-reduce that is set up. */
static void reduce_by_triggers(const struct allreduce *a, uint32_t operation) {
    uint32_t set = operation & 1;
    contribute_all(a, operation, true);
    CHECK(PtlCTInc(triggered.go, (ptl_ct_event_t){.success = 1}));
    cpu.sends += contributions(a);
    if (triggered.algorithm != DOUBLING)
        return reduce_on_ways(a, operation);
    if (allreduce_is_folded(a)) {
        if (!await_counter(triggered.sums, (ptl_size_t)triggered.parts * (operation + 1)))
            give_up(cpu.rank + 1);
        return;
    }
    if (!await_counter(triggered.all, (ptl_size_t)triggered.parts * (operation + 1)))
        give_up(missing_from(a, set, 2 * (ptl_size_t)(operation / 2 + 1)));
    memcpy(cpu.sums, triggered.places + place_of(set, a->twos, 0), cpu.bytes);
}

#endif
