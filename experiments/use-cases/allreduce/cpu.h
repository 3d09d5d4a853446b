/* SPDX-License-Identifier: Apache-2.0 */
/* All three algorithms on CPUs, as an MPI library does them over RDMA: memory for every message is known beforehand, messages of more
 * than 32 KiB go in pieces, so that sending, receiving and adding overlap, and nothing is copied. */
#ifndef EXPERIMENTS_ALLREDUCE_CPU_H
#define EXPERIMENTS_ALLREDUCE_CPU_H

#include "data.h"

enum { STAGED = 16, SUMS = 17 }; /* match bits */
enum { PIECE = 32768 };
enum { IN_LINE = 64 };       /* bytes that arrive in the cache line polled by the CPU */
enum { IN_CACHE = 1 << 20 }; /* bytes of a vector that stays in the CPU's cache */

/* Objects of the CPUs in a run. */
static struct cpu {
    unsigned char *source, *staged, *sums;
    ptl_handle_md_t source_md, staged_md, sums_md;
    uint32_t *seen;       /* messages by their number */
    ptl_handle_ct_t sent; /* counts messages that have left memory */
    ptl_size_t sends;
    size_t bytes;
    uint32_t rank, ranks, arity, cores;
} cpu;

static void give_up(uint32_t missing);
static uint64_t patience_ps;

/* Charges a core, or several that share the work, for adding vectors of `bytes` bytes. Received data is read from
 * DRAM. */
static void charge(size_t bytes) {
    size_t share = bytes / cpu.cores;
    if (bytes <= IN_LINE)
        return;
    spin_host_memory(cpu.bytes <= IN_CACHE ? share : 2 * share, cpu.bytes <= IN_CACHE ? 0 : share);
}

/* to = a + b */
static void add(void *to, const void *a, const void *b, size_t bytes) {
    for (size_t i = 0; i < bytes / type_bytes[type]; i++) {
        if (type == ALLREDUCE_INT32)
            ((int32_t *)to)[i] = ((const int32_t *)a)[i] + ((const int32_t *)b)[i];
        else if (type == ALLREDUCE_FLOAT)
            ((float *)to)[i] = ((const float *)a)[i] + ((const float *)b)[i];
        else
            ((double *)to)[i] = ((const double *)a)[i] + ((const double *)b)[i];
    }
    charge(bytes);
}

/* Waits for `times` messages with this number. */
static void await(uint32_t number, uint32_t times, uint32_t from) {
    ptl_event_t event;
    unsigned which;
    uint64_t end = 0; /* read late: reading the time waits for the puts that are posted ahead */
    while (cpu.seen[number] < times) {
        int rc = PtlEQPoll(&events, 1, patience_ps / 1000000000, &event, &which);
        uint64_t now = spin_time_ps();
        if (end == 0)
            end = now + patience_ps;
        if (rc == PTL_EQ_EMPTY || (rc == PTL_OK && now > end))
            give_up(from);
        check_card(rc);
        if (event.ni_fail_type != PTL_NI_OK)
            give_up(from);
        if (event.type == PTL_EVENT_PUT)
            cpu.seen[event.hdr_data]++;
    }
}

static void tell(ptl_handle_md_t md, size_t at, size_t bytes, uint32_t to, ptl_match_bits_t bits, size_t place,
                 uint32_t number) {
    check_card(PtlPut(md, at, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, PT, bits, place, NULL, number));
    cpu.sends++;
}

/* Waits until messages have left memory, which may then be reused, or until one fails, which a time-out detects. */
static void await_left(ptl_handle_ct_t ct, ptl_size_t count) {
    int rc = spin_ct_await(ct, count);
    if (rc != PTL_FAIL)
        CHECK(rc);
}

static void await_sends(void) { await_left(cpu.sent, cpu.sends); }

/* Recursive doubling. Partners may be one operation ahead, so two sets of places are needed. */
static void double_by_cpu(const struct allreduce *a, uint32_t operation) {
    size_t places = a->twos + 1, set = (operation & 1) * places * cpu.bytes;
    uint32_t number = (operation & 1) * ((uint32_t)places + 1), times = operation / 2 + 1, end = a->twos + 1;
    unsigned char *own = cpu.source;
    ptl_handle_md_t md = cpu.source_md;
    size_t at = 0;
    if (allreduce_is_folded(a)) {
        tell(md, at, cpu.bytes, cpu.rank + 1, STAGED, set, number);
        return await(number + end, times, cpu.rank + 1);
    }
    for (uint32_t step = allreduce_has_folded(a) ? 0 : 1; step <= a->twos; step++) {
        unsigned char *other = cpu.staged + set + step * cpu.bytes, *to = step == a->twos ? cpu.sums : other;
        if (step > 0)
            tell(md, at, cpu.bytes, allreduce_partner(a, step), STAGED, set + step * cpu.bytes, number + step);
        await(number + step, times, allreduce_partner(a, step));
        add(to, own, other, cpu.bytes);
        own = other;
        md = cpu.staged_md;
        at = set + step * cpu.bytes;
    }
    if (allreduce_has_folded(a))
        tell(cpu.sums_md, 0, cpu.bytes, cpu.rank - 1, SUMS, 0, number + end);
}

