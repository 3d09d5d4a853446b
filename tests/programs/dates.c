/* A program without Portals: `dates` prints what clocks say, twice, with a sleep of a second between, and its child's date;
 * `dates compute` computes for more than a second of CPU time. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void print_clocks(void) {
    struct timespec wall, monotonic, raw;
    struct timeval day;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
    gettimeofday(&day, NULL);
    printf("%lld %lld %lld %lld %lld\n", (long long)wall.tv_sec, (long long)monotonic.tv_sec, (long long)raw.tv_sec,
           (long long)day.tv_sec, (long long)time(NULL));
    fflush(stdout);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        volatile uint64_t last;
        uint64_t number = 1;
        for (uint64_t i = 0; i < 1500000000; i++)
            number = number * 6364136223846793005u + i;
        last = number;
        return last == 0;
    }
    print_clocks();
    sleep(1);
    print_clocks();
    return system("date +%Y") != 0;
}
