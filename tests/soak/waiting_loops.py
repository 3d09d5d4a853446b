# SPDX-License-Identifier: Apache-2.0
"""Programs whose threads wait in different ways: a table of loops, and the C source of each with each library.

The common part of the programs is `waiting.h`, which defines the events that they wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

PORTALS, MPICH, OPEN_MPI = "portals", "mpich", "openmpi"
MPIS = (MPICH, OPEN_MPI)
EVERYWHERE = (PORTALS, *MPIS)


@dataclass(frozen=True)
class Loop:
    """Way to wait."""

    name: str
    kind: str
    """Constant of `waiting.h`."""
    body: str
    """Body of `await`, which returns the thread's result."""
    declarations: str = ""
    prepare: str = ""
    release: str = ""
    result: int = 3
    """Result of the first thread."""
    step: int = 0
    """Difference between the results of a thread and the one before."""
    libraries: tuple[str, ...] = (PORTALS,)

    def source(self, library: str) -> str:
        """Return the program with a library."""
        parts = (
            "#define _GNU_SOURCE",
            "#define PORTALS" if library == PORTALS else "#include <mpi.h>",
            f"#define KIND {self.kind}",
            '#include "waiting.h"',
            self.declarations,
            f"static void prepare(void) {{ {self.prepare} }}",
            f"static void release(void) {{ {self.release} }}",
            f"static long await(int id) {{ (void)id; {self.body} }}",
            "",
        )
        return "\n".join(parts)

    def output(self, threads: int) -> str:
        """Return the output of the program on this number of threads."""
        return "".join(f"thread {number} found {self.result + self.step * number}\n" for number in range(threads))


def _memory(name: str, body: str, declarations: str = "", kind: str = "MEMORY", result: int = 3) -> Loop:
    return Loop(name, kind, body, declarations, result=result)


def _limited(name: str, clock: str) -> Loop:
    """Return a loop of rounds that a clock limits to a few milliseconds."""
    body = (
        f"while (!flags[3]) {{ double begin = {clock}; while (!flags[3] && {clock} - begin < 0.003) {{}} }} return 3;"
    )
    return _memory(f"limited-by-{name}", body)


def _between(name: str, call: str) -> Loop:
    return _memory(name, f"while (!flags[3]) {{ {call}; }} return 3;")


