/* SPDX-License-Identifier: Apache-2.0 */
// Features of MPI programs besides plain messages of one thread: probes, windows, threads, files, aborting, and
// spawning. The first argument selects one; every rank checks all data, and rank 0 prints the ranks' counts.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 20, BLOCKS = 50, BLOCK = 100 };

static int rank, ranks, wrong;

static void expect(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    wrong = 1;
}

// Every rank puts its number to all, counts itself on all, and adds its number to a sum on all.
static void windows(void) {
    long *memory, number = 7 * rank + 1, one = 1, before = -1, seen = -1;
    MPI_Win window;
    MPI_Win_allocate((ranks + 2) * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < ranks + 2; i++)
        memory[i] = 0;
    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; to++)
        MPI_Put(&number, 1, MPI_LONG, to, rank, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < ranks; i++)
        expect(memory[i] == 7 * i + 1, "a put is not there");
    MPI_Win_lock_all(0, window);
    for (int to = 0; to < ranks; to++) {
        MPI_Fetch_and_op(&one, &before, MPI_LONG, to, ranks, MPI_SUM, window);
        MPI_Win_flush(to, window);
        expect(before >= 0 && before < ranks, "a counter has a wrong value");
        MPI_Accumulate(&number, 1, MPI_LONG, to, ranks + 1, 1, MPI_LONG, MPI_SUM, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, window);
    MPI_Get(&seen, 1, MPI_LONG, (rank + 1) % ranks, ranks + 1, 1, MPI_LONG, window);
    MPI_Win_unlock((rank + 1) % ranks, window);
    expect(seen == 7L * ranks * (ranks - 1) / 2 + ranks, "a sum is wrong");
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    long count = memory[ranks];
    MPI_Win_unlock(rank, window);
    if (rank == 0)
        printf("windows: %ld ranks, sum %ld\n", count, seen);
    MPI_Win_free(&window);
}

// A thread exchanges messages with the same thread of both neighbours.
static void *talk(void *number) {
    int tag = (int)(long)number;
    for (int round = 0; round < ROUNDS; round++) {
        int mine[BLOCK], theirs[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            mine[i] = rank * 10000 + tag * 1000 + round + i;
        MPI_Sendrecv(mine, BLOCK, MPI_INT, (rank + 1) % ranks, tag, theirs, BLOCK, MPI_INT, (rank + ranks - 1) % ranks,
                     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < BLOCK; i++)
            if (theirs[i] != (rank + ranks - 1) % ranks * 10000 + tag * 1000 + round + i)
                return "a thread got wrong data";
    }
    return NULL;
}

static void threads(void) {
    pthread_t others[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&others[i], NULL, talk, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *why;
        pthread_join(others[i], &why);
        expect(!why, why);
    }
    if (rank == 0)
        printf("threads: %d on each of %d ranks\n", THREADS, ranks);
}

// Each rank writes every ranks-th block of a file, all together, and reads the blocks of its neighbour.
static void files(const char *path) {
    static int mine[BLOCKS * BLOCK], theirs[BLOCKS * BLOCK];
    MPI_File file;
    MPI_Datatype blocks;
    MPI_Status status;
    MPI_Offset size;
    int neighbour = (rank + 1) % ranks, count;
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        mine[i] = rank * 100000 + i;
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_INT, &blocks);
    MPI_Type_commit(&blocks);
    int opened = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    expect(opened == MPI_SUCCESS, "the file is not opened");
    if (opened != MPI_SUCCESS)
        return;
    MPI_File_set_view(file, rank * BLOCK * (MPI_Offset)sizeof(int), MPI_INT, blocks, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, mine, BLOCKS * BLOCK, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    expect(count == BLOCKS * BLOCK, "not all was written");
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, neighbour * BLOCK * (MPI_Offset)sizeof(int), MPI_INT, blocks, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, theirs, BLOCKS * BLOCK, MPI_INT, &status);
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        expect(theirs[i] == neighbour * 100000 + i, "wrong data are read");
    MPI_File_get_size(file, &size);
    if (rank == 0)
        printf("files: %lld bytes\n", (long long)size);
    MPI_File_close(&file);
    MPI_Type_free(&blocks);
    expect(MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS,
           "a file that is not there is opened");
}

// Every rank probes without success for a message that is never sent, sends one to its right neighbour, and probes for
// the one from its left. Odd ranks first wait by probing, while even ranks poll.
static void probes(void) {
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    int sum = 0, total = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int mine = 100 * rank + round, theirs = -1, found = 0, count = 0;
        MPI_Message message;
        MPI_Status status;
        for (int step = 0; step < 2; step++) {
            if (step == rank % 2) {
                for (int look = 0; look < 3; look++) {
                    MPI_Improbe(rank, 1, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
                    expect(!found, "a message is found that nobody has sent");
                }
                MPI_Send(&mine, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
            } else {
                MPI_Mprobe(left, 0, MPI_COMM_WORLD, &message, &status);
                MPI_Get_count(&status, MPI_INT, &count);
                MPI_Mrecv(&theirs, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
            }
        }
        expect(count == 1 && theirs == 100 * left + round, "a probed message is wrong");
        sum += theirs;
    }
    MPI_Reduce(&sum, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("probes: %d\n", total);
}

static void spawn(void) {
    MPI_Comm children;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int code =
        MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    expect(code != MPI_SUCCESS, "a process was spawned");
    if (rank == 0)
        puts("spawn: refused");
}

/* Prints the names of this rank's shared memory files. */
static void tell_shared_memory(void) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "/dev/shm/"))
            printf("shared: %s", strstr(line, "/dev/shm/"));
    fflush(stdout);
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    double begin = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(provided == MPI_THREAD_MULTIPLE, "threads are not supported");
    if (!strcmp(what, "probes"))
        probes();
    if (!strcmp(what, "windows"))
        windows();
    if (!strcmp(what, "threads"))
        threads();
    if (!strcmp(what, "files"))
        files(argv[2]);
    if (!strcmp(what, "spawn"))
        spawn();
    if (!strcmp(what, "abort") && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strncmp(what, "leave-", 6)) {
        tell_shared_memory();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            puts("all are there");
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && !strcmp(what, "leave-exit"))
            exit(3);
        if (rank == 1 && !strcmp(what, "leave-abort"))
            MPI_Abort(MPI_COMM_WORLD, 0);
        while (rank == 1 && strcmp(what, "leave-end"))
            pause();
    }
    if (!strcmp(what, "crash") && rank == 1)
        abort();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.3f us\n", (MPI_Wtime() - begin) * 1e6);
    MPI_Finalize();
    return wrong;
}
