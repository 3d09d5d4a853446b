/* SPDX-License-Identifier: Apache-2.0 */
/* Halo exchange of a stencil code (sPIN §5.2): P³ ranks on a torus, each with N³ doubles and one layer of ghost cells
 * around them, send the six faces of these cells to their neighbours.
 *
 *   --send cpu          a CPU packs each face that is not contiguous, then puts it
 *   --send iovec        the card reads the face by a list of its blocks
 *   --send handler      handlers on the card pack the face; needs --receive handler
 *   --receive cpu       the card stores the message in a buffer, a CPU unpacks it
 *   --receive iovec     the card unpacks by a list of the blocks
 *   --receive handler   handlers on the card unpack
 *   --edges N,N,…       cells along an edge
 *
 * Prints one JSON object a line for each edge: {"send", "receive", "edge", "time_ps", "marshal_ps", "cpu_ps",
 * "description_bytes", "data_ok"}; the time is from all ranks' start until each has all its ghost cells. "marshal_ps" is
 * the time in which rank 0's CPU packs and unpacks, "cpu_ps" that and the time in which it posts messages.
 * "description_bytes" is the size of the description of blocks on rank 0's card. A rank that finds wrong data ends
 * the run. */
#include "../../common/blocks.h"
#include <handlers/datatype/datatype.h>

enum { PT = 3, DATA = 20, PACK = 40 }; /* portal table index; match bits of the first face, and of its packing entry */
enum { AXES = 3, FACES = 2 * AXES };   /* face 2 a is at the lower end of axis a, face 2 a + 1 at the upper end */
enum { CELL = sizeof(double) };

static const int order[FACES] = {4, 5, 2, 3, 0, 1}; /* order of faces on a CPU: contiguous ones first */
static const double untouched = -1;                 /* a ghost cell that no message has written */

static const char usage[] = "halo --send cpu|iovec|handler --receive cpu|iovec|handler --edges N[,N...]";
enum way { CPU, IOVEC, HANDLER, WAYS };
static const char *const ways[WAYS] = {"cpu", "iovec", "handler"};

/* A face that is sent, and the neighbour's face of the same number, which is received. */
struct face {
    struct layout layout;
    ptl_process_t target;        /* receiver of the own face */
    unsigned char *own, *ghost;  /* where the blocks begin */
    unsigned char *sent, *taken; /* buffers of the CPU */
    ptl_handle_md_t md;
    ptl_handle_me_t entry, packing; /* entry for the face; entry whose handlers pack */
    ptl_hpu_md_h memory, packing_memory;
    ptl_handle_ct_t arrived, packed;
};

static enum way sending, receiving;
static size_t side, edge, width; /* P, N, and N + 2 */
static double *cells;
static struct face faces[FACES];
static ptl_handle_ct_t deposited; /* counts the faces that the CPU does not unpack */
static ptl_size_t deposits;       /* number of their messages */
static size_t description_bytes;

static size_t cell(size_t x, size_t y, size_t z) { return x + (y + z * width) * width; }
static size_t bytes_of(struct layout l) { return l.block * l.count; }
static size_t rank_at(size_t x, size_t y, size_t z) { return x + (y + z * side) * side; }
static double value(size_t rank, size_t number) { return (double)(rank << 32 | number); }
static enum way way_of(enum way way, struct layout l) { return l.count == 1 ? WAYS : way; } /* WAYS: nothing to do */

/* The rank that is one step up or down an axis. */
static size_t neighbour(size_t rank, int axis, bool up) {
    size_t at[AXES] = {rank % side, rank / side % side, rank / side / side};
    at[axis] = (at[axis] + (up ? 1 : side - 1)) % side;
    return rank_at(at[0], at[1], at[2]);
}

/* The blocks of a face: always one vector of MPI. To this end the faces across the first and last axis contain the ghost
 * cells between their rows, which the stencil does not use. */
static struct layout across(int axis) {
    size_t rows = (edge - 1) * width + edge;
    if (axis == 0)
        return (struct layout){CELL, width * CELL, rows};
    if (axis == 1)
        return (struct layout){edge * CELL, width * width * CELL, edge};
    return (struct layout){rows * CELL, rows * CELL, 1};
}

static void *list_of(unsigned char *blocks, struct layout l) {
    ptl_iovec_t *list = allocate(l.count * sizeof *list);
    list_blocks(list, blocks, l);
    description_bytes += l.count * sizeof *list;
    return list;
}

static ptl_hpu_md_h hpu_memory(size_t bytes, size_t state_bytes) {
    ptl_hpu_md_h memory;
    CHECK(PtlHPUAllocMem(bytes, ni, &memory));
    description_bytes += state_bytes;
    return memory;
}