_MEMORY = [
    _memory("flag", "while (!flags[3]) {} return 3;"),
    _memory("cyclic", "int i = 0; while (!flags[i]) i = (i + 1) % PLACES; return i;"),
    _memory("nested", "for (;;) for (int i = 0; i < PLACES; i++) if (flags[i]) return i;"),
    _memory(
        "random-start",
        "unsigned seed = 1; for (;;) { int s = (int)(rand_r(&seed) / (RAND_MAX + 1.0) * PLACES);"
        " for (int k = 0; k < PLACES; k++) { int j = (k + s) % PLACES; if (flags[j]) return j; } }",
    ),
    _memory(
        "random-place",
        "unsigned x = 12345, i; do { x = x * 1103515245u + 12345u; i = x >> 16 & (PLACES - 1); } while (!flags[i]);"
        " return i;",
    ),
    _memory(
        "status-array",
        "int seen[PLACES] = {0}; volatile int *status = seen; unsigned seed = 7;"
        " int s = (int)(rand_r(&seed) / (RAND_MAX + 1.0) * PLACES);"
        " for (;;) for (int k = 0; k < PLACES; k++) { int j = (k + s) % PLACES;"
        " if (!status[j] && flags[j]) { status[j] = 1; return j; } }",
    ),
    _memory(
        "all",
        "int i; do { for (i = 0; i < PLACES && flags[i]; i++) {} } while (i < PLACES); return i;",
        kind="EVERY",
        result=4,
    ),
    _memory(
        "count-all",
        "int seen; do { seen = 0; for (int i = 0; i < PLACES; i++) seen += flags[i] != 0; } while (seen < PLACES);"
        " return seen;",
        kind="EVERY",
        result=4,
    ),
    _memory(
        "some",
        "int done[PLACES] = {0}, left = PLACES; while (left) for (int i = 0; i < PLACES; i++)"
        " if (!done[i] && flags[i]) { done[i] = 1; left--; } return PLACES;",
        kind="EVERY",
        result=4,
    ),
    _memory("masked", "unsigned k = 0; while (!flags[k & (PLACES - 1)]) k++; return k & (PLACES - 1);"),
    _memory("reversed", "for (;;) for (int i = PLACES; i-- > 0;) if (flags[i]) return i;"),
    _memory("strided", "unsigned i = 0; while (!flags[i]) i = (i + 3) % PLACES; return i;"),
    _memory(
        "memcmp",
        "static const long none[PLACES]; while (!memcmp((const void *)flags, none, sizeof none)) FRESH(); return 3;",
    ),
    _memory("strcmp", 'while (!strcmp((const char *)&flags[3], "")) FRESH(); return 3;'),
    _memory("memchr", "while (!memchr((const void *)flags, 1, sizeof flags)) FRESH(); return 3;"),
    _memory(
        "list",
        "struct node { volatile long *flag; struct node *next; } nodes[PLACES];"
        " for (int i = 0; i < PLACES; i++) nodes[i] = (struct node){&flags[i], &nodes[(i + 1) % PLACES]};"
        " struct node *at = nodes; while (!*at->flag) at = at->next; return at->flag - flags;",
    ),
    _memory(
        "function-pointer",
        "long (*volatile look)(void) = test; while (!look()) {} return 3;",
        "static long test(void) { return flags[3]; }",
    ),
    _memory(
        "table-of-functions",
        "long (*tests[2])(int) = {low, high}; for (unsigned k = 0;; k++) { long at = tests[k & 1](k >> 1 & 1);"
        " if (at >= 0) return at; }",
        "static long low(int i) { return flags[i] ? i : -1; }\n"
        "static long high(int i) { return flags[2 + i] ? 2 + i : -1; }",
    ),
    _memory(
        "recursion",
        "for (;;) { int at = first(0); if (at >= 0) return at; }",
        "static __attribute__((noinline)) int first(int i) { return i == PLACES ? -1 : flags[i] ? i : first(i + 1); }",
    ),
    _memory(
        "bytes",
        "volatile struct { unsigned char byte[8]; } *word = (void *)&flags[3];"
        " int any; do { any = 0; for (int i = 0; i < 8; i++) any |= word->byte[i]; } while (!any); return 3;",
    ),
    _memory(
        "sum", "long sum; do { sum = 0; for (int i = 0; i < PLACES; i++) sum += flags[i]; } while (!sum); return 3;"
    ),
    _memory(
        "vector",
        "typedef long four __attribute__((vector_size(32))); four seen; do { FRESH();"
        " memcpy(&seen, (const void *)flags, sizeof seen); }"
        " while (!(seen[0] | seen[1] | seen[2] | seen[3])); return 3;",
    ),
    _memory("float-counter", "double n = 0; while (!flags[3]) n += 0.5; return n < 0 ? 0 : 3;"),
    _memory("counter", "unsigned long n = 0; while (!flags[3]) n++; return n + 4 > n ? 3 : 0;"),
    _memory("counter-in-memory", "while (!flags[3]) polls++; return 3;", "static volatile unsigned long polls;"),
    _memory(
        "history",
        "for (unsigned k = 0; !flags[3]; k++) log_[k % 512] = k; return 3;",
        "static volatile unsigned log_[512];",
    ),
    _memory(
        "switch",
        "int state = 0; for (;;) switch (state) { case 0: state = flags[0] ? 9 : 1; break;"
        " case 1: state = flags[1] ? 9 : 2; break; case 2: state = flags[2] ? 9 : 3; break;"
        " case 3: state = flags[3] ? 9 : 0; break; default: return 3; }",
    ),
    _memory("longjmp", "jmp_buf again; setjmp(again); if (!flags[3]) longjmp(again, 1); return 3;"),
    _memory("atomic", "while (!__atomic_load_n(&flags[3], __ATOMIC_ACQUIRE)) {} return 3;"),
    _memory("fetch-add", "while (!__atomic_fetch_add(&flags[3], 0, __ATOMIC_SEQ_CST)) {} return 3;"),
    _memory("compare-and-swap", "while (!__sync_bool_compare_and_swap(&flags[3], 1, 1)) {} return 3;"),
    _memory(
        "backoff",
        "for (unsigned n = 1; !flags[3]; n = n < 1024 ? 2 * n : n) for (volatile unsigned k = 0; k < n; k++) {}"
        " return 3;",
    ),
    _memory(
        "tries-then-call",
        "ptl_uid_t uid; for (;;) { for (int k = 0; k < 500; k++) if (flags[3]) return 3; CHECK(PtlGetUid(ni, &uid)); }",
    ),
    _memory("tries-then-yield", "for (;;) { for (int k = 0; k < 500; k++) if (flags[3]) return 3; sched_yield(); }"),
    _between("pause", '__asm__ volatile("pause")'),
    _between("yield", "sched_yield()"),
    _between("usleep", "usleep(2)"),
    _between("nanosleep", "nanosleep(&(struct timespec){0, 1500}, NULL)"),
    _between("poll-nothing", "poll(NULL, 0, 0)"),
    _between("getppid", "getppid()"),
    _limited("clock", "(double)clock() / CLOCKS_PER_SEC"),
    _limited("process-time", "seconds(CLOCK_PROCESS_CPUTIME_ID)"),
    _limited("thread-time", "seconds(CLOCK_THREAD_CPUTIME_ID)"),
    _limited("rusage", "cpu_seconds()"),
    _limited("monotonic", "seconds(CLOCK_MONOTONIC)"),
    _memory(
        "limited-by-time-of-day",
        "struct timeval begin, now; while (!flags[3]) { gettimeofday(&begin, NULL); do gettimeofday(&now, NULL);"
        " while (!flags[3] && (now.tv_sec - begin.tv_sec) * 1000000L + now.tv_usec - begin.tv_usec < 3000); }"
        " return 3;",
    ),
    _memory(
        "stamp-counter",
        "while (!flags[3]) { unsigned long begin = __builtin_ia32_rdtsc();"
        " while (!flags[3] && __builtin_ia32_rdtsc() - begin < 10000000) {} } return 3;",
    ),
    _memory(
        "simulated-time",
        "while (!flags[3]) { uint64_t begin = spin_time_ps();"
        " while (!flags[3] && spin_time_ps() - begin < 1000000) {} } return 3;",
    ),
]