/* A ring of chunks, each in pieces. A piece is forwarded before the CPU waits for the next. */
static void ring_by_cpu(uint32_t operation) {
    size_t chunk = ((cpu.bytes + cpu.ranks - 1) / cpu.ranks + 7) & ~(size_t)7;
    uint32_t next = (cpu.rank + 1) % cpu.ranks, before = (cpu.rank + cpu.ranks - 1) % cpu.ranks;
    uint32_t pieces = (uint32_t)((chunk + PIECE - 1) / PIECE), gathered = pieces * cpu.ranks;
    for (uint32_t step = 0; step + 1 < 2 * cpu.ranks; step++) {
        uint32_t number = (cpu.rank + 2 * cpu.ranks - step) % cpu.ranks;
        for (uint32_t piece = 0; piece < pieces; piece++) {
            size_t at = number * chunk + piece * (size_t)PIECE, end = (number + 1) * chunk;
            if (end > cpu.bytes)
                end = cpu.bytes;
            if (at >= end)
                break;
            size_t bytes = end - at < PIECE ? end - at : PIECE;
            uint32_t id = number * pieces + piece;
            bool is_sum = step + 1 >= cpu.ranks;
            unsigned char *to = is_sum ? cpu.sums : cpu.staged;
            if (step > 0)
                await(step < cpu.ranks ? id : gathered + id, operation + 1, before);
            if (step > 0 && step < cpu.ranks)
                add(to + at, cpu.source + at, cpu.staged + at, bytes);
            if (step + 2 < 2 * cpu.ranks)
                tell(step == 0 ? cpu.source_md
                     : is_sum  ? cpu.sums_md
                               : cpu.staged_md,
                     at, bytes, next, is_sum ? SUMS : STAGED, at, is_sum ? gathered + id : id);
        }
    }
}

/* A tree, piece by piece: first up, then down. */
static void tree_by_cpu(const struct allreduce *a, uint32_t operation) {
    uint32_t children = allreduce_children(a), first = allreduce_child(a),
             parent = cpu.rank == 0 ? 0 : allreduce_parent(a);
    uint32_t pieces = (uint32_t)((cpu.bytes + PIECE - 1) / PIECE),
             place = cpu.rank == 0 ? 0 : (cpu.rank - 1) % a->arity;
    for (uint32_t turn = 0; turn < 2 * pieces; turn++) {
        uint32_t piece = turn % pieces;
        size_t at = piece * (size_t)PIECE, bytes = cpu.bytes - at < PIECE ? cpu.bytes - at : PIECE;
        if (turn < pieces) {
            for (uint32_t i = 0; i < children; i++) {
                await(i * pieces + piece, operation + 1, first + i);
                add(cpu.sums + at, (i == 0 ? cpu.source : cpu.sums) + at, cpu.staged + i * cpu.bytes + at, bytes);
            }
            if (cpu.rank > 0)
                tell(children > 0 ? cpu.sums_md : cpu.source_md, at, bytes, parent, STAGED, place * cpu.bytes + at,
                     place * pieces + piece);
        } else if (cpu.rank > 0) {
            await(a->arity * pieces + piece, operation + 1, parent);
        }
        if (cpu.rank == 0 ? turn < pieces : turn >= pieces)
            for (uint32_t i = 0; i < children; i++)
                tell(cpu.sums_md, at, bytes, first + i, SUMS, at, a->arity * pieces + piece);
    }
}

/* Prepares this rank's CPU; messages post events if `is_heard`. */
static void prepare_cpu(const struct allreduce *a, enum algorithm algorithm, unsigned char *source, unsigned char *sums,
                        uint32_t cores, bool is_heard) {
    size_t places = algorithm == DOUBLING ? 2 * (a->twos + 1) : algorithm == RING ? 1 : a->arity;
    size_t pieces = a->bytes / PIECE + 2 * a->ranks + 2;
    cpu = (struct cpu){.source = source,
                       .sums = sums,
                       .staged = allocate(places * a->bytes),
                       .seen = allocate((2 * pieces + a->arity * pieces + 2 * (a->twos + 2)) * sizeof(uint32_t)),
                       .bytes = a->bytes,
                       .rank = a->rank,
                       .ranks = a->ranks,
                       .cores = cores};
    CHECK(PtlCTAlloc(ni, &cpu.sent));
    cpu.source_md = bind_memory(source, a->bytes, PTL_MD_EVENT_CT_SEND, cpu.sent);
    cpu.sums_md = bind_memory(sums, a->bytes, PTL_MD_EVENT_CT_SEND, cpu.sent);
    cpu.staged_md = bind_memory(cpu.staged, places * a->bytes, PTL_MD_EVENT_CT_SEND, cpu.sent);
    if (is_heard) {
        append_events(PT, STAGED, cpu.staged, places * a->bytes);
        append_events(PT, SUMS, sums, a->bytes);
    }
}

static void reduce_by_cpu(const struct allreduce *a, enum algorithm algorithm, uint32_t operation) {
    switch (algorithm) {
    case DOUBLING: double_by_cpu(a, operation); break;
    case RING: ring_by_cpu(operation); break;
    default: tree_by_cpu(a, operation);
    }
}

#endif
