/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of all kinds with a known pattern; tests/python/test_trace.py says what a trace of 4 ranks must hold. */
#include <mpi.h>

#include "../portals/harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

static int me;
static char out[1 << 16], in[1 << 16];

static void spin(void) {
    volatile double sum = 0;
    for (int step = 0; step < 3000000; step++)
        sum += step;
}

/* 1000 bytes around the ring, blocking. */
static void ring(void) {
    if (me > 0)
        MPI_Recv(in, 1000, MPI_BYTE, me - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 1000, MPI_BYTE, (me + 1) % RANKS, 7, MPI_COMM_WORLD);
    if (me == 0)
        MPI_Recv(in, 1000, MPI_BYTE, RANKS - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* 100 doubles to both sides of a line, without the ends; then 200 doubles by persistent requests; 50 by sendrecv. */
static void halo(void) {
    int down = me > 0 ? me - 1 : MPI_PROC_NULL, up = me < RANKS - 1 ? me + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(in, 100, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 800, 100, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, 100, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out, 100, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);

    MPI_Recv_init(in, 200, MPI_DOUBLE, down, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 200, MPI_DOUBLE, up, 3, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, requests);
        for (int left = 2; left > 0; left--) {
            int index;
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        }
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Sendrecv(out, 50, MPI_DOUBLE, up, 4, in, 50, MPI_DOUBLE, down, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Everyone sends rank 0 its rank, with its rank as tag, to receives from any with any tag. */
static void wildcards(void) {
    if (me > 0) {
        MPI_Send(&me, 1, MPI_INT, 0, 100 + me, MPI_COMM_WORLD);
        MPI_Send(&me, 1, MPI_INT, 0, 200, MPI_COMM_WORLD);
        return;
    }
    for (int count = 1; count < RANKS; count++) {
        int value;
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 200, MPI_COMM_WORLD, &status);
        EXPECT(status.MPI_SOURCE == value);
    }
    MPI_Request requests[RANKS - 1];
    int values[RANKS - 1], done = 0;
    for (int count = 0; count < RANKS - 1; count++)
        MPI_Irecv(&values[count], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[count]);
    while (!done)
        MPI_Testall(RANKS - 1, requests, &done, MPI_STATUSES_IGNORE);
}

/* The odd and the even ranks, in reverse order; a duplicate; a ring as a Cartesian communicator; a matched probe. */
static void communicators(void) {
    MPI_Comm half, copy, cart;
    int rank, sides[1] = {RANKS}, periodic[1] = {1}, sum;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, half);
    EXPECT(sum == (me % 2 ? 4 : 2));
    if (rank == 0)
        MPI_Send(out, 300, MPI_BYTE, 1, 5, half);
    else
        MPI_Recv(in, 300, MPI_BYTE, 0, MPI_ANY_TAG, half, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Bcast(out, 500, MPI_BYTE, 2, copy);
    MPI_Cart_create(copy, 1, sides, periodic, 0, &cart);
    MPI_Neighbor_allgather(out, 11, MPI_BYTE, in, 11, MPI_BYTE, cart);
    if (me == 3) {
        MPI_Send(out, 33, MPI_BYTE, 1, 6, copy);
    } else if (me == 1) {
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &message, &status);
        EXPECT(status.MPI_SOURCE == 3 && status.MPI_TAG == 6);
        MPI_Mrecv(in, 33, MPI_BYTE, &message, &status);
    }
    MPI_Comm_free(&cart);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
}

static void collectives(void) {
    int counts[RANKS], places[RANKS], zeros[RANKS] = {0};
    MPI_Request request;
    for (int rank = 0, place = 0; rank < RANKS; rank++) {
        counts[rank] = 10 * (rank + 1);
        places[rank] = place;
        place += counts[rank];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(out, 64, MPI_BYTE, 1, MPI_COMM_WORLD);
    MPI_Reduce(out, in, 16, MPI_INT, MPI_SUM, 3, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(out, 8, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Alltoall(out, 9, MPI_BYTE, in, 9, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Gather(out, 5, MPI_BYTE, in, 5, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Scatter(out, 6, MPI_BYTE, in, 6, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(out, counts[me], MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Gatherv(out, counts[me], MPI_BYTE, in, counts, places, MPI_BYTE, 2, MPI_COMM_WORLD);
    /* Everyone sends rank r 10 (r + 1) bytes. */
    int same[RANKS];
    for (int rank = 0; rank < RANKS; rank++)
        same[rank] = counts[me];
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, same, zeros, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    spin();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    EXPECT(ranks == RANKS);
    if (argc > 1 && !strcmp(argv[1], "abort")) {
        ring();
        MPI_Barrier(MPI_COMM_WORLD);
        if (me == 2)
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ring();
    spin();
    halo();
    wildcards();
    communicators();
    collectives();
    MPI_Finalize();
    return EXIT_SUCCESS;
}
