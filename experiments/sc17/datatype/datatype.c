/* SPDX-License-Identifier: Apache-2.0 */
/* Strided datatype (sPIN §5.2, App. C.3.4): rank 0 sends data, rank 1 unpacks it into blocks at a fixed distance.
 *
 *   --mode cpu        the card stores the message in a temporary buffer, rank 1's CPU unpacks
 *   --mode iovec      rank 1's card unpacks by a list of all blocks (PTL_IOVEC)
 *   --mode handler    payload handlers on rank 1's card unpack: those of the library
 *   --mode blocking   payload handlers unpack with blocking DMA, as in the paper's listing
 *   --send whole      rank 0 has the data in one piece (if the option is missing, too)
 *   --send cpu        rank 0 has it in the same blocks: its CPU packs them into a buffer first
 *   --send iovec      the same, but its card reads them by a list
 *   --send handler    the same, but handlers on its card pack them; for --mode handler
 *   --piece BYTES     sends messages of that size (at least a block), of which the CPU unpacks one while the next
 *                     travels; without it data is only split where a list would have more blocks than the card accepts
 *   --total BYTES     of data, 4 MiB if the option is missing
 *   --blocks N,N,…    block sizes in bytes; the blocks start at a distance of twice their size
 *   --vector BLOCK,STRIDE,COUNT   one layout, instead of --blocks and --total
 *
 * Prints one JSON object a line for each layout: {"mode", "send", "block", "stride", "count", "description_bytes",
 * "time_ps", "data_ok"}; the time is from rank 0's start (packing, PtlPut) to rank 1's program seeing the unpacked data
 * in its memory. "description_bytes" is the size of the descriptions of blocks on both cards. */
#include "../../common/blocks.h"
#include <handlers/datatype/datatype.h>

enum { PT = 3, BITS = 20, PACK = 10 }; /* portal table index, match bits of the first piece and of the packing entry */
enum { TOTAL = 4 << 20 };              /* bytes of data, unless given */
enum { UNTOUCHED = 0xA5 };             /* a byte that no message has written */
enum { MAX_PIECES = 4096 };

static const char usage[] =
    "datatype --mode cpu|iovec|handler|blocking [--send whole|cpu|iovec|handler] [--piece BYTES] "
    "[--total BYTES] --blocks BYTES[,BYTES...]|--vector BLOCK,STRIDE,COUNT";
enum mode { CPU, IOVEC, HANDLER, BLOCKING, MODES };
enum send { WHOLE, SEND_CPU, SEND_IOVEC, SEND_HANDLER, SENDS };
static const char *const modes[MODES] = {"cpu", "iovec", "handler", "blocking"};
static const char *const sends[SENDS] = {"whole", "cpu", "iovec", "handler"};

static enum mode mode;
static enum send sending;
static size_t piece_bytes;  /* value of --piece; 0: none */
static unsigned char *data; /* the data in one piece: rank 0's message, rank 1's temporary buffer */
static unsigned char *blocks;
static ptl_iovec_t *list;

static size_t bytes_of(struct layout l) { return l.block * l.count; }
static size_t span_of(struct layout l) { return l.stride * l.count; }

/* Blocks of each message but the last one. */
static size_t blocks_of_piece(struct layout l) {
    size_t most = mode == IOVEC || sending == SEND_IOVEC ? (size_t)limits.max_iovecs : l.count;
    if (piece_bytes != 0)
        most = piece_bytes / l.block < most ? piece_bytes / l.block : most;
    most = most > 0 ? most : 1;
    return most < l.count ? most : l.count;
}

/* The handler of App. C.3.4: each DMA blocks until its data has left the card. */
__handler int unpack_blocking(const ptl_payload_t p, void *state) {
    const struct datatype_vector *v = state;
    uint32_t done = 0, length = p.length;
    for (uint32_t number = (uint32_t)p.offset / v->block; done < length; number++) {
        uint32_t within = ((uint32_t)p.offset + done) % v->block, rest = v->block - within;
        uint32_t piece = rest < length - done ? rest : length - done;
        ptl_size_t at = v->offset + (ptl_size_t)number * v->stride + within;
        if (PtlHandlerDMAToHostB(p.base + done, at, piece, PTL_ME_HOST_MEM))
            return FAIL;
        done += piece;
    }
    return SUCCESS;
}

/* The list of `count` blocks in `blocks`, from number `first` on. */
static ptl_iovec_t *list_of(struct layout l, size_t first, size_t count) {
    list_blocks(list + first, blocks + first * l.stride, (struct layout){l.block, l.stride, count});
    return list + first;
}

