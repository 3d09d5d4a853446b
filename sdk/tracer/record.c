/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, records and the trace file. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

/* The first record that takes a block past BLOCK_BYTES, or ends BLOCK_TIME ns after the previous block, closes it. A
 * program that is killed loses the records of its open block. */
#define BLOCK_BYTES (64 * 1024)
#define BLOCK_TIME 100000000
#define HEADER_BYTES 4
/* Unit of wall times, in ns. The next record gets the remainder, so sums are exact. */
#define WALL_UNIT 1000
/* Bytes of the longest varint. */
#define NUMBER_BYTES 10

/* A lock is not needed: a traced program gets at most MPI_THREAD_SERIALIZED, so only one thread is in MPI at a time. */
static struct {
    bool running;
    int file;
    pid_t process; /* a forked child must not write */
    char path[4096];
    unsigned char *buffer; /* header and payload of the block */
    size_t used, capacity;
    size_t committed; /* bytes of complete records */
    uint64_t wall_start, cpu_start, wall_flushed;
} trace = {.file = -1};

/* Longest span, in ns, that counts as CPU time without a reading of the clock of CPU time, which is a system call. A
 * thread that is descheduled or waits is away for longer. */
#define SHORT_SPAN 10000

/* Functions of libportals, which an MPI under spinrun has loaded. All times are simulated then: the program's
 * computation is the time between its calls. The declarations repeat spin.h, so that the tracer builds without it. */
static struct {
    uint64_t (*time_ps)(void);
    void (*show)(const char *name, uint64_t start_ps);
} simulator;
#define PS_PER_NS 1000

static __thread struct {
    int depth;
    const char *name;             /* name of the outermost call */
    uint64_t begin_ps;            /* start of this call */
    uint64_t cpu_last, wall_last; /* times of the last begin or end of a call, in ns */
    uint64_t gap, wall;           /* ns for the next record */
} thread;

static uint64_t now(clockid_t clock) {
    struct timespec time;
    if (simulator.time_ps)
        return simulator.time_ps() / PS_PER_NS;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "spintrace: cannot %s %s: %s; the trace ends here\n", what, trace.path, strerror(errno));
    trace.running = false;
}

static void write_all(const void *bytes, size_t count) {
    for (const char *from = bytes; count > 0 && trace.running;) {
        ssize_t written = write(trace.file, from, count);
        if (written < 0 && errno != EINTR) {
            fail("write");
        } else if (written > 0) {
            from += written;
            count -= (size_t)written;
        }
    }
}

void *spt_allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "spintrace: out of memory\n");
        abort();
    }
    return memory;
}

static void reserve(size_t more) {
    if (trace.used + more <= trace.capacity)
        return;
    while (trace.used + more > trace.capacity)
        trace.capacity = 2 * trace.capacity + BLOCK_BYTES;
    unsigned char *larger = realloc(trace.buffer, trace.capacity);
    if (!larger) {
        fprintf(stderr, "spintrace: out of memory\n");
        abort();
    }
    trace.buffer = larger;
}

/* Writes all records so far, without closing the file. */
static void flush(void) {
    if (trace.used > HEADER_BYTES && trace.running) {
        size_t payload = trace.used - HEADER_BYTES;
        for (int byte = 0; byte < HEADER_BYTES; byte++)
            trace.buffer[byte] = (unsigned char)(payload >> 8 * byte);
        write_all(trace.buffer, trace.used);
        trace.used = trace.committed = HEADER_BYTES;
    }
}

void spt_put(uint64_t number) {
    reserve(NUMBER_BYTES);
    for (; number >= 0x80; number >>= 7)
        trace.buffer[trace.used++] = (unsigned char)(number | 0x80);
    trace.buffer[trace.used++] = (unsigned char)number;
}

void spt_put_bytes(const void *bytes, size_t count) {
    reserve(count);
    memcpy(trace.buffer + trace.used, bytes, count);
    trace.used += count;
}

void spt_put_text(const char *text) {
    size_t length = strlen(text);
    spt_put(length);
    spt_put_bytes(text, length);
}

void spt_begin(int kind) {
    reserve(1);
    trace.buffer[trace.used++] = (unsigned char)kind;
    if (kind >= SPT_SEND) {
        spt_put(thread.gap);
        spt_put(thread.wall / WALL_UNIT);
        thread.gap = 0;
        thread.wall %= WALL_UNIT;
    }
}

