/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce in the cards: every rank gets the sum of all ranks' vectors. The CPUs only start it and are notified of
 * its end.
 *
 * Three algorithms, each in a separate file: recursive doubling (doubling.h), a ring (ring.h) and a tree (tree.h). This
 * file has the shared parts. Vectors are cut into segments, one in each packet, which are independent of each other. A
 * card fetches its rank's own segment by DMA when it needs it, adds arriving ones, and writes sums to host memory.
 *
 * A rank has at most `window` segments in flight: it contributes segment n + window when it has the sum of segment n.
 * So memory on the card does not depend on the size of the vector, and packets never fill the card's buffer. Setup:
 * README.md. */
#ifndef HANDLERS_ALLREDUCE_H
#define HANDLERS_ALLREDUCE_H

#include <handlers/barrier/barrier.h>
#include <handlers/common/lock.h>
#include <spin.h>
#include <string.h>

/* Header of every packet; the data follows. */
struct allreduce_packet {
    uint32_t operation; /* number of the all-reduce */
    uint32_t segment;   /* segment of the vector */
    uint32_t step;      /* step of the algorithm */
    uint32_t unused;
};

enum allreduce_type { ALLREDUCE_INT32, ALLREDUCE_FLOAT, ALLREDUCE_DOUBLE };

/* Match bits, to which `bits` of the state is added: packets, messages to the own card, messages of the ring's barrier;
 * and to the host: notice of a segment of the sum, and the rank for which the card waits. */
enum { ALLREDUCE_PACKET, ALLREDUCE_START, ALLREDUCE_READY, ALLREDUCE_DONE, ALLREDUCE_ANSWER };

/* Upper half of the header data of a message to the own card: 0 starts the operation whose number is the lower half; a
 * segment's number plus 1 contributes that segment; or a query, answered with a rank. */
enum { ALLREDUCE_WHO = 0x7fffffff, ALLREDUCE_NOBODY = 0x7fffffff };

/* Buffers for segments fetched by handlers; limits: bytes of HPU memory for segments in flight; window; least bytes of
 * a segment of a longer vector; packets below which a vector is split evenly. */
enum {
    ALLREDUCE_BUFFERS = 32,
    ALLREDUCE_MEMORY = 1 << 19,
    ALLREDUCE_WINDOW = 64,
    ALLREDUCE_LEAST = 512,
    ALLREDUCE_PARTS = 8
};

/* Start of HPU memory; buffers and slots follow. Set by allreduce_plan. */
struct allreduce {
    ptl_match_bits_t bits;
    uint32_t rank, ranks;
    uint32_t type;     /* enum allreduce_type */
    uint32_t bytes;    /* bytes of the vector */
    uint32_t segment;  /* bytes of a segment */
    uint32_t segments; /* number of segments */
    uint32_t told;     /* counts that report the end of an operation to the host */
    uint32_t window;   /* limit of a rank's segments in flight */
    uint32_t room;     /* bytes of a buffer for a packet */
    uint32_t slots;    /* number of slots, a power of two */
    uint32_t slot;     /* bytes of a slot */
    uint32_t arity;    /* tree: children of a rank */
    uint32_t in_order; /* the tree adds in a fixed order: the same bits in each run */
    uint32_t twos;     /* recursive doubling: log2 of the ranks that double */
    uint32_t folded;   /* ranks beyond that power of two; each is folded into a neighbour */
    struct barrier ready;
    uint32_t claimed[ALLREDUCE_BUFFERS]; /* 1 while a handler uses the buffer of this number */
};

/* Start of a segment's state, in its slot. */
struct allreduce_slot {
    uint32_t lock;
    uint32_t arrived; /* a bit for each arrived contribution */
    uint32_t awaited; /* recursive doubling: step of the next packet to add; 0 before the own contribution */
    uint32_t segment;
};

static inline struct allreduce_slot *allreduce_slot_number(struct allreduce *a, uint32_t number) {
    return (void *)((uint8_t *)(a + 1) + ALLREDUCE_BUFFERS * a->room + number * a->slot);
}

/* Slot of a segment. Consecutive operations use the slots without a gap. */
static inline struct allreduce_slot *allreduce_slot(struct allreduce *a, uint32_t operation, uint32_t segment) {
    return allreduce_slot_number(a, (operation * a->segments + segment) & (a->slots - 1));
}

