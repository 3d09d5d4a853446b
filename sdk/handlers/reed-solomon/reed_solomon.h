/* SPDX-License-Identifier: Apache-2.0 */
/* Reed-Solomon storage whose cards keep the parities: k data nodes and m parity nodes, any m of which may be lost.
 *
 *     client ── write ──▶ data node i ── 2^(i j) (old ^ new) ──▶ parity node j, for each j
 *     client ◀── ack ──── data node i ◀───────── ack ─────────── parity node j
 *
 * Parity j is the sum of 2^(i j) times the data of node i, over GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1.
 * So parity 0 is that of RAID-5, and parities 0 and 1 are those of RAID-6. A data node multiplies, and a parity node
 * only adds: it is one of handlers/raid5, and so are the messages. Setup: README.md. */
#ifndef HANDLERS_REED_SOLOMON_H
#define HANDLERS_REED_SOLOMON_H

#include <handlers/raid5/raid5.h>
#include <string.h>

/* Maximum numbers of data and parity nodes. The powers of 2 stay different up to 2^254. */
enum { REED_SOLOMON_DATA = 15, REED_SOLOMON_PARITIES = 4 };
enum { REED_SOLOMON_NODES = REED_SOLOMON_DATA + REED_SOLOMON_PARITIES };

/* Match bits, beside those of raid5_message. */
enum reed_solomon_message {
    REED_SOLOMON_BLOCK = 60, /* gets of a node's memory */
    REED_SOLOMON_REBUILD =
        61 /* to the replacement of a lost node; remote offset: place; hdr_data: bytes, at most a packet */
};

/* HPU memory of an entry for WRITE. */
struct reed_solomon {
    struct raid5 message; /* filled by its header handler */
    uint32_t node;        /* index of this data node */
    uint32_t parities;
    ptl_process_t parity[REED_SOLOMON_PARITIES];
};

/* HPU memory of an entry for REBUILD: the lost data is a sum of products of the survivors. */
struct reed_solomon_rebuild {
    ptl_size_t bytes; /* size of the entry's memory */
    uint32_t count;   /* number of survivors to read */
    ptl_process_t survivor[REED_SOLOMON_DATA];
    uint8_t product[REED_SOLOMON_DATA][256]; /* product of the survivor's factor and each byte */
};

/* ---- GF(256) ----------------------------------------------------------------------------------------------------- */

/* Multiplies each of four bytes by 2. */
static inline uint32_t reed_solomon_double(uint32_t bytes) {
    uint32_t high = bytes & 0x80808080u;
    return (bytes ^ high) << 1 ^ (high >> 7) * 0x1du;
}

/* Multiplies the bytes at `data` by 2^`times`: `bytes` of them, rounded up to a multiple of 16. */
static inline void reed_solomon_scale(void *data, uint32_t bytes, uint32_t times) {
    uint32_t *words = data;
    for (uint32_t *end = words + (bytes + 15) / 16 * 4; words < end; words += 4) {
        uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
        for (uint32_t left = times; left > 0; left--) {
            a = reed_solomon_double(a);
            b = reed_solomon_double(b);
            c = reed_solomon_double(c);
            d = reed_solomon_double(d);
        }
        words[0] = a;
        words[1] = b;
        words[2] = c;
        words[3] = d;
    }
}

static inline uint8_t reed_solomon_product(uint8_t one, uint8_t other) {
    uint32_t product = 0, power = one;
    for (; other != 0; other >>= 1, power = reed_solomon_double(power))
        product ^= other & 1 ? power : 0;
    return (uint8_t)product;
}

/* Returns the factor of data node `node` in parity `parity`. */
static inline uint8_t reed_solomon_factor(uint32_t node, uint32_t parity) {
    uint32_t factor = 1;
    for (uint32_t times = node * parity % 255; times > 0; times--)
        factor = reed_solomon_double(factor);
    return (uint8_t)factor;
}

/* ---- Data node --------------------------------------------------------------------------------------------------- */

/* Payload handler: replaces the old data by the packet and sends each parity node the difference times its factor. Packets of
 * RAID5_PACKET bytes at most. */
