/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce in the switches of the network (sPIN 7): the leaf switches add the data of their ranks packet by packet,
 * the root adds the sums of the leaves, and the total returns on the same tree.
 *
 *     ranks ── chunk ──▶ leaf ── sum ──▶ root ── total ──▶ leaf ── total ──▶ ranks
 *
 * A vector is cut into chunks, each a message of one packet. A switch adds a chunk in a *slot* of its HPU memory; chunk
 * c uses slot c modulo the number of slots, and a rank sends it once the total of chunk c minus that number arrives:
 * then the slot is free, on all switches. A slot has two buffers in turn, because a total may still leave from one
 * while the first data for the next chunk arrives. Setup: README.md. */
#ifndef HANDLERS_SWITCH_ALLREDUCE_H
#define HANDLERS_SWITCH_ALLREDUCE_H

#include "../common/lock.h"
#include <stdlib.h>
#include <string.h>

/* Type of the elements. */
#ifndef SWITCH_ALLREDUCE_TYPE
#define SWITCH_ALLREDUCE_TYPE int32_t
#endif
typedef SWITCH_ALLREDUCE_TYPE switch_allreduce_t;

/* Maximum bytes of a chunk; elements under one lock; maximum number of inputs of a switch; slots. */
enum {
    SWITCH_ALLREDUCE_CHUNK = 4096,
    SWITCH_ALLREDUCE_PIECE = 64,
    SWITCH_ALLREDUCE_PIECES = SWITCH_ALLREDUCE_CHUNK / sizeof(switch_allreduce_t) / SWITCH_ALLREDUCE_PIECE,
    SWITCH_ALLREDUCE_CHILDREN = 64,
    SWITCH_ALLREDUCE_SLOTS = 32
};

/* Match bits of the messages, with the number of the slot added; all use one portal table entry. */
enum switch_allreduce_message {
    SWITCH_ALLREDUCE_UP = 0x100,    /* data, to a switch */
    SWITCH_ALLREDUCE_DOWN = 0x200,  /* a total, from the root to a leaf */
    SWITCH_ALLREDUCE_TOTAL = 0x300, /* a total, to a rank; remote offset: its place in the vector */
    SWITCH_ALLREDUCE_ASK = 0x400,   /* empty, from a rank to a switch: query of the arrived inputs */
    SWITCH_ALLREDUCE_ANSWER = 0x500 /* two words with a bit for each child, to the rank */
};

/* hdr_data of messages with data: the place of the chunk in the vector in bytes, the index of the sender among the
 * children of the switch, and the slot's buffer. */
static inline ptl_hdr_data_t switch_allreduce_header(uint32_t place, uint32_t child, uint32_t buffer) {
    return (ptl_hdr_data_t)buffer << 63 | (ptl_hdr_data_t)child << 32 | place;
}

/* HPU memory of a slot, used by handlers of one chunk at a time. */
struct switch_allreduce {
    /* Set by the host. */
    uint32_t slot, inputs, children, is_leaf;
    uint32_t parent,
        number; /* process that receives sums, and index of this switch among its children; the root names itself */
    uint16_t child[SWITCH_ALLREDUCE_CHILDREN]; /* processes that receive totals */
    /* Changed by handlers. */
    uint32_t place, buffer;                        /* place and buffer of the current chunk */
    uint32_t came[SWITCH_ALLREDUCE_CHILDREN / 32]; /* a bit for each child whose data has arrived */
    uint32_t lock[SWITCH_ALLREDUCE_PIECES];        /* locks of the pieces */
    uint32_t added[SWITCH_ALLREDUCE_PIECES];       /* number of messages added to each piece */
    uint32_t done;                                 /* number of messages added */
};

/* The sums follow the structure, outside its initial state. */
#define SWITCH_ALLREDUCE_STATE ((sizeof(struct switch_allreduce) + 7) & ~(size_t)7)
#define SWITCH_ALLREDUCE_MEMORY (SWITCH_ALLREDUCE_STATE + 2 * SWITCH_ALLREDUCE_CHUNK)