/* Place of a packet in a slot. */
static inline struct allreduce_packet *allreduce_place(const struct allreduce *a, struct allreduce_slot *slot,
                                                       uint32_t number) {
    return (void *)((uint8_t *)(slot + 1) + number * a->room);
}

/* Bytes of the data of a segment. */
static inline uint32_t allreduce_length(const struct allreduce *a, uint32_t segment) {
    uint32_t left = a->bytes - segment * a->segment;
    return left < a->segment ? left : a->segment;
}

/* Adds the data of `from` to that of `to`. */
static inline void allreduce_add(const struct allreduce *a, struct allreduce_packet *to,
                                 const struct allreduce_packet *from, uint32_t bytes) {
    if (a->type == ALLREDUCE_INT32) {
        int32_t *restrict sum = (void *)(to + 1);
        const int32_t *restrict other = (const void *)(from + 1);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < bytes / 4; i++)
            sum[i] += other[i];
    } else if (a->type == ALLREDUCE_FLOAT) {
        float *restrict sum = (void *)(to + 1);
        const float *restrict other = (const void *)(from + 1);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < bytes / 4; i++)
            sum[i] += other[i];
    } else {
        double *restrict sum = (void *)(to + 1);
        const double *restrict other = (const void *)(from + 1);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < bytes / 8; i++)
            sum[i] += other[i];
    }
}

/* Takes a buffer, and gives it back. */
static inline struct allreduce_packet *allreduce_take(struct allreduce *a, uint32_t segment, uint32_t *number) {
    for (*number = segment % ALLREDUCE_BUFFERS; !lock_try(&a->claimed[*number]);
         *number = (*number + 1) % ALLREDUCE_BUFFERS)
        PtlHandlerYield();
    return (void *)((uint8_t *)(a + 1) + *number * a->room);
}

static inline void allreduce_give(struct allreduce *a, uint32_t number) { lock_give(&a->claimed[number]); }

/* Fetches this rank's own segment. */
static inline int allreduce_fetch(const struct allreduce *a, uint32_t operation, uint32_t segment,
                                  struct allreduce_packet *to) {
    to->operation = operation;
    to->segment = segment;
    return PtlHandlerDMAFromHostB((ptl_size_t)segment * a->segment, to + 1, allreduce_length(a, segment),
                                  PTL_HANDLER_HOST_MEM);
}

/* Sends a packet to the card of a rank. */
static inline int allreduce_send(const struct allreduce *a, struct allreduce_packet *packet, uint32_t step,
                                 uint32_t rank) {
    packet->step = step;
    return PtlHandlerPutFromDevice(packet, sizeof *packet + allreduce_length(a, packet->segment), 0, PTL_NO_ACK_REQ,
                                   (ptl_process_t){.rank = rank}, a->bits + ALLREDUCE_PACKET, 0, NULL, 0);
}

/* Starts to write a sum to host memory. */
static inline int allreduce_write(const struct allreduce *a, const struct allreduce_packet *sum, ptl_dma_h *written) {
    return PtlHandlerDMAToHostNB(sum + 1, (ptl_size_t)sum->segment * a->segment, allreduce_length(a, sum->segment),
                                 PTL_ME_HOST_MEM, written);
}

/* Adds one to the host's counter, by an empty message to the own card, whose event follows the data written before. (A
 * count by PtlHandlerCTInc could overtake it.) */
static inline int allreduce_count(const struct allreduce *a) {
    return PtlHandlerPutFromDevice(a, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = a->rank}, a->bits + ALLREDUCE_DONE,
                                   0, NULL, 0);
}

/* Waits until a sum leaves for host memory, and notifies the host. */
static inline int allreduce_tell(const struct allreduce *a, ptl_dma_h written) {
    return PtlHandlerDMAWait(written) ? FAIL : allreduce_count(a);
}

/* Makes this card contribute the first `count` segments from `from` on, `stride` apart: by messages to itself, so that
 * all HPUs take part. */