void spt_commit(void) {
    trace.committed = trace.used;
    if (trace.used >= BLOCK_BYTES || thread.wall_last - trace.wall_flushed > BLOCK_TIME) {
        trace.wall_flushed = thread.wall_last;
        flush();
    }
}

void *spt_take(size_t *count) {
    *count = trace.used - trace.committed;
    void *taken = spt_allocate(*count, 1);
    memcpy(taken, trace.buffer + trace.committed, *count);
    trace.used = trace.committed;
    return taken;
}

/* Returns the wall time since `wall_last`, and advances `wall_last` and `cpu_last` to now; *cpu is its CPU time. */
static uint64_t span(uint64_t *cpu) {
    uint64_t wall_now = now(CLOCK_MONOTONIC), wall = wall_now - thread.wall_last;
    if (wall < SHORT_SPAN) {
        *cpu = wall;
        thread.cpu_last += wall;
    } else {
        uint64_t cpu_now = now(CLOCK_THREAD_CPUTIME_ID);
        *cpu = cpu_now > thread.cpu_last ? cpu_now - thread.cpu_last : 0;
        thread.cpu_last = cpu_now;
    }
    thread.wall_last = wall_now;
    return wall;
}

void spt_enter_call(const char *name) {
    uint64_t cpu;
    if (thread.depth++ == 0 && trace.running) {
        span(&cpu);
        thread.gap += cpu;
        thread.name = name;
        thread.begin_ps = simulator.time_ps ? simulator.time_ps() : 0;
    }
}

bool spt_leave(int result) {
    uint64_t cpu;
    if (--thread.depth > 0 || !trace.running)
        return false;
    thread.wall += span(&cpu);
    if (simulator.show)
        simulator.show(thread.name, thread.begin_ps);
    return result == MPI_SUCCESS;
}

/* Finds the simulator's functions, if this process is a rank of spinrun. */
static void find_simulator(void) {
    void *library = dlopen("libportals.so.4", RTLD_LAZY | RTLD_NOLOAD);
    if (!getenv("SPIN_RANK") || !library)
        return;
    *(void **)&simulator.time_ps = dlsym(library, "spin_time_ps");
    *(void **)&simulator.show = dlsym(library, "spin_show");
}

bool spt_open(void) {
    int rank, ranks, length;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *folder = getenv("SPINTRACE_DIR");
    MPI_Comm parent;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        /* The files of these ranks belong to the program that was started first. */
        if (rank == 0)
            fprintf(stderr, "spintrace: processes made by MPI_Comm_spawn are not traced\n");
        return false;
    }
    PMPI_Get_library_version(library, &length);
    library[strcspn(library, "\r\n\t,")] = 0;
    snprintf(trace.path, sizeof trace.path, "%s/rank-%d.spintrace", folder ? folder : ".", rank);
    trace.file = open(trace.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    find_simulator();
    trace.running = true;
    trace.process = getpid();
    if (trace.file < 0) {
        fail("create");
        return false;
    }
    write_all(SPT_MAGIC, strlen(SPT_MAGIC));
    reserve(BLOCK_BYTES);
    trace.used = trace.committed = HEADER_BYTES;
    spt_begin(SPT_START);
    spt_put((uint64_t)rank);
    spt_put((uint64_t)ranks);
    spt_put_text(library);
    trace.wall_start = trace.wall_flushed = thread.wall_last = now(CLOCK_MONOTONIC);
    return true;
}

void spt_run(void) {
    flush();
    thread.cpu_last = trace.cpu_start = now(CLOCK_THREAD_CPUTIME_ID);
    thread.wall_last = now(CLOCK_MONOTONIC);
}

void spt_end(void) {
    if (!trace.running)
        return;
    uint64_t cpu;
    span(&cpu);
    spt_begin(SPT_END);
    spt_put(thread.gap + cpu);
    spt_put(thread.wall_last - trace.wall_start);
    spt_put(thread.cpu_last - trace.cpu_start);
    flush();
    trace.running = false;
    close(trace.file);
}

void spt_cut_off(void) {
    if (!trace.running)
        return;
    flush();
    trace.running = false;
    close(trace.file);
}

/* Writes the records of a program that ends without MPI_Finalize. */
__attribute__((destructor)) static void end_of_process(void) {
    if (trace.process == getpid())
        flush();
}