/* HPU memory for totals on their way down to a leaf's ranks. */
struct switch_allreduce_down {
    uint32_t slot, children;
    uint16_t child[SWITCH_ALLREDUCE_CHILDREN];
    uint32_t place; /* place of the current chunk; changed by handlers */
};

/* ---- Handlers of switches ---------------------------------------------------------------------------------------- */

/* Sends a total to children, each by one packet. */
static inline int switch_allreduce_spread(const void *total, ptl_size_t bytes, const uint16_t *child, uint32_t children,
                                          uint32_t message, uint32_t place) {
    for (uint32_t i = 0; i < children; i++)
        if (PtlHandlerPutFromDevice(total, bytes, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = child[i]}, message, place,
                                    NULL, place))
            return FAIL;
    return SUCCESS;
}

/* Header handler: records the sender and the chunk of data going up. */
__handler int switch_allreduce_up_header(const ptl_header_t h, void *state) {
    struct switch_allreduce *s = state;
    uint32_t child = (uint32_t)(h.hdr_data >> 32) & 0xffff;
    if (h.length > SWITCH_ALLREDUCE_CHUNK || child >= SWITCH_ALLREDUCE_CHILDREN)
        return FAIL;
    s->place = (uint32_t)h.hdr_data;
    s->buffer = (uint32_t)(h.hdr_data >> 63);
    __atomic_fetch_or(&s->came[child / 32], 1u << child % 32, __ATOMIC_RELAXED);
    return PROCESS_DATA;
}

/* Payload handler: adds the packet to the sum, piece by piece: handlers of the same chunk follow each other through the
 * pieces. The last one forwards the sum. */
__handler int switch_allreduce_up_payload(const ptl_payload_t p, void *state) {
    struct switch_allreduce *s = state;
    uint32_t place = s->place, buffer = s->buffer, elements = p.length / sizeof(switch_allreduce_t);
    switch_allreduce_t *sums =
        (switch_allreduce_t *)((uint8_t *)state + SWITCH_ALLREDUCE_STATE + buffer * SWITCH_ALLREDUCE_CHUNK);
    const switch_allreduce_t *data = (const switch_allreduce_t *)p.base;
    for (uint32_t piece = 0, at = 0; at < elements; piece++, at += SWITCH_ALLREDUCE_PIECE) {
        uint32_t end = elements - at < SWITCH_ALLREDUCE_PIECE ? elements : at + SWITCH_ALLREDUCE_PIECE;
        lock_take(&s->lock[piece]);
        if (s->added[piece] == 0) {
#pragma GCC unroll 8
            for (uint32_t i = at; i < end; i++)
                sums[i] = data[i];
        } else {
#pragma GCC unroll 8
            for (uint32_t i = at; i < end; i++)
                sums[i] += data[i];
        }
        s->added[piece] = s->added[piece] + 1 < s->inputs ? s->added[piece] + 1 : 0;
        lock_give(&s->lock[piece]);
    }
    if (__atomic_add_fetch(&s->done, 1, __ATOMIC_ACQ_REL) < s->inputs)
        return SUCCESS;
    s->done = 0;
    for (uint32_t i = 0; i < SWITCH_ALLREDUCE_CHILDREN / 32; i++)
        s->came[i] = 0;
    if (s->parent == 0)
        return switch_allreduce_spread(sums, p.length, s->child, s->children,
                                       (s->is_leaf ? SWITCH_ALLREDUCE_TOTAL : SWITCH_ALLREDUCE_DOWN) + s->slot, place);
    if (PtlHandlerPutFromDevice(sums, p.length, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = s->parent},
                                SWITCH_ALLREDUCE_UP + s->slot, 0, NULL,
                                switch_allreduce_header(place, s->number, buffer)))
        return FAIL;
    return SUCCESS;
}