/* Prepares the reception of a face. */
static void receive(struct face *f, int number) {
    struct datatype_vector state = {.block = (uint32_t)f->layout.block, .stride = (uint32_t)f->layout.stride};
    size_t span = (f->layout.count - 1) * f->layout.stride + f->layout.block;
    enum way way = way_of(receiving, f->layout);
    ptl_me_t me = {.start = f->ghost,
                   .length = span,
                   .ct_handle = deposited,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = DATA + (ptl_match_bits_t)number,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .hpu_memory = PTL_INVALID_HANDLE};
    deposits += way == CPU ? 0
                : way_of(sending, f->layout) == HANDLER
                    ? datatype_messages(bytes_of(f->layout), limits.max_payload_size)
                    : 1;
    if (way == CPU) {
        f->taken = allocate(bytes_of(f->layout));
        CHECK(PtlCTAlloc(ni, &f->arrived));
        me.ct_handle = f->arrived, me.start = f->taken, me.length = bytes_of(f->layout);
    }
    if (way == IOVEC)
        me.start = list_of(f->ghost, f->layout), me.length = f->layout.count, me.options |= PTL_IOVEC;
    if (way == HANDLER) {
        me.hpu_memory = hpu_memory(sizeof state, sizeof state);
        me.payload_handler = sending == HANDLER ? datatype_unpack_packet : datatype_unpack;
        me.hpu_initial_state = &state, me.hpu_initial_state_length = sizeof state;
    }
    f->memory = me.hpu_memory;
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &f->entry));
}

/* Prepares the entry whose handlers pack a face. */
static void pack_by_handlers(struct face *f, int number) {
    struct datatype_sender state = {
        .vector = {.block = (uint32_t)f->layout.block, .stride = (uint32_t)f->layout.stride},
        .bits = DATA + (ptl_match_bits_t)number,
        .target = f->target.rank,
        .length = (uint32_t)bytes_of(f->layout),
        .packet = (uint32_t)limits.max_payload_size};
    f->packing_memory = hpu_memory(DATATYPE_SENDER_BYTES, sizeof state);
    CHECK(PtlCTAlloc(ni, &f->packed));
    ptl_me_t me = {.start = f->own,
                   .length = (f->layout.count - 1) * f->layout.stride + f->layout.block,
                   .ct_handle = f->packed,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = PACK + (ptl_match_bits_t)number,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .header_handler = datatype_send,
                   .hpu_memory = f->packing_memory,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &f->packing));
}