__handler int reed_solomon_write_payload(const ptl_payload_t p, void *state) {
    const struct reed_solomon *r = state;
    uint8_t diff[RAID5_PACKET] __attribute__((aligned(8)));
    ptl_size_t at = r->message.offset + p.offset;
    uint32_t length = p.length, step = r->message.step;
    ptl_dma_h written;
    if (length > sizeof diff || PtlHandlerDMAFromHostB(at, diff, length, PTL_ME_HOST_MEM) ||
        PtlHandlerDMAToHostNB(p.base, at, length, PTL_ME_HOST_MEM, &written))
        return FAIL;
    raid5_xor(diff, p.base, length);
    for (uint32_t parity = 0; parity < r->parities; parity++) {
        if (parity > 0)
            reed_solomon_scale(diff, length, r->node);
        for (uint32_t from = 0; from < length; from += step) {
            uint32_t part = length - from < step ? length - from : step;
            if (PtlHandlerPutFromDevice(diff + from, part, 0, PTL_NO_ACK_REQ, r->parity[parity], RAID5_DIFF, at + from,
                                        NULL, r->message.source.rank))
                return FAIL;
        }
    }
    return PtlHandlerDMAWait(written) == 0 ? SUCCESS : FAIL;
}

/* ---- Replacement of a lost node ---------------------------------------------------------------------------------- */

/* Header handler: gets the same place of the survivors, adds up their products, writes the sum to host memory. Fails when a
 * survivor does not answer. */
__handler int reed_solomon_rebuild_header(const ptl_header_t h, void *state) {
    const struct reed_solomon_rebuild *r = state;
    uint8_t sum[RAID5_PACKET / 2] __attribute__((aligned(8))), data[RAID5_PACKET / 2] __attribute__((aligned(8)));
    uint32_t length = (uint32_t)h.hdr_data;
    if (length > sizeof sum || h.offset + length > r->bytes)
        return FAIL;
    memset(sum, 0, sizeof sum);
    for (uint32_t i = 0; i < r->count; i++) {
        const uint8_t *product = r->product[i];
        if (PtlHandlerGetToDevice(data, length, 0, r->survivor[i], REED_SOLOMON_BLOCK, h.offset, NULL))
            return FAIL;
        for (uint32_t j = 0; j < length; j++)
            sum[j] ^= product[data[j]];
    }
    return PtlHandlerDMAToHostB(sum, h.offset, length, PTL_ME_HOST_MEM) == 0 ? PROCEED : FAIL;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Appends `count` entries for WRITE over `memory` of data node `node`, whose parity nodes are `parity[0]` to `parity[parities - 1]`;
 * `count` is the maximum number of messages in flight. Returns PTL_OK, PTL_ARG_INVALID when there are too many nodes, or the error of
 * raid5_append. A parity node calls raid5_serve with RAID5_DIFF. */
static inline int reed_solomon_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *memory, ptl_size_t bytes,
                                     uint32_t node, const ptl_process_t *parity, uint32_t parities, int count) {
    struct reed_solomon state = {.message.bytes = bytes, .node = node, .parities = parities};
    ptl_me_t me = {.header_handler = raid5_write_header,
                   .payload_handler = reed_solomon_write_payload,
                   .completion_handler = raid5_write_completion,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    if (node >= REED_SOLOMON_DATA || parities > REED_SOLOMON_PARITIES)
        return PTL_ARG_INVALID;
    memcpy(state.parity, parity, parities * sizeof *parity);
    return raid5_append(ni, pt, RAID5_WRITE, memory, bytes, me, count);
}

/* Appends the entry of a node for gets of its memory during a rebuild, and for puts of repaired parities. Returns
 * PTL_OK, or the error of PtlMEAppend. */
static inline int reed_solomon_serve_blocks(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *memory, ptl_size_t bytes) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = REED_SOLOMON_BLOCK,
                   .hpu_memory = PTL_INVALID_HANDLE};
    return PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

