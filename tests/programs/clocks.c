/* Time, as a program sees and spends it: `clocks CASE [TICKS A SECOND]`. */
#define _GNU_SOURCE
#include "../portals/harness.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spin.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    EXPECT(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static volatile int *volatile nowhere = (volatile int *)16;
static sigjmp_buf after_fault;
static int faults;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    EXPECT(signal == SIGSEGV && info->si_addr == (void *)nowhere);
    faults++;
    siglongjmp(after_fault, 1);
}

static uint64_t ticks_of_a_second(void) {
    unsigned int processor;
    uint64_t start = __rdtsc(), precise = __rdtscp(&processor);
    EXPECT(start == precise);
    spin_host_compute(1000000000);
    EXPECT(__rdtscp(&processor) - precise == __rdtsc() - start);
    return __rdtsc() - start;
}

/* Thread with every signal blocked, like those of communication libraries. */
static void *ticks_without_signals(void *result) {
    sigset_t all;
    sigfillset(&all);
    EXPECT(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    *(uint64_t *)result = ticks_of_a_second();
    return NULL;
}

static void counter(uint64_t hz) {
    EXPECT(__rdtsc() == 0);
    EXPECT(ticks_of_a_second() == hz);
    uint64_t of_thread = 0;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, ticks_without_signals, &of_thread) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(of_thread == hz);
    /* The program's own handler gets the program's faults, and sigaction returns it as if it were installed. */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    EXPECT(sigaction(SIGSEGV, &action, &before) == 0 && before.sa_handler == SIG_DFL);
    if (!sigsetjmp(after_fault, 1))
        *nowhere = 1;
    EXPECT(faults == 1 && ticks_of_a_second() == hz);
    EXPECT(signal(SIGSEGV, SIG_DFL) == (void (*)(int))(void *)on_fault);
    /* The kernel's own reader keeps the real counter. */
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_NOW);
    int (*real_time)(clockid_t, struct timespec *) =
        vdso ? (int (*)(clockid_t, struct timespec *))dlsym(vdso, "__vdso_clock_gettime") : NULL;
    struct timespec real, simulated;
    EXPECT(real_time && real_time(CLOCK_REALTIME, &real) == 0 && real.tv_sec > 1700000000);
    EXPECT(timespec_get(&simulated, TIME_UTC) == TIME_UTC && simulated.tv_sec == 1510444800 + 3);
    /* An unhandled fault ends a process as usual; a child that is not a rank has its own program's counter. */
    pid_t child = fork();
    if (child == 0) {
        EXPECT(__rdtsc() != __rdtsc() && system("true") == 0 && __rdtsc() != __rdtsc());
        *nowhere = 1;
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT(system("true") == 0 && ticks_of_a_second() == hz);
    child = vfork();
    if (child == 0)
        execlp("true", "true", NULL);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(ticks_of_a_second() == hz);
}

/* Each sleep takes exactly its simulated time, and a message that arrives meanwhile is there after it. */
static void sleeps(void) {
    static volatile uint64_t arrived;
    ptl_pt_index_t index;
    struct timespec second = {.tv_sec = 1}, deadline;
    struct timeval tenth = {.tv_usec = 100000};
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &index));
    if (spin_rank() == 0) {
        ptl_me_t me = plain_entry((void *)&arrived, sizeof arrived, 0, PTL_ME_OP_PUT);
        ptl_handle_me_t handle;
        CHECK(PtlMEAppend(ni, index, &me, PTL_PRIORITY_LIST, NULL, &handle));
    }
    CHECK(spin_barrier());
    if (spin_rank() == 1) {
        static uint64_t value = 42;
        spin_host_compute(1000000);
        CHECK(PtlPut(descriptor(&value, sizeof value, 0, PTL_EQ_NONE, PTL_CT_NONE), 0, sizeof value, PTL_NO_ACK_REQ,
                     to_rank(0), index, 0, 0, NULL, 0));
    } else {
        uint64_t start = spin_time_ps(), slept = 0;
        EXPECT(arrived == 0 && nanosleep(&second, NULL) == 0);
        EXPECT(arrived == 42 && spin_time_ps() - start == (slept += 1000000000000));
        EXPECT(usleep(3) == 0 && spin_time_ps() - start == (slept += 3000000));
        EXPECT(sleep(2) == 0 && spin_time_ps() - start == (slept += 2000000000000));
        EXPECT(poll(NULL, 0, 5) == 0 && spin_time_ps() - start == (slept += 5000000000));
        EXPECT(select(0, NULL, NULL, NULL, &tenth) == 0 && spin_time_ps() - start == (slept += 100000000000));
        EXPECT(thrd_sleep(&second, NULL) == 0 && spin_time_ps() - start == (slept += 1000000000000));
        /* A sleep until a clock's time does not end before that. */
        EXPECT(clock_gettime(CLOCK_MONOTONIC, &deadline) == 0);
        deadline.tv_nsec += 10000000;
        if (deadline.tv_nsec >= 1000000000)
            deadline = (struct timespec){.tv_sec = deadline.tv_sec + 1, .tv_nsec = deadline.tv_nsec - 1000000000};
        EXPECT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == 0);
        EXPECT(nanoseconds(CLOCK_MONOTONIC) >= (uint64_t)deadline.tv_sec * 1000000000 + (uint64_t)deadline.tv_nsec);
        EXPECT(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = -1}, NULL) == EINVAL);
        /* A child is no rank: it sleeps in real time. */
        pid_t child = fork();
        if (child == 0)
            _exit(usleep(1) == 0 ? 3 : 4);
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    CHECK(spin_barrier());
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    if (strcmp(name, "compute") == 0) {
        EXPECT(spin_time_ps() == 0);
        spin_host_compute(7);
        EXPECT(spin_time_ps() == 7000);
        spin_host_memory(1000, 24); /* DRAM latency, during which 10 lines of 64 of the 1000 bytes arrive */
        EXPECT(spin_time_ps() == 7000 + 51000 + 79688);
        spin_host_memory(10, 1000); /* DRAM latency and 6.7 ps a byte */
        EXPECT(spin_time_ps() == 7000 + 51000 + 79688 + 51000 + 6767);
    } else if (strcmp(name, "spin") == 0) {
        uint64_t start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start < 5000000) {
        }
    } else if (strcmp(name, "simulated") == 0) {
        struct timeval before, after;
        uint64_t start = nanoseconds(CLOCK_MONOTONIC), real = nanoseconds(CLOCK_REALTIME);
        EXPECT(gettimeofday(&before, NULL) == 0);
        spin_host_compute(3000000000);
        EXPECT(nanoseconds(CLOCK_MONOTONIC) - start == 3000000000);
        EXPECT(nanoseconds(CLOCK_REALTIME) - real == 3000000000);
        EXPECT(gettimeofday(&after, NULL) == 0);
        EXPECT(after.tv_sec - before.tv_sec == 3 && after.tv_usec == before.tv_usec);
    } else if (strcmp(name, "sleeps") == 0) {
        sleeps();
    } else if (strcmp(name, "sleepy") == 0) {
        for (int i = 0; i < 220000; i++)
            usleep(100);
    } else if (strcmp(name, "counter") == 0) {
        counter(strtoull(argv[2], NULL, 10));
    } else {
        return 2;
    }
    return close_interface();
}