/* Rank 0's card packs: an empty put to its own entry starts the handlers. Each of their packets is a message. */
static void send_by_handlers(struct layout l) {
    const ptl_process_t self = {.rank = 0};
    struct datatype_sender state = {.vector = {.block = (uint32_t)l.block, .stride = (uint32_t)l.stride},
                                    .bits = BITS,
                                    .target = 1,
                                    .length = (uint32_t)bytes_of(l),
                                    .packet = (uint32_t)limits.max_payload_size};
    ptl_me_t me = {.start = blocks,
                   .length = span_of(l),
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = PACK,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .header_handler = datatype_send,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    ptl_handle_md_t md = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    ptl_handle_me_t entry;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    CHECK(PtlHPUAllocMem(DATATYPE_SENDER_BYTES, ni, &me.hpu_memory));
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(spin_barrier());
    CHECK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, self, PT, PACK, 0, NULL, 0));
    await_count(me.ct_handle, datatype_runs(state.length, state.packet));
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlHPUFreeMem(&me.hpu_memory));
    CHECK(PtlCTFree(me.ct_handle));
    CHECK(PtlMDRelease(md));
}

static void origin(struct layout l) {
    const ptl_process_t peer = {.rank = 1};
    size_t step = blocks_of_piece(l);
    for (size_t i = 0; i < bytes_of(l); i++)
        *(sending == WHOLE ? &data[i] : &blocks[i / l.block * l.stride + i % l.block]) = pattern(i, 0);
    if (sending == SEND_HANDLER) {
        send_by_handlers(l);
        return;
    }
    ptl_handle_md_t md[MAX_PIECES];
    size_t pieces = 0;
    for (size_t first = 0; first < l.count; first += step, pieces++) {
        size_t count = l.count - first < step ? l.count - first : step;
        ptl_md_t piece = {.start = data + first * l.block,
                          .length = count * l.block,
                          .eq_handle = PTL_EQ_NONE,
                          .ct_handle = PTL_CT_NONE};
        if (sending == SEND_IOVEC)
            piece.start = list_of(l, first, count), piece.length = count, piece.options = PTL_IOVEC;
        CHECK(PtlMDBind(ni, &piece, &md[pieces]));
    }
    CHECK(spin_barrier());
    for (size_t first = 0, i = 0; first < l.count; first += step, i++) {
        size_t count = l.count - first < step ? l.count - first : step;
        if (sending == SEND_CPU)
            pack_on_cpu(data + first * l.block, blocks + first * l.stride, (struct layout){l.block, l.stride, count});
        CHECK(PtlPut(md[i], 0, count * l.block, PTL_NO_ACK_REQ, peer, PT, BITS + i, 0, NULL, 0));
    }
    CHECK(spin_barrier()); /* the data has been read and used */
    for (size_t i = 0; i < pieces; i++)
        CHECK(PtlMDRelease(md[i]));
}

