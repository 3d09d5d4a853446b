/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided calls with a known pattern; tests/python/test_trace_calls.py says what a trace of 4 ranks must hold. */
#include <mpi.h>

#include "../portals/harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, BYTES = 4096 };

static int me;
static char *base, local[BYTES];
static MPI_Win window;

/* 100 bytes to the next; 200 bytes from rank 2 to rank 0; 10 doubles added from rank 3 to rank 1. */
static void fences(void) {
    double ten[10] = {0};
    memset(local, 10 + me, sizeof local);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(local, 100, MPI_BYTE, (me + 1) % RANKS, 0, 100, MPI_BYTE, window);
    MPI_Put(local, 100, MPI_BYTE, MPI_PROC_NULL, 0, 100, MPI_BYTE, window);
    MPI_Put(local, 99, MPI_BYTE, me, 2000, 99, MPI_BYTE, window);
    if (me == 0)
        MPI_Get(local + 1000, 200, MPI_BYTE, 2, 1000, 200, MPI_BYTE, window);
    if (me == 3)
        MPI_Accumulate(ten, 10, MPI_DOUBLE, 1, 1200, 10, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    EXPECT(base[99] == 10 + (me + 3) % RANKS && base[2098] == 10 + me);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

/* Twice from ranks 1 and 2 to rank 0, 300 bytes and their rank. */
static void post_and_start(void) {
    MPI_Group world, others, target;
    int both[2] = {1, 2}, zero = 0, flag = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, both, &others);
    MPI_Group_incl(world, 1, &zero, &target);
    for (int round = 0; round < 2; round++) {
        if (me == 0) {
            MPI_Win_post(others, 0, window);
            if (round == 0)
                MPI_Win_wait(window);
            else
                while (!flag)
                    MPI_Win_test(window, &flag);
        } else if (me < 3) {
            MPI_Win_start(target, 0, window);
            MPI_Put(local, 300 + me, MPI_BYTE, 0, 400 * me, 300 + me, MPI_BYTE, window);
            MPI_Win_complete(window);
        }
    }
    MPI_Group_free(&world);
    MPI_Group_free(&others);
    MPI_Group_free(&target);
}

/* Rank 3 puts 500 bytes to rank 0, and then adds 5; rank 1 locks all, and waits for two of three accesses itself. */
static void locks(void) {
    int five = 5, before = -1, zero = 0;
    MPI_Request request;
    memset(base, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 3) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(local, 500, MPI_BYTE, 0, 1000, 500, MPI_BYTE, window);
        MPI_Win_flush(0, window);
        MPI_Fetch_and_op(&five, &before, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_flush_local(0, window);
        MPI_Win_unlock(0, window);
        EXPECT(before == 0);
    }
    if (me == 1) {
        MPI_Win_lock_all(0, window);
        MPI_Rput(local, 600, MPI_BYTE, 2, 0, 600, MPI_BYTE, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Rget(local, 700, MPI_BYTE, 3, 0, 700, MPI_BYTE, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Compare_and_swap(&five, &zero, &before, MPI_INT, 0, 512, window);
        MPI_Win_unlock_all(window);
        EXPECT(before == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* In a window of the odd ranks alone: 3 reads 48 bytes of 1 and adds nothing, twice. */
static void of_some(void) {
    MPI_Comm half;
    MPI_Win some;
    char in[48], *memory;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    if (me % 2) {
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, half, &memory, &some);
        MPI_Win_fence(0, some);
        if (me == 3) {
            MPI_Get_accumulate(NULL, 0, MPI_BYTE, in, 48, MPI_BYTE, 0, 0, 48, MPI_BYTE, MPI_NO_OP, some);
        }
        MPI_Win_fence(0, some);
        MPI_Win_lock_all(0, some);
        if (me == 3) {
            MPI_Rget_accumulate(in, 48, MPI_BYTE, in, 48, MPI_BYTE, 0, 0, 48, MPI_BYTE, MPI_NO_OP, some, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Win_unlock_all(some);
        MPI_Win_free(&some);
    }
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    MPI_Win dynamic;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    base = calloc(BYTES, 1);
    MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    fences();
    post_and_start();
    locks();
    MPI_Win_free(&window);
    of_some();
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_free(&dynamic);
    free(base);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
