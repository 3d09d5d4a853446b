/* A program that starts a process later, and sends it something if it has an argument. 4 ranks. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Comm parent, both;
    int value = 5, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *to_child[] = {argv[1], NULL};
        MPI_Comm_spawn(argv[0], to_child, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
        if (argc > 1 && rank == 0)
            MPI_Send(&value, 1, MPI_INT, 0, 1, both);
        MPI_Comm_disconnect(&both);
    } else {
        if (argc > 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return value == 5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
