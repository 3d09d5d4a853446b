/* Time, as a program sees and spends it: `clocks CASE`. */
#define _GNU_SOURCE
#include "common.h"
#include <sys/time.h>
#include <time.h>

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    EXPECT(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    if (strcmp(name, "compute") == 0) {
        EXPECT(spin_time_ps() == 0);
        spin_host_compute(7);
        EXPECT(spin_time_ps() == 7000);
        spin_host_memory(1000, 24); /* DRAM latency; 1000 bytes, of which 10 lines of 64 come in that time */
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
    } else {
        return 2;
    }
    return finish();
}
