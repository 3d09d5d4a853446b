/* SPDX-License-Identifier: Apache-2.0 */
/* RAID-5 storage whose cards keep the parity (sPIN §5.3, App. C.3.5).
 *
 *     client ── write ──▶ data node ── old ^ new ──▶ parity node
 *     client ◀── ack ──── data node ◀──── ack ─────── parity node
 *
 * A block has the same offset on its data node as its parity on the parity node. The header of every message suffices
 * for its handlers: the remote offset is the place, hdr_data the waiting client. So requests of any number of clients
 * may be in flight. Every difference is acknowledged. Setup: README.md. */
#ifndef HANDLERS_RAID5_H
#define HANDLERS_RAID5_H

#include <spin.h>

/* Match bits of the messages; all use one portal table entry. */
enum raid5_message {
    RAID5_WRITE = 10, /* client to data node: new data; remote offset: its place */
    RAID5_READ = 20,  /* client to data node: empty; remote offset: place of the data; hdr_data: raid5_wanted() */
    RAID5_ACK = 30,   /* parity node to data node; hdr_data: the client */
    RAID5_DONE = 31,  /* data node to client: a difference of its write is in the parity */
    RAID5_DATA = 32,  /* data node to client: the data of a READ */
    RAID5_DIFF = 53   /* data node to parity node: old ^ new; remote offset: place of the data; hdr_data: the client */
};

/* Maximum bytes of a packet; bytes of parity under one lock; number of locks; locks that a handler holds at once. */
enum { RAID5_PACKET = 4096, RAID5_PIECE = 1024, RAID5_LOCKS = 64, RAID5_AHEAD = 4 };

/* HPU memory of an entry for WRITE or DIFF. Each such entry accepts one message at a time, so this structure describes
 * that message: the header handler fills it. */
struct raid5 {
    ptl_process_t parity; /* parity node; set by the host of a data node */
    ptl_process_t source; /* sender of the message */
    ptl_hdr_data_t client;
    ptl_size_t offset;
    ptl_size_t bytes; /* size of the entry's memory; set by the host */
    uint32_t step;    /* bytes of a difference */
    uint32_t turn;    /* index of this data node: each starts with a different part of the parity */
};

/* Number of bytes of one DIFF, for a write of `length` bytes. Packets of long writes keep all HPUs busy and are
 * forwarded whole; a single packet is forwarded in pieces, so that the parity node's HPUs share it and start early. */
static inline uint32_t raid5_step(ptl_size_t length) { return length <= RAID5_PACKET ? RAID5_PIECE : RAID5_PACKET; }

/* Number of DONE messages caused by a write; max_payload is the interface's max_payload_size, at most RAID5_PACKET. */
static inline ptl_size_t raid5_dones(ptl_size_t length, ptl_size_t max_payload) {
    ptl_size_t step = raid5_step(length), packets = length / max_payload, rest = length % max_payload;
    return packets * ((max_payload + step - 1) / step) + (rest + step - 1) / step;
}

/* hdr_data of a READ: the number of bytes, and their place in the client's memory for DATA. */
static inline ptl_hdr_data_t raid5_wanted(uint32_t length, uint32_t reply_offset) {
    return (ptl_hdr_data_t)length << 32 | reply_offset;
}

/* onto[i] ^= by[i], for `bytes` bytes: first words, then the remaining bytes. Both are aligned to words on the card. */
static inline void raid5_xor(void *restrict onto, const void *restrict by, uint32_t bytes) {
    uint32_t *restrict words = onto;
    const uint32_t *restrict other = by;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < bytes / 4; i++)
        words[i] ^= other[i];
    for (uint32_t i = bytes & ~3u; i < bytes; i++)
        ((uint8_t *)onto)[i] ^= ((const uint8_t *)by)[i];
}

/* ---- Data node --------------------------------------------------------------------------------------------------- */

/* Header handler: stores the requester and the place of the data. Fails when it does not fit the entry's memory. */
__handler int raid5_write_header(const ptl_header_t h, void *state) {
    struct raid5 *r = state;
    r->source = h.source_id;
    r->offset = h.offset;
    r->step = raid5_step(h.length);
    r->turn = h.target_id.rank;
    return h.offset + h.length <= r->bytes ? PROCESS_DATA : FAIL;
}

