/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads of each of two ranks receive their own messages by MPI_Mprobe. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, MESSAGES = 5 };

static MPI_Comm own[THREADS];
static int rank, wrong[THREADS];

static void *exchange(void *number) {
    long k = (long)number;
    for (int i = 0; i < MESSAGES; i++) {
        int got = -1;
        MPI_Request request;
        MPI_Message message;
        MPI_Isend(&i, 1, MPI_INT, 1 - rank, i, own[k], &request);
        MPI_Mprobe(1 - rank, i, own[k], &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        wrong[k] += got != i;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

int main(void) {
    int level;
    pthread_t threads[THREADS];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int k = 0; k < THREADS; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[k]);
    for (long k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, exchange, (void *)k);
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    if (rank == 0)
        printf("%d wrong\n", wrong[0] + wrong[1]);
    MPI_Finalize();
    return 0;
}
