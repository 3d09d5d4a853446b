/* A datatype: a message has columns of a matrix in one piece, and handlers write each row's part to its place in the matrix.
 * spincc examples/scatter.c -o scatter && spinrun -n 2 ./scatter */
#include "card.h"

enum { ROWS = 256, COLUMNS = 64, FIRST = 24, COUNT = 16 }; /* columns 24 to 39 of a matrix of 256 x 64 */

struct vector { /* as MPI_Type_vector: `block` bytes every `stride` bytes, from `start` on */
    uint32_t start, block, stride;
};

/* Packets are handled in parallel and in any order: the place of each byte follows from its offset in the message. */
__handler int unpack(const ptl_payload_t p, void *state) {
    const struct vector *v = state;
    const uint32_t length = p.length;
    uint32_t at = p.offset; /* in the message */
    for (uint32_t done = 0; done < length;) {
        const uint32_t within = at % v->block;
        uint32_t piece = v->block - within;
        if (piece > length - done)
            piece = length - done;
        const uint32_t place = v->start + at / v->block * v->stride + within;
        if (PtlHandlerDMAToHostB(p.base + done, place, piece, PTL_ME_HOST_MEM) != 0)
            return FAIL;
        done += piece;
        at += piece;
    }
    return SUCCESS;
}

int main(void) {
    static int32_t matrix[ROWS][COLUMNS], columns[ROWS][COUNT];
    ptl_handle_ct_t messages = PTL_CT_NONE;
    card_open(NULL, 0);
    if (spin_rank() == 0) {
        const struct vector type = {FIRST * sizeof(int32_t), COUNT * sizeof(int32_t), COLUMNS * sizeof(int32_t)};
        ptl_me_t me = card_entry(matrix, sizeof matrix, 0);
        me.payload_handler = unpack;
        me.hpu_initial_state = &type;
        me.hpu_initial_state_length = sizeof type;
        CHECK(PtlHPUAllocMem(sizeof type, ni, &me.hpu_memory));
        messages = card_append(&me);
    }
    CHECK(spin_barrier());
    if (spin_rank() == 1) {
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < COUNT; i++)
                columns[row][i] = 1000 * row + FIRST + i;
        card_put(card_memory(columns, sizeof columns), sizeof columns, 0, 0);
    } else if (spin_rank() == 0) {
        card_wait(messages, 1);
        int right = 0;
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < COLUMNS; i++)
                right += matrix[row][i] == (i >= FIRST && i < FIRST + COUNT ? 1000 * row + i : 0);
        printf("%d of %d elements are right; row 255 begins at column %d with %d\n", right, ROWS * COLUMNS, FIRST,
               matrix[255][FIRST]);
    }
    card_close();
    return 0;
}
