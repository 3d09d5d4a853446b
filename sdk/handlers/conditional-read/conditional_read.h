/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional reads (sPIN §5.4): a request has a filter and a range of a table, and the reply has only the rows that
 * match.
 *
 *     client ── request: range, filter ──▶ server's card ── DMA reads of the range
 *     client ◀── packets of rows, then an answer with their number ──┘
 *
 * One handler serves a request: it fetches the range block by block, several blocks ahead, filters each block and sends
 * the remaining rows as one packet. A client that splits a long range into several requests keeps all HPUs busy. Rows
 * arrive in the client's memory in order, from the offset given in the request. The CPU of the server is idle. */
#ifndef HANDLERS_CONDITIONAL_READ_H
#define HANDLERS_CONDITIONAL_READ_H

#include <handlers/common/reply.h>
#include <handlers/common/slots.h>
#include <handlers/conditional-read/filter.h>
#include <spin.h>

/* Match bits of the messages; all use one portal table entry. Requests are divided among the server's lanes, whose number is added to
 * CONDITIONAL_READ. */
enum conditional_read_message {
    CONDITIONAL_READ_ROWS = 10,   /* server to client: rows */
    CONDITIONAL_READ_ANSWER = 11, /* server to client: struct reply; value: the number of rows that match */
    CONDITIONAL_READ = 16         /* client to server */
};

/* Status of an answer. */
enum conditional_read_status {
    CONDITIONAL_READ_OK = 1,
    CONDITIONAL_READ_REFUSED, /* the range is outside the table, or the filter is invalid */
    CONDITIONAL_READ_NO_ROOM, /* more rows match than fit into the client's memory; those that fit were sent */
    CONDITIONAL_READ_FAILED   /* the table could not be read */
};

/* Limits: bytes of a block, which is sent as one packet; blocks of a handler on the card at once; concurrent requests
 * of a lane, a power of two (others wait); lanes. */
enum {
    CONDITIONAL_READ_BLOCK = 4096,
    CONDITIONAL_READ_AHEAD = 4,
    CONDITIONAL_READ_AT_ONCE = 8,
    CONDITIONAL_READ_LANES = 4
};

/* Request: one packet, with the filter after this structure. */
struct conditional_read {
    uint32_t number;       /* index of the answer in the client's entry for answers */
    ptl_process_t client;  /* destination of rows and answer */
    uint32_t row_bytes;    /* a multiple of 4 */
    uint64_t offset;       /* offset of the range in the table, bytes */
    uint64_t reply_offset; /* destination of rows, in the client's entry for rows */
    uint32_t rows;         /* rows of the range */
    uint32_t room;         /* rows for which the client has memory */
    uint32_t filter_bytes;
    uint32_t unused;
};

/* Memory of a handler serving a request. */
struct conditional_read_work {
    struct filter_mask masks[FILTER_DEPTH];
    uint8_t blocks[CONDITIONAL_READ_AHEAD][CONDITIONAL_READ_BLOCK] __attribute__((aligned(8)));
};

/* HPU memory of a lane. */
struct conditional_read_lane {
    uint64_t table_bytes;
    uint32_t block_bytes; /* limit of the block size */
    uint8_t free[sizeof(struct slots) + CONDITIONAL_READ_AT_ONCE * sizeof(uint32_t)] __attribute__((aligned(4)));
    struct conditional_read_work work[] __attribute__((aligned(8)));
};

/* Reads, filters and sends a valid range. Returns the answer's status, and its number of rows in `*matched`. */
static inline enum conditional_read_status conditional_read_range(const struct conditional_read *r, uint32_t block_rows,
                                                                  struct conditional_read_work *work,
                                                                  uint64_t *matched) {
    const uint32_t blocks = (r->rows + block_rows - 1) / block_rows, ahead = CONDITIONAL_READ_AHEAD;
    enum conditional_read_status status = CONDITIONAL_READ_OK;
    uint32_t sent = 0, fetched = 0;
    ptl_dma_h reads[CONDITIONAL_READ_AHEAD];
    for (uint32_t done = 0; done < (status == CONDITIONAL_READ_FAILED ? fetched : blocks); done++) {
        for (; fetched < blocks && fetched - done < ahead && status != CONDITIONAL_READ_FAILED; fetched++) {
            uint32_t first = fetched * block_rows, rows = r->rows - first < block_rows ? r->rows - first : block_rows;
            if (PtlHandlerDMAFromHostNB(r->offset + (uint64_t)first * r->row_bytes, work->blocks[fetched % ahead],
                                        rows * r->row_bytes, PTL_ME_HOST_MEM, &reads[fetched % ahead])) {
                status = CONDITIONAL_READ_FAILED;
                break;
            }
        }
        if (done == fetched)
            break;
        uint8_t *block = work->blocks[done % ahead];
        uint32_t left = r->rows - done * block_rows, rows = left < block_rows ? left : block_rows;
        if (PtlHandlerDMAWait(reads[done % ahead]))
            status = CONDITIONAL_READ_FAILED;
        if (status == CONDITIONAL_READ_FAILED)
            continue; /* waits for DMAs in flight to the blocks */
        filter_rows((const uint8_t *)(r + 1), r->filter_bytes, block, rows, r->row_bytes, work->masks);
        rows = filter_pack(block, rows, r->row_bytes, &work->masks[0]);
        *matched += rows;
        if (rows > r->room - sent) {
            rows = r->room - sent;
            status = CONDITIONAL_READ_NO_ROOM;
        }
        if (rows > 0 &&
            PtlHandlerPutFromDevice(block, rows * r->row_bytes, 0, PTL_NO_ACK_REQ, r->client, CONDITIONAL_READ_ROWS,
                                    r->reply_offset + (uint64_t)sent * r->row_bytes, NULL, 0))
            status = CONDITIONAL_READ_FAILED;
        sent += rows;
    }
    return status;
}