/* Computes the rebuild of `lost` from surviving nodes: nodes 0 to k - 1 have data, the others parities; bit i of `dead`
 * marks node i as lost. Writes k survivors, and the factor of each. Returns false when fewer than k nodes survive. */
static inline bool reed_solomon_solve(uint32_t k, uint32_t m, uint32_t dead, uint32_t lost, uint32_t *survivors,
                                      uint8_t *factors) {
    uint8_t rows[REED_SOLOMON_DATA][2 * REED_SOLOMON_DATA] = {{0}}, wanted[REED_SOLOMON_DATA];
    uint32_t count = 0;
    for (uint32_t node = 0; node < k + m && count < k; node++)
        if ((dead >> node & 1) == 0)
            survivors[count++] = node;
    if (count < k)
        return false;
    for (uint32_t i = 0; i < k; i++) { /* coefficients of each data node in each survivor, and the unit matrix */
        for (uint32_t j = 0; j < k; j++)
            rows[i][j] = survivors[i] < k ? survivors[i] == j : reed_solomon_factor(j, survivors[i] - k);
        rows[i][k + i] = 1;
    }
    for (uint32_t column = 0; column < k; column++) { /* Gauss-Jordan elimination */
        uint32_t pivot = column;
        while (pivot < k && rows[pivot][column] == 0)
            pivot++;
        if (pivot == k)
            return false;
        uint8_t inverse = 1;
        while (reed_solomon_product(inverse, rows[pivot][column]) != 1)
            inverse++;
        for (uint32_t j = 0; j < 2 * k; j++) {
            uint8_t other = rows[column][j];
            rows[column][j] = reed_solomon_product(inverse, rows[pivot][j]);
            if (pivot != column)
                rows[pivot][j] = other;
        }
        for (uint32_t i = 0; i < k; i++) {
            uint8_t factor = rows[i][column];
            for (uint32_t j = 0; j < 2 * k && i != column; j++)
                rows[i][j] ^= reed_solomon_product(factor, rows[column][j]);
        }
    }
    for (uint32_t j = 0; j < k; j++)
        wanted[j] = lost < k ? lost == j : reed_solomon_factor(j, lost - k);
    for (uint32_t i = 0; i < k; i++) {
        factors[i] = 0;
        for (uint32_t j = 0; j < k; j++)
            factors[i] ^= reed_solomon_product(wanted[j], rows[j][k + i]);
    }
    return true;
}

/* Appends an entry over `memory` that rebuilds `lost` from survivors when it gets a message REBUILD. `first` is the rank of node 0, `counter`
 * counts rebuilt pieces. Writes the handles for PtlMEUnlink and PtlHPUFreeMem. Returns PTL_OK, PTL_FAIL when fewer than k nodes survive, or
 * the error of PtlHPUAllocMem or PtlMEAppend. */
static inline int reed_solomon_replace(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *memory, ptl_size_t bytes,
                                       uint32_t k, uint32_t m, uint32_t dead, uint32_t lost, ptl_rank_t first,
                                       ptl_handle_ct_t counter, ptl_handle_me_t *entry, ptl_hpu_md_h *hpu_memory) {
    struct reed_solomon_rebuild state = {.bytes = bytes, .count = k};
    uint32_t survivors[REED_SOLOMON_DATA];
    uint8_t factors[REED_SOLOMON_DATA];
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = counter,
                   .uid = PTL_UID_ANY,
                   .options =
                       PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = REED_SOLOMON_REBUILD,
                   .header_handler = reed_solomon_rebuild_header,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    if (!reed_solomon_solve(k, m, dead, lost, survivors, factors))
        return PTL_FAIL;
    for (uint32_t i = 0; i < k; i++) {
        state.survivor[i].rank = first + survivors[i];
        for (uint32_t byte = 0; byte < 256; byte++)
            state.product[i][byte] = reed_solomon_product(factors[i], (uint8_t)byte);
    }
    int rc = PtlHPUAllocMem(sizeof state, ni, hpu_memory);
    me.hpu_memory = *hpu_memory;
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, entry);
}

#endif