/* Payload handler: replaces the old data by the packet and sends the difference to the parity node. */
__handler int raid5_write_payload(const ptl_payload_t p, void *state) {
    const struct raid5 *r = state;
    uint8_t old[RAID5_PACKET] __attribute__((aligned(8)));
    ptl_size_t at = r->offset + p.offset;
    ptl_dma_h written;
    if (p.length > sizeof old || PtlHandlerDMAFromHostB(at, old, p.length, PTL_ME_HOST_MEM) ||
        PtlHandlerDMAToHostNB(p.base, at, p.length, PTL_ME_HOST_MEM, &written))
        return FAIL;
    uint32_t length = p.length, steps = (length + r->step - 1) / r->step, number = r->turn % steps;
    for (uint32_t i = 0; i < steps; i++, number = number + 1 < steps ? number + 1 : 0) {
        uint32_t from = number * r->step, part = length - from < r->step ? length - from : r->step;
        raid5_xor(old + from, p.base + from, part);
        if (PtlHandlerPutFromDevice(old + from, part, 0, PTL_NO_ACK_REQ, r->parity, RAID5_DIFF, at + from, NULL,
                                    r->source.rank))
            return FAIL;
    }
    return PtlHandlerDMAWait(written) == 0 ? SUCCESS : FAIL;
}

/* Completion handler: frees the entry for the next message. Fails when a part of the write is lost: the client waits
 * for acknowledgements that will never be sent. */
__handler int raid5_write_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)state;
    return dropped_bytes > 0 || flow_control_triggered ? FAIL : SUCCESS_PENDING;
}

/* Header handler: answers from host memory. */
__handler int raid5_read_header(const ptl_header_t h, void *state) {
    (void)state;
    if (PtlHandlerPutFromHost(h.offset, h.hdr_data >> 32, 0, PTL_NO_ACK_REQ, h.source_id, RAID5_DATA,
                              (uint32_t)h.hdr_data, NULL, 0))
        return FAIL;
    return DROP;
}

/* Header handler: passes the parity node's acknowledgement to the client. */
__handler int raid5_ack_header(const ptl_header_t h, void *state) {
    const uint8_t reply = SUCCESS;
    (void)state;
    if (PtlHandlerPutFromDevice(&reply, sizeof reply, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (uint32_t)h.hdr_data},
                                RAID5_DONE, 0, NULL, 0))
        return FAIL;
    return DROP;
}

/* ---- Parity node ------------------------------------------------------------------------------------------------- */

/* Locks, shared by all entries of the card. Element n is 1 while a handler reads, changes and writes the parity of a
 * piece whose number modulo RAID5_LOCKS is n, since differences of several data nodes may change the same piece. */
static uint64_t raid5_locks[RAID5_LOCKS];

/* Locked piece of parity whose old contents are in flight to the card. */
struct raid5_piece {
    uint32_t number, length; /* a length of 0 means no piece */
    ptl_size_t at;           /* offset in host memory */
    ptl_dma_h fetched;
    int refused; /* result of starting the transfer */
};

static inline uint64_t *raid5_lock(uint32_t number) { return &raid5_locks[number % RAID5_LOCKS]; }

/* Locks one of the `pending` pieces (a bit each, from `first` on) of the bytes from `at` to `end`, and starts to fetch
 * it to its place in `parity`. Returns no piece if all are locked. Data nodes start with different pieces, so they
 * seldom wait. */
static inline struct raid5_piece raid5_fetch(uint32_t *pending, uint32_t pieces, uint32_t begin, ptl_size_t at,
                                             ptl_size_t end, uint8_t *parity) {
    struct raid5_piece piece = {.length = 0};
    uint32_t first = at / RAID5_PIECE;
    for (uint32_t i = 0, bit = begin; i < pieces && *pending != 0; i++, bit = bit + 1 < pieces ? bit + 1 : 0) {
        if ((*pending & 1u << bit) == 0 || !PtlHandlerCAS(raid5_lock(first + bit), 0, 1))
            continue;
        ptl_size_t from = (ptl_size_t)(first + bit) * RAID5_PIECE, to = from + RAID5_PIECE;
        *pending &= ~(1u << bit);
        piece.number = first + bit;
        piece.at = from < at ? at : from;
        piece.length = (to < end ? to : end) - piece.at;
        piece.refused =
            PtlHandlerDMAFromHostNB(piece.at, parity + (piece.at - at), piece.length, PTL_ME_HOST_MEM, &piece.fetched);
        break;
    }
    return piece;
}

/* Header handler: stores the requester and the place of the difference. Fails when it does not fit the entry's memory.
 * */
__handler int raid5_diff_header(const ptl_header_t h, void *state) {
    struct raid5 *r = state;
    r->source = h.source_id;
    r->client = h.hdr_data;
    r->offset = h.offset;
    return h.offset + h.length <= r->bytes ? PROCESS_DATA : FAIL;
}

