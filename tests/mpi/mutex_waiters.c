/* SPDX-License-Identifier: Apache-2.0 */
/* `mutex_waiters THREADS`: threads of each of two ranks poll a flag under a mutex while the main threads
 * communicate. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8, ROUNDS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *wait_for_main(void *unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        int is_done = done;
        pthread_mutex_unlock(&lock);
        if (is_done)
            return unused;
    }
}

int main(int argc, char **argv) {
    int level, rank, count = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[MOST];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count && i < MOST; i++)
        pthread_create(&threads[i], NULL, wait_for_main, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int value = round;
        if (rank == 0)
            MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count && i < MOST; i++)
        pthread_join(threads[i], NULL);
    if (rank == 0)
        printf("%d threads\n", count);
    MPI_Finalize();
    return 0;
}