def _event(name: str, body: str) -> Loop:
    """Return a loop whose thread waits for the put to its own entry."""
    return Loop(name, "EVENT", f"ptl_event_t event; ptl_ct_event_t count; (void)event; (void)count; {body}", result=1)


_TAKEN = "event.type == PTL_EVENT_PUT ? 1 : 2"
_EVENTS = [
    _event("eq-get", f"while (PtlEQGet(queues[id], &event) != PTL_OK) {{}} return {_TAKEN};"),
    _event("eq-get-usleep", f"while (PtlEQGet(queues[id], &event) != PTL_OK) usleep(2); return {_TAKEN};"),
    _event(
        "eq-get-nanosleep",
        f"while (PtlEQGet(queues[id], &event) != PTL_OK) nanosleep(&(struct timespec){{0, 900}}, NULL);"
        f" return {_TAKEN};",
    ),
    _event("eq-get-yield", f"while (PtlEQGet(queues[id], &event) != PTL_OK) sched_yield(); return {_TAKEN};"),
    _event(
        "eq-get-limited",
        "for (;;) { clock_t begin = clock(); while (clock() - begin < CLOCKS_PER_SEC / 500)"
        f" if (PtlEQGet(queues[id], &event) == PTL_OK) return {_TAKEN}; }}",
    ),
    _event(
        "eq-get-tries",
        f"for (;;) {{ for (int k = 0; k < 100; k++) if (PtlEQGet(queues[id], &event) == PTL_OK) return {_TAKEN};"
        " sched_yield(); }",
    ),
    _event(
        "eq-poll",
        f"unsigned which; for (;;) if (PtlEQPoll(&queues[id], 1, 0, &event, &which) == PTL_OK) return {_TAKEN};",
    ),
    _event(
        "eq-poll-millisecond",
        f"unsigned which; for (;;) if (PtlEQPoll(&queues[id], 1, 1, &event, &which) == PTL_OK) return {_TAKEN};",
    ),
    _event("eq-wait", f"CHECK(PtlEQWait(queues[id], &event)); return {_TAKEN};"),
    _event("ct-get", "do CHECK(PtlCTGet(counters[id], &count)); while (!count.success); return (long)count.success;"),
    _event(
        "ct-get-usleep",
        "for (;; usleep(3)) { CHECK(PtlCTGet(counters[id], &count)); if (count.success) return (long)count.success; }",
    ),
    _event(
        "ct-get-flag",
        "for (;;) { CHECK(PtlCTGet(counters[id], &count)); if (count.success && flags[id % PLACES]) return 1; }",
    ),
    _event(
        "ct-poll",
        "unsigned which; ptl_size_t least = 1;"
        " while (PtlCTPoll(&counters[id], &least, 1, 0, &count, &which) != PTL_OK) {} return (long)count.success;",
    ),
    _event("ct-wait", "CHECK(PtlCTWait(counters[id], 1, &count)); return (long)count.success;"),
]