/* Returns true if a request of `bytes` bytes is valid. */
static inline bool conditional_read_is_valid(const struct conditional_read *r, ptl_size_t bytes,
                                             const struct conditional_read_lane *lane) {
    if (r->row_bytes == 0 || r->row_bytes % 4 != 0 || r->row_bytes > lane->block_bytes || r->offset % 4 != 0)
        return false;
    return r->offset <= lane->table_bytes && r->rows <= (lane->table_bytes - r->offset) / r->row_bytes &&
           r->filter_bytes <= bytes - sizeof *r &&
           filter_is_valid((const uint8_t *)(r + 1), r->filter_bytes, r->row_bytes);
}

/* Payload handler: filters the range of a request and sends the matching rows, then the answer. */
__handler int conditional_read_payload(const ptl_payload_t p, void *state) {
    struct conditional_read_lane *lane = state;
    const struct conditional_read *r = (const void *)p.base;
    struct slots *free = (struct slots *)lane->free;
    if (p.offset != 0 || p.length < sizeof *r)
        return FAIL;
    struct reply answer = {.request = r->number, .status = CONDITIONAL_READ_REFUSED};
    if (conditional_read_is_valid(r, p.length, lane)) {
        uint32_t rows = lane->block_bytes / r->row_bytes;
        int32_t mine;
        while ((mine = slots_take(free)) == SLOTS_NONE)
            PtlHandlerYield();
        answer.status =
            conditional_read_range(r, rows < FILTER_ROWS ? rows : FILTER_ROWS, &lane->work[mine], &answer.value);
        slots_give(free, (uint32_t)mine);
    }
    return reply_send(r->client, CONDITIONAL_READ_ANSWER, answer) ? FAIL : SUCCESS;
}

/* Completion handler: hides the request from the CPU's counter and event queue. Fails when a part of it is lost. */
__handler int conditional_read_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)state;
    return dropped_bytes > 0 || flow_control_triggered ? FAIL : SUCCESS_PENDING;
}

/* Appends the entries of a server for a table, `lanes` of them (1 to CONDITIONAL_READ_LANES). Each lane has separate
 * HPU memory, on PsPIN cards in a separate cluster. `packet` is the interface's max_payload_size. Returns PTL_OK, or
 * the error of PtlHPUAllocMem or PtlMEAppend. */
static inline int conditional_read_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *table, ptl_size_t bytes,
                                         ptl_size_t packet, uint32_t lanes) {
    struct conditional_read_lane lane = {.table_bytes = bytes};
    lane.block_bytes = packet < CONDITIONAL_READ_BLOCK ? (uint32_t)packet : CONDITIONAL_READ_BLOCK;
    slots_init((struct slots *)lane.free, CONDITIONAL_READ_AT_ONCE, CONDITIONAL_READ_AT_ONCE);
    ptl_me_t me = {.start = table,
                   .length = bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT,
                   .match_id.rank = PTL_RANK_ANY,
                   .payload_handler = conditional_read_payload,
                   .completion_handler = conditional_read_completion,
                   .hpu_initial_state = &lane,
                   .hpu_initial_state_length = sizeof lane};
    for (uint32_t i = 0; i < lanes; i++) {
        ptl_handle_me_t handle;
        int rc = PtlHPUAllocMem(sizeof lane + CONDITIONAL_READ_AT_ONCE * sizeof(struct conditional_read_work), ni,
                                &me.hpu_memory);
        me.match_bits = CONDITIONAL_READ + i;
        if (rc == PTL_OK)
            rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
        if (rc != PTL_OK)
            return rc;
    }
    return PTL_OK;
}

#endif