/* Prepares the sending of a face. */
static void send(struct face *f, int number) {
    enum way way = way_of(sending, f->layout);
    ptl_md_t md = {.start = f->own, .length = bytes_of(f->layout), .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    if (way == CPU)
        md.start = f->sent = allocate(md.length);
    if (way == IOVEC)
        md.start = list_of(f->own, f->layout), md.length = f->layout.count, md.options = PTL_IOVEC;
    CHECK(PtlMDBind(ni, &md, &f->md));
    if (way == HANDLER)
        pack_by_handlers(f, number);
}

static void prepare(int number) {
    struct face *f = &faces[number];
    int axis = number / 2;
    bool up = number % 2;
    size_t own[AXES] = {1, 1, 1}, ghost[AXES] = {1, 1, 1};
    own[axis] = up ? edge : 1;
    ghost[axis] = up ? 0 : edge + 1;
    *f = (struct face){.layout = across(axis)};
    f->target.rank = (ptl_rank_t)neighbour((size_t)spin_rank(), axis, up);
    f->own = (unsigned char *)&cells[cell(own[0], own[1], own[2])];
    f->ghost = (unsigned char *)&cells[cell(ghost[0], ghost[1], ghost[2])];
    receive(f, number);
    send(f, number);
}

/* Sends all faces, and returns when all are received; adds to the two times. */
static void exchange(uint64_t *marshal_ps, uint64_t *post_ps) {
    const ptl_process_t self = {.rank = (ptl_rank_t)spin_rank()};
    uint64_t since;
    for (int i = 0; i < FACES; i++) {
        struct face *f = &faces[order[i]];
        enum way way = way_of(sending, f->layout);
        since = spin_time_ps();
        if (way == CPU)
            pack_on_cpu(f->sent, f->own, f->layout);
        *marshal_ps += spin_time_ps() - since;
        since = spin_time_ps();
        if (way == HANDLER)
            CHECK(PtlPut(f->md, 0, 0, PTL_NO_ACK_REQ, self, PT, PACK + (ptl_match_bits_t)order[i], 0, NULL, 0));
        else
            CHECK(PtlPut(f->md, 0, bytes_of(f->layout), PTL_NO_ACK_REQ, f->target, PT,
                         DATA + (ptl_match_bits_t)order[i], 0, NULL, 0));
        *post_ps += spin_time_ps() - since;
    }
    for (int i = 0; i < FACES; i++) {
        struct face *f = &faces[order[i]];
        if (way_of(receiving, f->layout) != CPU)
            continue;
        await_count(f->arrived, 1);
        since = spin_time_ps();
        unpack_on_cpu(f->ghost, f->taken, f->layout);
        *marshal_ps += spin_time_ps() - since;
    }
    await_count(deposited, deposits);
}

/* Returns the expected value of a cell after the exchange, or NaN if any value is right. */
static double expected(size_t x, size_t y, size_t z) {
    const size_t at[AXES] = {x, y, z};
    size_t rank = (size_t)spin_rank(), source[AXES], outside = 0;
    for (int axis = 0; axis < AXES; axis++) {
        bool below = at[axis] == 0, above = at[axis] == edge + 1;
        source[axis] = below ? edge : above ? 1 : at[axis];
        outside += below || above;
        if (below || above)
            rank = neighbour(rank, axis, above);
    }
    if (outside < 2)
        return value(rank, cell(source[0], source[1], source[2]));
    bool between = y % (edge + 1) != 0 || z % (edge + 1) != 0; /* some face contains the cells between its rows */
    return between ? __builtin_nan("") : untouched;
}

static void check(void) {
    for (size_t z = 0; z < width; z++)
        for (size_t y = 0; y < width; y++)
            for (size_t x = 0; x < width; x++) {
                double right = expected(x, y, z), found = cells[cell(x, y, z)];
                if (right == right && found != right)
                    fail("cell (%zu, %zu, %zu) of %zu: %.0f instead of %.0f", x, y, z, edge, found, right);
            }
}

static void clear(struct face *f) {
    CHECK(PtlMEUnlink(f->entry));
    CHECK(PtlMDRelease(f->md));
    if (way_of(receiving, f->layout) == CPU)
        CHECK(PtlCTFree(f->arrived));
    if (way_of(receiving, f->layout) == HANDLER)
        CHECK(PtlHPUFreeMem(&f->memory));
    if (way_of(sending, f->layout) == HANDLER) {
        await_count(f->packed, datatype_runs((uint32_t)bytes_of(f->layout), (uint32_t)limits.max_payload_size));
        CHECK(PtlMEUnlink(f->packing));
        CHECK(PtlHPUFreeMem(&f->packing_memory));
        CHECK(PtlCTFree(f->packed));
    }
    free(f->sent);
    free(f->taken);
}

static void measure(void) {
    uint64_t marshal_ps = 0, post_ps = 0;
    size_t rank = (size_t)spin_rank();
    width = edge + 2;
    cells = allocate(width * width * width * CELL);
    for (size_t z = 0; z < width; z++)
        for (size_t y = 0; y < width; y++)
            for (size_t x = 0; x < width; x++) {
                bool inside = x - 1 < edge && y - 1 < edge && z - 1 < edge;
                cells[cell(x, y, z)] = inside ? value(rank, cell(x, y, z)) : untouched;
            }
    description_bytes = deposits = 0;
    CHECK(PtlCTAlloc(ni, &deposited));
    for (int i = 0; i < FACES; i++)
        prepare(i);
    CHECK(spin_barrier()); /* all leave it at the same time */
    uint64_t start_ps = spin_time_ps();
    exchange(&marshal_ps, &post_ps);
    CHECK(spin_barrier()); /* free: all ranks leave when the last one has its ghost cells */
    uint64_t time_ps = spin_time_ps() - start_ps;
    check();
    for (int i = 0; i < FACES; i++)
        clear(&faces[i]);
    CHECK(PtlCTFree(deposited));
    free(cells);
    CHECK(spin_barrier()); /* all data is right */
    if (rank == 0)
        printf("{\"send\":\"%s\",\"receive\":\"%s\",\"edge\":%zu,\"time_ps\":%llu,\"marshal_ps\":%llu,\"cpu_ps\":%llu,"
               "\"description_bytes\":%zu,\"data_ok\":true}\n",
               ways[sending], ways[receiving], edge, (unsigned long long)time_ps, (unsigned long long)marshal_ps,
               (unsigned long long)(marshal_ps + post_ps), description_bytes);
    fflush(stdout);
}

int main(int argc, char **argv) {
    sending = (enum way)choice(option(argc, argv, "--send", usage), ways, WAYS, usage);
    receiving = (enum way)choice(option(argc, argv, "--receive", usage), ways, WAYS, usage);
    const char *edges = option(argc, argv, "--edges", usage);
    if (sending == HANDLER && receiving != HANDLER)
        fail("--send handler needs --receive handler; usage: %s", usage);
    while ((side + 1) * (side + 1) * (side + 1) <= (size_t)spin_size())
        side++;
    start(PT, NULL);
    if (side * side * side != (size_t)spin_size())
        fail("needs 8, 27, 64, … ranks, not %d", spin_size());
    while (next_number(&edges, &edge)) {
        if (edge == 0 || edge > 1000)
            fail("--edges: %zu cells: expected 1 to 1000", edge);
        measure();
    }
    finish();
    return 0;
}