def _message(name: str, body: str) -> Loop:
    """Return a loop whose thread waits for the message with its own number as tag."""
    start = "int value = -1, done = 0; MPI_Status status; (void)done; (void)status;"
    return Loop(name, "MESSAGE", f"{start} {body}", result=100, step=1, libraries=MPIS)


_POST = "MPI_Request request; CHECK(MPI_Irecv(&value, 1, MPI_INT, 1, id, MPI_COMM_WORLD, &request));"
_TWO = (
    "MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; int index = 0, count = 0, which[2];"
    " (void)index; (void)count; (void)which;"
    " CHECK(MPI_Irecv(&value, 1, MPI_INT, 1, id, MPI_COMM_WORLD, &requests[1]));"
)
_RECEIVE = "CHECK(MPI_Recv(&value, 1, MPI_INT, 1, id, MPI_COMM_WORLD, &status)); return value;"
_PROBE = "MPI_Iprobe(1, id, MPI_COMM_WORLD, &done, &status)"
_TEST = "MPI_Test(&request, &done, &status)"
_MESSAGES = [
    _message("recv", _RECEIVE),
    _message("test", f"{_POST} while (!done) CHECK({_TEST}); return value;"),
    _message("test-usleep", f"{_POST} for (CHECK({_TEST}); !done; usleep(5)) CHECK({_TEST}); return value;"),
    _message("test-yield", f"{_POST} for (CHECK({_TEST}); !done; sched_yield()) CHECK({_TEST}); return value;"),
    _message(
        "test-limited-by-wtime",
        f"{_POST} while (!done) {{ double begin = MPI_Wtime();"
        f" while (!done && MPI_Wtime() - begin < 0.002) CHECK({_TEST}); }}"
        " return value;",
    ),
    _message(
        "test-limited-by-clock",
        f"{_POST} while (!done) {{ clock_t begin = clock();"
        f" while (!done && clock() - begin < CLOCKS_PER_SEC / 500) CHECK({_TEST}); }} return value;",
    ),
    _message(
        "test-after-work",
        f"{_POST} while (!done) {{ for (volatile int k = 0; k < 5000; k++) {{}} CHECK({_TEST}); }} return value;",
    ),
    _message(
        "persistent",
        "MPI_Request request; CHECK(MPI_Recv_init(&value, 1, MPI_INT, 1, id, MPI_COMM_WORLD, &request));"
        f" CHECK(MPI_Start(&request)); while (!done) CHECK({_TEST}); CHECK(MPI_Request_free(&request)); return value;",
    ),
    _message(
        "test-all", f"{_TWO} while (!done) CHECK(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE)); return value;"
    ),
    _message(
        "test-any", f"{_TWO} while (!done) CHECK(MPI_Testany(2, requests, &index, &done, &status)); return value;"
    ),
    _message(
        "test-some",
        f"{_TWO} while (count < 1) CHECK(MPI_Testsome(2, requests, &count, which, MPI_STATUSES_IGNORE)); return value;",
    ),
    _message("wait-any", f"{_TWO} CHECK(MPI_Waitany(2, requests, &index, &status)); return value;"),
    _message(
        "wait-some", f"{_TWO} CHECK(MPI_Waitsome(2, requests, &count, which, MPI_STATUSES_IGNORE)); return value;"
    ),
    _message(
        "get-status",
        f"{_POST} while (!done) CHECK(MPI_Request_get_status(request, &done, &status));"
        " CHECK(MPI_Wait(&request, &status)); return value;",
    ),
    _message("iprobe", f"while (!done) CHECK({_PROBE}); {_RECEIVE}"),
    _message(
        "iprobe-nanosleep",
        f"for (CHECK({_PROBE}); !done; nanosleep(&(struct timespec){{0, 3000}}, NULL)) CHECK({_PROBE}); {_RECEIVE}",
    ),
    _message("iprobe-tries", f"for (int k = 0; !done && k < 50; k++) CHECK({_PROBE}); {_RECEIVE}"),
    _message("probe", f"CHECK(MPI_Probe(1, id, MPI_COMM_WORLD, &status)); {_RECEIVE}"),
    _message(
        "improbe",
        "MPI_Message message; while (!done) CHECK(MPI_Improbe(1, id, MPI_COMM_WORLD, &done, &message, &status));"
        " CHECK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status)); return value;",
    ),
    _message(
        "mprobe",
        "MPI_Message message; CHECK(MPI_Mprobe(1, id, MPI_COMM_WORLD, &message, &status));"
        " CHECK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status)); return value;",
    ),
]


