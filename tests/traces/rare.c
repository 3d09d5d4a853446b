/* SPDX-License-Identifier: Apache-2.0 */
/* Rarer calls, which must leave traces whose schedules finish; see tests/python/test_trace.py. 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4 };

static int me;
static char out[4096], in[4096];

/* Even and odd ranks as two sides: a message, a broadcast from one of the even, an all-gather, a barrier; then as one. */
static void intercommunicators(void) {
    MPI_Comm side, both, merged;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &both);
    if (me == 2)
        MPI_Send(out, 70, MPI_BYTE, 0, 1, both);
    if (me == 1)
        MPI_Recv(in, 70, MPI_BYTE, 1, MPI_ANY_TAG, both, MPI_STATUS_IGNORE);
    MPI_Bcast(out, 80, MPI_BYTE, me % 2 ? 1 : me == 2 ? MPI_ROOT : MPI_PROC_NULL, both);
    MPI_Allgather(out, 90, MPI_BYTE, in, 90, MPI_BYTE, both);
    int counts[2] = {3, 5}, places[2] = {0, 8};
    MPI_Gatherv(out, 3 + 2 * (me / 2), MPI_BYTE, in, counts, places, MPI_BYTE,
                me % 2 == 0 ? 0
                : me == 1   ? MPI_ROOT
                            : MPI_PROC_NULL,
                both);
    MPI_Barrier(both);
    MPI_Intercomm_merge(both, me % 2, &merged);
    MPI_Bcast(out, 81, MPI_BYTE, 3, merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
}

/* A torus of 2 x 2 and its rows; a graph in which each rank sends to the next but one, twice as much to the next. */
static void topologies(void) {
    MPI_Comm torus, row, graph;
    int sides[2] = {2, 2}, periodic[2] = {1, 0}, remain[2] = {0, 1}, counts[2] = {10, 20}, places[2] = {0, 100};
    int weights[2] = {1, 2};
    int targets[2] = {(me + 2) % RANKS, (me + 1) % RANKS}, sources[2] = {(me + 2) % RANKS, (me + 3) % RANKS};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periodic, 0, &torus);
    MPI_Neighbor_alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, torus);
    MPI_Cart_sub(torus, remain, &row);
    MPI_Allreduce(out, in, 4, MPI_INT, MPI_MAX, row);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights, MPI_INFO_NULL, 0, &graph);
    MPI_Request request;
    MPI_Ineighbor_alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&row);
    MPI_Comm_free(&torus);
}

/* A receive that is cancelled; sends that share a handle; a request that is freed; some of many; groups. */
static void requests(void) {
    MPI_Request many[8], lost;
    MPI_Status status;
    int next = (me + 1) % RANKS, last = (me + 3) % RANKS, indices[8], done, flag;
    MPI_Irecv(in, 10, MPI_BYTE, last, 99, MPI_COMM_WORLD, &lost);
    MPI_Cancel(&lost);
    MPI_Wait(&lost, &status);
    MPI_Test_cancelled(&status, &flag);
    if (!flag)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int index = 0; index < 4; index++)
        MPI_Irecv(in, 15, MPI_BYTE, last, index, MPI_COMM_WORLD, &many[index]);
    for (int index = 0; index < 4; index++)
        MPI_Isend(out, 15, MPI_BYTE, next, index, MPI_COMM_WORLD, &many[4 + index]);
    for (int left = 8; left > 0; left -= done)
        MPI_Waitsome(8, many, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Isend(out, 17, MPI_BYTE, next, 5, MPI_COMM_WORLD, &lost);
    MPI_Request_free(&lost);
    MPI_Recv(in, 17, MPI_BYTE, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(in, 18, MPI_BYTE, next, 6, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
    MPI_Group world, three;
    MPI_Comm some;
    int members[3] = {3, 1, 0};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, members, &three);
    if (me != 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, three, 0, &some);
        MPI_Scatter(out, 19, MPI_BYTE, in, 19, MPI_BYTE, 0, some);
        MPI_Comm_free(&some);
    }
    MPI_Group_free(&three);
    MPI_Group_free(&world);
}

/* Four parts of 100 bytes, twice. */
static void partitions(void) {
/* Open MPI 5 has partitions, though it says MPI 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
    MPI_Request both[2];
    MPI_Psend_init(out, 4, 100, MPI_BYTE, (me + 1) % RANKS, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in, 4, 100, MPI_BYTE, (me + 3) % RANKS, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(2, both);
        MPI_Pready(2, both[0]);
        MPI_Pready_range(0, 1, both[0]);
        MPI_Pready(3, both[0]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
#endif
}

int main(int argc, char **argv) {
    int provided, counts[RANKS], places[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided == MPI_THREAD_MULTIPLE)
        return EXIT_FAILURE;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    intercommunicators();
    topologies();
    requests();
    partitions();
    for (int rank = 0; rank < RANKS; rank++) {
        counts[rank] = rank == (me + 1) % RANKS || rank == (me + 3) % RANKS;
        types[rank] = MPI_DOUBLE;
        places[rank] = 8 * rank;
    }
    MPI_Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 8 * me, out, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
