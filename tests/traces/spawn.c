/* SPDX-License-Identifier: Apache-2.0 */
/* A program that starts a process later, and sends it a message if it has an argument. 4 ranks.

   The child stays until all parents are connected to it: MPICH over UCX aborts a parent that connects to a process that
   is gone, and neither MPI_Comm_spawn nor MPI_Comm_disconnect waits for that. A file tells it, as a message would be
   communication with another MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POLL_US = 1000, POLLS = 100000 };

int main(int argc, char **argv) {
    MPI_Comm parent, both;
    int value = 5, rank;
    char connected[4096];
    snprintf(connected, sizeof connected, "%s.connected", argv[0]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *to_child[] = {argv[1], NULL};
        if (rank == 0)
            remove(connected);
        MPI_Comm_spawn(argv[0], to_child, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            fclose(fopen(connected, "w"));
        if (argc > 1 && rank == 0)
            MPI_Send(&value, 1, MPI_INT, 0, 1, both);
        MPI_Comm_disconnect(&both);
    } else {
        for (int poll = 0; poll < POLLS && access(connected, F_OK) != 0; ++poll)
            usleep(POLL_US);
        if (argc > 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return value == 5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
