/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of MPI 3.1 to 4 with a known pattern; tests/python/test_trace_calls.py says what a trace of 4 ranks must hold. */
#include <mpi.h>

#include "../portals/harness.h"
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4 };

static int me, next, last;
static char out[4096], in[4096];

/* A duplicate made behind the program's back, and 40 bytes around the ring in it. */
static void copies(void) {
    MPI_Comm copy;
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 40, MPI_BYTE, next, 1, in, 40, MPI_BYTE, last, 1, copy, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
}

/* Open MPI 5 has these, though it says MPI 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
/* 61 bytes from rank 1 to all, three times; 4 ints summed, 10 bytes for each rank and its number, and a barrier, twice;
 * 19 bytes to both neighbours of a ring. */
static void persistent_collectives(void) {
    MPI_Request one, several[3];
    MPI_Comm ring;
    int sides[1] = {RANKS}, periodic[1] = {1}, counts[RANKS], same[RANKS], places[RANKS], four[4] = {1, 1, 1, 1},
        sum[4];
    for (int rank = 0; rank < RANKS; rank++) {
        counts[rank] = 10 + rank;
        same[rank] = 10 + me;
        places[rank] = 20 * rank;
    }
    MPI_Bcast_init(out, 61, MPI_BYTE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &one);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&one);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&one);
    MPI_Allreduce_init(four, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &several[0]);
    MPI_Alltoallv_init(out, counts, places, MPI_BYTE, in, same, places, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &several[1]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &several[2]);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(3, several);
        MPI_Waitall(3, several, MPI_STATUSES_IGNORE);
        EXPECT(sum[3] == RANKS);
    }
    for (int index = 0; index < 3; index++)
        MPI_Request_free(&several[index]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, sides, periodic, 0, &ring);
    MPI_Neighbor_alltoall_init(out, 19, MPI_BYTE, in, 19, MPI_BYTE, ring, MPI_INFO_NULL, &one);
    MPI_Start(&one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Request_free(&one);
    MPI_Comm_free(&ring);
}

/* 71 bytes around the ring, and 72 back. */
static void sendrecvs(void) {
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI_Isendrecv(out, 71, MPI_BYTE, next, 2, in, 71, MPI_BYTE, last, 2, MPI_COMM_WORLD, &both[0]);
    MPI_Isendrecv_replace(out, 72, MPI_BYTE, last, 3, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, statuses);
}
#else
static void persistent_collectives(void) {}
static void sendrecvs(void) {}
#endif

/* A list of parts, too: 3 parts of 30 bytes around the ring. */
static void partitions(void) {
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
    MPI_Request both[2];
    int parts[3] = {2, 0, 1};
    MPI_Psend_init(out, 3, 30, MPI_BYTE, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in, 3, 30, MPI_BYTE, last, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    MPI_Startall(2, both);
    MPI_Pready_list(3, parts, both[0]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
#endif
}

/* Calls with MPI_Count: 81 to 83 bytes around the ring, 84 from rank 2 to all, 30 for each rank and its number; 85 put to
 * the next. */
static void large_counts(void) {
#if MPI_VERSION >= 4
    MPI_Request both[2];
    MPI_Count counts[RANKS], same[RANKS];
    MPI_Aint places[RANKS];
    MPI_Win window;
    for (int rank = 0; rank < RANKS; rank++) {
        counts[rank] = 30 + rank;
        same[rank] = 30 + me;
        places[rank] = 40 * rank;
    }
    MPI_Sendrecv_c(out, 81, MPI_BYTE, next, 5, in, 81, MPI_BYTE, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv_c(in, 82, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &both[0]);
    MPI_Isend_c(out, 82, MPI_BYTE, next, 6, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Recv_init_c(in, 83, MPI_BYTE, last, 7, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init_c(out, 83, MPI_BYTE, next, 7, MPI_COMM_WORLD, &both[1]);
    MPI_Startall(2, both);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    MPI_Bcast_c(out, 84, MPI_BYTE, 2, MPI_COMM_WORLD);
    MPI_Alltoallv_c(out, counts, places, MPI_BYTE, in, same, places, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Win_create_c(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put_c(out, 85, MPI_BYTE, next, 0, 85, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
#endif
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    next = (me + 1) % RANKS;
    last = (me + 3) % RANKS;
    copies();
    persistent_collectives();
    sendrecvs();
    partitions();
    large_counts();
    MPI_Finalize();
    return EXIT_SUCCESS;
}