def _window(name: str, body: str) -> Loop:
    return Loop(f"window-{name}", "WINDOW", body, libraries=MPIS)


_WINDOWS = [
    _window("flag", "while (!flags[3]) {} return 3;"),
    _window("cyclic", "int i = 0; while (!flags[i]) i = (i + 1) % PLACES; return i;"),
    _window("sync", "while (!flags[3]) CHECK(MPI_Win_sync(window)); return 3;"),
    _window("usleep", "while (!flags[3]) usleep(3); return 3;"),
    _window(
        "iprobe",
        "int any; while (!flags[3]) CHECK(MPI_Iprobe(1, 0, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE)); return 3;",
    ),
]


def _shared(
    name: str, body: str, declarations: str = "", prepare: str = "", release: str = "done = 1;", result: int = 1
) -> Loop:
    """Return a loop whose threads wait for the main thread of their rank, which communicates meanwhile."""
    declared = f"static volatile int done; {declarations}"
    use = "(void)done;"
    return Loop(name, "SHARED", f"{use} {body}", declared, prepare, release, result=result, libraries=EVERYWHERE)


_LOCK = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;"
_LOCKED_RELEASE = "pthread_mutex_lock(&lock); done = 1; pthread_mutex_unlock(&lock);"
_SIGNAL = (
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;"
)
_SIGNAL_RELEASE = "pthread_mutex_lock(&lock); done = 1; pthread_cond_broadcast(&changed); pthread_mutex_unlock(&lock);"
_DEADLINE = (
    "struct timespec until; clock_gettime(CLOCK_REALTIME, &until); until.tv_nsec += 500000;"
    " if (until.tv_nsec >= 1000000000) { until.tv_sec++; until.tv_nsec -= 1000000000; }"
)
_POSTS = "for (int i = 0; i < threads; i++) CHECK(sem_post(&tokens));"
_EVENT_RELEASE = "uint64_t n = (uint64_t)threads; CHECK(write(event, &n, sizeof n) != sizeof n);"
_PIPE_RELEASE = 'for (int i = 0; i < threads; i++) CHECK(write(ends[1], "x", 1) != 1);'
_SHARED = [
    _shared("done", "while (!done) {} return 1;"),
    _shared("done-pause", 'while (!done) __asm__ volatile("pause"); return 1;'),
    _shared("done-yield", "while (!done) sched_yield(); return 1;"),
    _shared("done-usleep", "while (!done) usleep(2); return 1;"),
    _shared("done-nanosleep", "while (!done) nanosleep(&(struct timespec){0, 700}, NULL); return 1;"),
    _shared(
        "done-clock", "clock_t begin = clock(); while (!done && clock() - begin < 60L * CLOCKS_PER_SEC) {} return done;"
    ),
    _shared(
        "lock-read-unlock",
        "for (;;) { pthread_mutex_lock(&lock); int d = done; pthread_mutex_unlock(&lock); if (d) return 1; }",
        _LOCK,
        release=_LOCKED_RELEASE,
    ),
    _shared(
        "trylock",
        "for (;;) if (pthread_mutex_trylock(&lock) == 0) {"
        " int d = done; pthread_mutex_unlock(&lock); if (d) return 1; }",
        _LOCK,
        release=_LOCKED_RELEASE,
    ),
    _shared(
        "rwlock",
        "for (;;) { pthread_rwlock_rdlock(&lock); int d = done; pthread_rwlock_unlock(&lock); if (d) return 1; }",
        "static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;",
        release="pthread_rwlock_wrlock(&lock); done = 1; pthread_rwlock_unlock(&lock);",
    ),
    _shared(
        "spinlock",
        "for (;;) { pthread_spin_lock(&lock); int d = done; pthread_spin_unlock(&lock); if (d) return 1; }",
        "static pthread_spinlock_t lock;",
        prepare="pthread_spin_init(&lock, 0);",
        release="pthread_spin_lock(&lock); done = 1; pthread_spin_unlock(&lock);",
    ),
    _shared(
        "test-and-set",
        "for (;;) { while (__sync_lock_test_and_set(&held, 1)) {} int d = done; __sync_lock_release(&held);"
        " if (d) return 1; }",
        "static volatile int held;",
    ),
    _shared(
        "ticket-lock",
        "for (;;) { unsigned mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);"
        " while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE) != mine) sched_yield(); int d = done;"
        " __atomic_store_n(&serving, mine + 1, __ATOMIC_RELEASE); if (d) return 1; }",
        "static unsigned next, serving;",
    ),
    _shared(
        "compare-and-swap-token",
        "for (;;) { int n = tokens; if (n > 0 && __sync_bool_compare_and_swap(&tokens, n, n - 1)) return 1; }",
        "static volatile int tokens;",
        release="tokens = threads;",
    ),
    _shared("atomic-add", "while (__sync_fetch_and_add(&done, 0) == 0) {} return 1;"),
    _shared("own-counter", "while (!done) counts[id]++; return 1;", "static volatile long counts[MOST];"),
    _shared(
        "condition-timed",
        f"pthread_mutex_lock(&lock); while (!done) {{ {_DEADLINE} pthread_cond_timedwait(&changed, &lock, &until); }}"
        " pthread_mutex_unlock(&lock); return 1;",
        _SIGNAL,
        release=_SIGNAL_RELEASE,
    ),
    _shared(
        "condition",
        "pthread_mutex_lock(&lock); while (!done) pthread_cond_wait(&changed, &lock);"
        " pthread_mutex_unlock(&lock); return 1;",
        _SIGNAL,
        release=_SIGNAL_RELEASE,
    ),
    _shared(
        "sem-trywait",
        "while (sem_trywait(&tokens) != 0) {} return 1;",
        "static sem_t tokens;",
        "CHECK(sem_init(&tokens, 0, 0));",
        _POSTS,
    ),
    _shared(
        "sem-timedwait",
        f"for (;;) {{ {_DEADLINE} if (sem_timedwait(&tokens, &until) == 0) return 1; }}",
        "static sem_t tokens;",
        "CHECK(sem_init(&tokens, 0, 0));",
        _POSTS,
    ),
    _shared(
        "sem-wait",
        "while (sem_wait(&tokens) != 0) {} return 1;",
        "static sem_t tokens;",
        "CHECK(sem_init(&tokens, 0, 0));",
        _POSTS,
    ),
    _shared(
        "eventfd",
        "uint64_t n = 0; while (read(event, &n, sizeof n) != sizeof n) {} return (long)n;",
        "static int event;",
        "event = eventfd(0, EFD_SEMAPHORE);",
        _EVENT_RELEASE,
    ),
    _shared(
        "eventfd-nonblocking",
        "uint64_t n = 0; while (read(event, &n, sizeof n) != sizeof n) {} return (long)n;",
        "static int event;",
        "event = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);",
        _EVENT_RELEASE,
    ),
    _shared(
        "pipe",
        "char c; while (read(ends[0], &c, 1) != 1) {} return c == 'x';",
        "static int ends[2];",
        "CHECK(pipe(ends));",
        _PIPE_RELEASE,
    ),
    _shared(
        "pipe-poll",
        "struct pollfd one = {ends[0], POLLIN, 0}; char c; while (poll(&one, 1, 1) != 1) {}"
        " CHECK(read(ends[0], &c, 1) != 1);"
        " return c == 'x';",
        "static int ends[2];",
        "CHECK(pipe(ends));",
        _PIPE_RELEASE,
    ),
    _shared(
        "barrier",
        "pthread_barrier_wait(&all); return 1;",
        "static pthread_barrier_t all;",
        "CHECK(pthread_barrier_init(&all, NULL, (unsigned)threads + 1));",
        "pthread_barrier_wait(&all);",
    ),
    _shared(
        "counting-barrier",
        "arrive(); return 1;",
        _LOCK + " static volatile int arrived; static void arrive(void) { pthread_mutex_lock(&lock); arrived++;"
        " pthread_mutex_unlock(&lock); for (;;) { pthread_mutex_lock(&lock); int n = arrived;"
        " pthread_mutex_unlock(&lock);"
        " if (n == threads + 1) return; } }",
        release="arrive();",
    ),
]

LOOPS = (*_MEMORY, *_EVENTS, *_MESSAGES, *_WINDOWS, *_SHARED)
"""All ways to wait."""