/* An entry for one piece. */
static ptl_handle_me_t append(struct layout l, size_t number, size_t first, size_t count, ptl_me_t *me) {
    struct datatype_vector state = {
        .offset = first * l.stride, .block = (uint32_t)l.block, .stride = (uint32_t)l.stride};
    ptl_handle_me_t handle;
    me->match_bits = BITS + number;
    me->hpu_memory = PTL_INVALID_HANDLE;
    if (mode == CPU)
        me->start = data + first * l.block, me->length = count * l.block;
    if (mode == IOVEC)
        me->start = list_of(l, first, count), me->length = count, me->options |= PTL_IOVEC;
    if (mode == HANDLER || mode == BLOCKING) {
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me->hpu_memory));
        me->payload_handler = sending == SEND_HANDLER ? datatype_unpack_packet
                              : mode == HANDLER       ? datatype_unpack
                                                      : unpack_blocking;
        me->hpu_initial_state = &state;
        me->hpu_initial_state_length = sizeof state;
        me->start = blocks, me->length = span_of(l);
    }
    CHECK(PtlMEAppend(ni, PT, me, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

static bool unpacked(struct layout l) {
    for (size_t i = 0; i < span_of(l); i++) {
        size_t number = i / l.stride, within = i % l.stride;
        unsigned char expected = within < l.block ? pattern(number * l.block + within, 0) : UNTOUCHED;
        if (blocks[i] != expected)
            return false;
    }
    return true;
}

static void destination(struct layout l) {
    ptl_handle_me_t entries[MAX_PIECES];
    ptl_hpu_md_h memory[MAX_PIECES];
    size_t step = blocks_of_piece(l), pieces = 0, described = 0;
    ptl_ct_event_t counted;
    ptl_me_t me = {.uid = PTL_UID_ANY, .match_id.rank = PTL_RANK_ANY, .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    memset(blocks, UNTOUCHED, span_of(l));
    for (size_t first = 0; first < l.count; first += step, pieces++) {
        entries[pieces] = append(l, pieces, first, l.count - first < step ? l.count - first : step, &me);
        memory[pieces] = me.hpu_memory;
    }
    described += mode == IOVEC ? l.count * sizeof(ptl_iovec_t) : 0;
    described += mode == HANDLER || mode == BLOCKING ? pieces * sizeof(struct datatype_vector) : 0;
    described += sending == SEND_IOVEC ? l.count * sizeof(ptl_iovec_t) : 0;
    described += sending == SEND_HANDLER ? sizeof(struct datatype_sender) : 0;
    size_t messages = sending == SEND_HANDLER ? datatype_messages(bytes_of(l), limits.max_payload_size) : pieces;
    CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 starts */
    uint64_t start_ps = spin_time_ps();
    if (mode == CPU)
        for (size_t first = 0, i = 1; first < l.count; first += step, i++) {
            CHECK(PtlCTWait(me.ct_handle, i, &counted));
            size_t count = l.count - first < step ? l.count - first : step;
            unpack_on_cpu(blocks + first * l.stride, data + first * l.block, (struct layout){l.block, l.stride, count});
        }
    else
        CHECK(PtlCTWait(me.ct_handle, messages, &counted));
    uint64_t time_ps = spin_time_ps() - start_ps;
    bool ok = counted.failure == 0 && unpacked(l);
    CHECK(spin_barrier());
    printf("{\"mode\":\"%s\",\"send\":\"%s\",\"block\":%zu,\"stride\":%zu,\"count\":%zu,\"description_bytes\":%zu,"
           "\"time_ps\":%llu,\"data_ok\":%s}\n",
           modes[mode], sends[sending], l.block, l.stride, l.count, described, (unsigned long long)time_ps,
           verdict(ok));
    fflush(stdout);
    for (size_t i = 0; i < pieces; i++) {
        CHECK(PtlMEUnlink(entries[i]));
        if (memory[i] != PTL_INVALID_HANDLE)
            CHECK(PtlHPUFreeMem(&memory[i]));
    }
    CHECK(PtlCTFree(me.ct_handle));
}

static void measure(struct layout l) {
    if (l.block == 0 || l.stride < l.block || l.count == 0 || bytes_of(l) > UINT32_MAX || l.stride > UINT32_MAX)
        fail("%zu blocks of %zu B, %zu B apart: %s", l.count, l.block, l.stride, usage);
    size_t step = blocks_of_piece(l);
    if ((l.count + step - 1) / step > MAX_PIECES)
        fail("%zu blocks in messages of %zu: %s", l.count, step, usage);
    data = allocate(bytes_of(l));
    blocks = allocate(span_of(l));
    list = allocate(l.count * sizeof *list);
    if (spin_rank() == 0)
        origin(l);
    else
        destination(l);
    free(list);
    free(blocks);
    free(data);
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    sending = (enum send)choice(option_or(argc, argv, "--send", "whole"), sends, SENDS, usage);
    piece_bytes = strtoull(option_or(argc, argv, "--piece", "0"), NULL, 10);
    size_t total = strtoull(option_or(argc, argv, "--total", "0"), NULL, 10), block;
    if (sending == SEND_HANDLER && (mode != HANDLER || piece_bytes != 0))
        fail("--send handler is for --mode handler, without --piece; usage: %s", usage);
    const char *vector = option_or(argc, argv, "--vector", "");
    const char *sizes = *vector == '\0' ? option(argc, argv, "--blocks", usage) : "";
    struct layout l;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    total = total == 0 ? TOTAL : total;
    start(PT, NULL);
    if (next_number(&vector, &l.block)) {
        if (!next_number(&vector, &l.stride) || !next_number(&vector, &l.count) || *vector != '\0')
            fail("--vector: %s", usage);
        measure(l);
    }
    while (next_number(&sizes, &block)) {
        if (block == 0 || total % block != 0)
            fail("%zu bytes do not divide %zu: %s", block, total, usage);
        measure((struct layout){.block = block, .stride = 2 * block, .count = total / block});
    }
    finish();
    return exit_status;
}