/* Header handler: records the chunk of a total going down. */
__handler int switch_allreduce_down_header(const ptl_header_t h, void *state) {
    struct switch_allreduce_down *s = state;
    s->place = (uint32_t)h.hdr_data;
    return PROCESS_DATA;
}

/* Payload handler: sends the packet of a total to the ranks of the leaf. */
__handler int switch_allreduce_down_payload(const ptl_payload_t p, void *state) {
    const struct switch_allreduce_down *s = state;
    return switch_allreduce_spread(p.base, p.length, s->child, s->children, SWITCH_ALLREDUCE_TOTAL + s->slot, s->place);
}

/* Header handler: tells the rank which inputs of the slot's current chunk have arrived. */
__handler int switch_allreduce_ask_header(const ptl_header_t h, void *state) {
    const struct switch_allreduce *s = state;
    if (PtlHandlerPutFromDevice(s->came, sizeof s->came, 0, PTL_NO_ACK_REQ, h.source_id, SWITCH_ALLREDUCE_ANSWER, 0,
                                NULL, 0))
        return FAIL;
    return DROP;
}

/* ---- Setup by hosts ---------------------------------------------------------------------------------------------- */

/* Tree of switches: each rank has a leaf, the switch beside it, and each leaf the root, unless there is only one leaf.
 * One rank computes it and sends `table` to the others. */
struct switch_allreduce_tree {
    int ranks, switches;
    int *table;    /* all numbers; the first is the root, a switch, or the leaf if there is only one */
    int *leaf;     /* switch of each rank */
    int *child_of; /* index of each rank among those of its leaf; of each switch among the leaves, or -1 */
};

/* Number of bytes of a tree's table. */
static inline size_t switch_allreduce_table(const struct switch_allreduce_tree *t) {
    return (size_t)(1 + 2 * t->ranks + t->switches) * sizeof(int);
}

/* Makes an empty tree of the job's processes. Returns false without memory for it; the caller frees `table`. */
static inline bool switch_allreduce_make(struct switch_allreduce_tree *t) {
    t->ranks = spin_size();
    t->switches = spin_switches();
    t->table = (int *)calloc(1, switch_allreduce_table(t));
    t->leaf = t->table + 1;
    t->child_of = t->leaf + t->ranks;
    return t->table != NULL;
}

/* Number of children of a switch: ranks of a leaf, leaves of the root. */
static inline int switch_allreduce_children(const struct switch_allreduce_tree *t, int which) {
    int children = 0;
    for (int rank = 0; rank < t->ranks; rank++)
        children += t->leaf[rank] == which;
    if (children == 0 && which == t->table[0])
        for (int other = 0; other < t->switches; other++)
            children += t->child_of[t->ranks + other] >= 0;
    return children;
}

/* Computes the tree: the leaf of a rank is the nearest switch with handlers, and the root the non-leaf switch nearest
 * to all leaves. Returns NULL, or a text naming the missing part of the network. */
static inline const char *switch_allreduce_find(struct switch_allreduce_tree *t) {
    int leaves = 0, root = -1, nearest = 0;
    if (t->switches == 0)
        return "no switch runs handlers (network.switch.handlers)";
    for (int which = 0; which < t->switches; which++)
        t->child_of[t->ranks + which] = -1;
    for (int rank = 0; rank < t->ranks; rank++) {
        int best = 0, links = 0;
        for (int which = 0; which < t->switches; which++) {
            int distance = spin_distance(rank, t->ranks + which);
            if (which == 0 || distance < links) {
                best = which;
                links = distance;
            }
        }
        t->leaf[rank] = best;
        t->child_of[rank] = 0;
        for (int other = 0; other < rank; other++)
            t->child_of[rank] += t->leaf[other] == best;
        if (t->child_of[rank] >= SWITCH_ALLREDUCE_CHILDREN)
            return "a switch has more than 64 ranks";
        if (t->child_of[rank] == 0)
            t->child_of[t->ranks + best] = leaves++;
    }
    if (leaves > SWITCH_ALLREDUCE_CHILDREN)
        return "there are more than 64 leaf switches";
    for (int which = 0; which < t->switches && leaves > 1; which++) {
        int sum = 0;
        if (t->child_of[t->ranks + which] >= 0)
            continue;
        for (int leaf = 0; leaf < t->switches; leaf++)
            if (t->child_of[t->ranks + leaf] >= 0)
                sum += spin_distance(t->ranks + leaf, t->ranks + which);
        if (root < 0 || sum < nearest) {
            root = which;
            nearest = sum;
        }
    }
    t->table[0] = leaves == 1 ? t->leaf[0] : root;
    return t->table[0] < 0 ? "there are several leaf switches, and no other switch with handlers to be the root" : NULL;
}