/* Payload handler: adds the difference to the parity, piece by piece. Up to RAID5_AHEAD pieces are fetched before they
 * are needed, if they are not locked. Waits for a lock only while it holds none. Fails when host memory cannot be read.
 * */
__handler int raid5_diff_payload(const ptl_payload_t p, void *state) {
    const struct raid5 *r = state;
    uint8_t parity[RAID5_PACKET] __attribute__((aligned(8)));
    ptl_size_t at = r->offset + p.offset, end = at + p.length;
    uint32_t pieces = (uint32_t)((end - 1) / RAID5_PIECE) - (uint32_t)(at / RAID5_PIECE) + 1;
    uint32_t pending = (1u << pieces) - 1, begin = r->source.rank % pieces, held = 0;
    struct raid5_piece queue[RAID5_AHEAD];
    int failed = 0;
    if (p.length > sizeof parity)
        return FAIL;
    for (uint32_t turn = 0; pending != 0 || held != 0;) {
        while (held < RAID5_AHEAD) {
            struct raid5_piece piece = raid5_fetch(&pending, pieces, begin, at, end, parity);
            if (piece.length == 0)
                break;
            queue[(turn + held++) % RAID5_AHEAD] = piece;
        }
        if (held == 0) {
            PtlHandlerYield();
            continue;
        }
        struct raid5_piece *piece = &queue[turn];
        uint32_t place = piece->at - at;
        ptl_dma_h written;
        if (piece->refused == 0 && PtlHandlerDMAWait(piece->fetched) == 0) {
            raid5_xor(parity + place, p.base + place, piece->length);
            /* DMA is executed in order, so the next holder of the lock reads after this write. */
            failed |= PtlHandlerDMAToHostNB(parity + place, piece->at, piece->length, PTL_ME_HOST_MEM, &written);
        } else {
            failed = 1;
        }
        PtlHandlerCAS(raid5_lock(piece->number), 1, 0);
        turn = (turn + 1) % RAID5_AHEAD;
        held--;
    }
    return failed ? FAIL : SUCCESS;
}

/* Completion handler: sends an acknowledgement to the data node and frees the entry for the next message. */
__handler int raid5_diff_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    const struct raid5 *r = state;
    const uint8_t reply = SUCCESS;
    if (dropped_bytes > 0 || flow_control_triggered)
        return FAIL;
    if (PtlHandlerPutFromDevice(&reply, sizeof reply, 0, PTL_NO_ACK_REQ, r->source, RAID5_ACK, 0, NULL, r->client))
        return FAIL;
    return SUCCESS_PENDING;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Appends `count` entries for `message` over `memory`, with the handlers and the initial state of `me`. Each has
 * separate HPU memory and accepts one message at a time. Returns PTL_OK, or the error of PtlHPUAllocMem or
 * PtlMEAppend. */
static inline int raid5_append(ptl_handle_ni_t ni, ptl_pt_index_t pt, enum raid5_message message, void *memory,
                               ptl_size_t bytes, ptl_me_t me, int count) {
    me.start = memory;
    me.length = bytes;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = message;
    for (int i = 0; i < count; i++) {
        ptl_handle_me_t handle;
        int rc = PtlHPUAllocMem(me.hpu_initial_state_length, ni, &me.hpu_memory);
        if (rc == PTL_OK)
            rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
        if (rc != PTL_OK)
            return rc;
    }
    return PTL_OK;
}

/* Appends `count` entries for WRITE (a data node, whose parity node is `parity`) or DIFF (a parity node), over
 * `memory`. `count` is the maximum number of messages in flight; more are refused. At a parity node every packet is a
 * message. Returns PTL_OK, or the error of raid5_append. */
static inline int raid5_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, enum raid5_message message, void *memory,
                              ptl_size_t bytes, ptl_process_t parity, int count) {
    struct raid5 state = {.parity = parity, .bytes = bytes};
    ptl_me_t me = {.header_handler = message == RAID5_DIFF ? raid5_diff_header : raid5_write_header,
                   .payload_handler = message == RAID5_DIFF ? raid5_diff_payload : raid5_write_payload,
                   .completion_handler = message == RAID5_DIFF ? raid5_diff_completion : raid5_write_completion,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    return raid5_append(ni, pt, message, memory, bytes, me, count);
}

/* Appends the entries of a data node for READ and ACK. Returns PTL_OK, or the error of PtlMEAppend. */
static inline int raid5_serve_reads(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *memory, ptl_size_t bytes) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = RAID5_READ,
                   .header_handler = raid5_read_header,
                   .hpu_memory = PTL_INVALID_HANDLE};
    int rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    me.match_bits = RAID5_ACK;
    me.header_handler = raid5_ack_header;
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

#endif