static inline int allreduce_spread(const struct allreduce *a, uint32_t operation, uint32_t from, uint32_t stride) {
    for (uint32_t i = 0, segment = from; i < a->window && segment < a->segments; i++, segment += stride)
        if (PtlHandlerPutFromDevice(a, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = a->rank},
                                    a->bits + ALLREDUCE_START, 0, NULL,
                                    (ptl_hdr_data_t)(segment + 1) << 32 | operation))
            return FAIL;
    return 0;
}

/* Tells the host the rank for which this card waits. */
static inline int allreduce_answer(const struct allreduce *a, uint32_t rank) {
    return PtlHandlerPutFromDevice(a, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = a->rank},
                                   a->bits + ALLREDUCE_ANSWER, 0, NULL, rank);
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Handlers of an algorithm; only the ring has `ready`. */
struct allreduce_algorithm {
    ptl_header_handler_t start, ready;
    ptl_payload_handler_t packet;
};

/* Computes the state from bits, rank, ranks, type, bytes, arity and in_order: segments of at most `segment` bytes, with
 * `places` places for packets in a slot, and `sets` slots for each segment in flight. Returns the bytes of HPU
 * memory. */
static inline uint32_t allreduce_divide(struct allreduce *a, uint32_t segment, uint32_t places, uint32_t sets) {
    a->segment = segment & ~7u;
    a->told = a->segments = (a->bytes + a->segment - 1) / a->segment;
    a->room = (uint32_t)sizeof(struct allreduce_packet) + ((a->bytes < a->segment ? a->bytes + 7 : a->segment) & ~7u);
    a->slot = (uint32_t)sizeof(struct allreduce_slot) + places * a->room;
    for (a->window = ALLREDUCE_WINDOW; a->window > 1 && a->window * sets * a->slot > ALLREDUCE_MEMORY;)
        a->window /= 2;
    a->slots = a->window * sets;
    a->ready = (struct barrier){.bits = a->bits + ALLREDUCE_READY, .rank = a->rank, .ranks = a->ranks};
    return (uint32_t)sizeof *a + ALLREDUCE_BUFFERS * a->room + a->slots * a->slot;
}

/* Bytes of a segment when `parts` handlers share `bytes` concurrently: enough that starting a handler takes less time
 * than the additions, and at most the room in a packet of `packet` bytes. */
static inline uint32_t allreduce_piece(uint32_t bytes, uint32_t parts, uint32_t packet) {
    uint32_t most = packet - (uint32_t)sizeof(struct allreduce_packet), share = (bytes + parts - 1) / parts;
    share = share < ALLREDUCE_LEAST ? ALLREDUCE_LEAST : share;
    return (share < most ? share + 7 : most) & ~7u;
}

/* Appends the entries of this rank: `source` is its vector, `sums` receives the sum, and `ct` counts to `told` in each
 * operation. Returns PTL_OK, or the error of PtlHPUAllocMem or PtlMEAppend. */
static inline int allreduce_attach(ptl_handle_ni_t ni, ptl_pt_index_t pt, const struct allreduce *a, uint32_t memory,
                                   const struct allreduce_algorithm *algorithm, void *source, void *sums,
                                   ptl_handle_ct_t ct) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = sums,
                   .length = a->bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = a->bits + ALLREDUCE_PACKET,
                   .payload_handler = algorithm->packet,
                   .handler_host_mem_start = source,
                   .handler_host_mem_length = a->bytes,
                   .hpu_initial_state = a,
                   .hpu_initial_state_length = sizeof *a};
    int rc = PtlHPUAllocMem(memory, ni, &me.hpu_memory);
    if (rc == PTL_OK)
        rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    me.payload_handler = NULL;
    me.hpu_initial_state_length = 0;
    me.header_handler = algorithm->start;
    me.match_bits = a->bits + ALLREDUCE_START;
    if (rc == PTL_OK)
        rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    me.header_handler = algorithm->ready;
    me.match_bits = a->bits + ALLREDUCE_READY;
    if (rc == PTL_OK && algorithm->ready != NULL)
        rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    ptl_me_t done = {.ct_handle = ct,
                     .uid = PTL_UID_ANY,
                     .options = me.options | PTL_ME_EVENT_CT_COMM,
                     .match_id.rank = a->rank,
                     .match_bits = a->bits + ALLREDUCE_DONE,
                     .hpu_memory = PTL_INVALID_HANDLE};
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &done, PTL_PRIORITY_LIST, NULL, &handle);
}

#endif