/* Attaches the handlers of `slots` slots to all switches of the tree. One rank calls it, before all others send.
 * Returns PTL_OK, or the error of spin_switch_alloc or spin_switch_attach: PTL_NO_SPACE if HPU memory is too small for
 * the slots. */
static inline int switch_allreduce_attach(const struct switch_allreduce_tree *t, ptl_handle_ni_t ni, ptl_pt_index_t pt,
                                          int slots) {
    for (int which = 0; which < t->switches; which++) {
        int children = switch_allreduce_children(t, which);
        bool is_leaf = t->child_of[t->ranks + which] >= 0, is_root = which == t->table[0];
        if (!is_leaf && !is_root)
            continue;
        for (int slot = 0; slot < slots; slot++) {
            struct switch_allreduce up = {.slot = (uint32_t)slot,
                                          .inputs = (uint32_t)children,
                                          .children = (uint32_t)children,
                                          .is_leaf = is_leaf,
                                          .parent = is_root ? 0 : (uint32_t)(t->ranks + t->table[0]),
                                          .number = is_leaf ? (uint32_t)t->child_of[t->ranks + which] : 0};
            for (int other = 0; other < (is_leaf ? t->ranks : t->switches); other++) {
                int number = t->child_of[is_leaf ? other : t->ranks + other];
                if (is_leaf ? t->leaf[other] == which : number >= 0)
                    up.child[number] = (uint16_t)(is_leaf ? other : t->ranks + other);
            }
            struct switch_allreduce_down down = {.slot = up.slot, .children = up.children};
            memcpy(down.child, up.child, sizeof down.child);
            ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                           .uid = PTL_UID_ANY,
                           .options = PTL_ME_OP_PUT,
                           .match_id.rank = PTL_RANK_ANY,
                           .match_bits = SWITCH_ALLREDUCE_UP + (ptl_match_bits_t)slot,
                           .header_handler = switch_allreduce_up_header,
                           .payload_handler = switch_allreduce_up_payload,
                           .hpu_initial_state = &up,
                           .hpu_initial_state_length = sizeof up};
            int rc = spin_switch_alloc(which, ni, SWITCH_ALLREDUCE_MEMORY, &me.hpu_memory);
            if (rc == PTL_OK)
                rc = spin_switch_attach(which, ni, pt, &me);
            me.match_bits = SWITCH_ALLREDUCE_ASK + (ptl_match_bits_t)slot;
            me.header_handler = switch_allreduce_ask_header;
            me.payload_handler = NULL;
            if (rc == PTL_OK)
                rc = spin_switch_attach(which, ni, pt, &me);
            if (rc == PTL_OK && !is_root) {
                me.match_bits = SWITCH_ALLREDUCE_DOWN + (ptl_match_bits_t)slot;
                me.header_handler = switch_allreduce_down_header;
                me.payload_handler = switch_allreduce_down_payload;
                me.hpu_initial_state = &down;
                me.hpu_initial_state_length = sizeof down;
                rc = spin_switch_alloc(which, ni, sizeof down, &me.hpu_memory);
                if (rc == PTL_OK)
                    rc = spin_switch_attach(which, ni, pt, &me);
            }
            if (rc != PTL_OK)
                return rc;
        }
    }
    return PTL_OK;
}

#endif
