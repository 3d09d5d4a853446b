/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that writes random bytes into the memory shared with spinrun: `hostile SEED`. The run must end, and spinrun
 * must not crash. */
#define _GNU_SOURCE
#include "../portals/harness.h"
#include <fcntl.h>
#include <spin.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long long state;

static unsigned next(void) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33);
}

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(spin_barrier());
    state = 2ull * strtoull(argc > 1 ? argv[1] : "1", NULL, 10) + 1;
    const char *pid = getenv("SPIN_SIM_PID"), *fd = getenv("SPIN_SIM_FD");
    if (spin_rank() == 0 && pid && fd) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, fd);
        int file = open(path, O_RDWR);
        struct stat stat;
        if (file < 0 || fstat(file, &stat))
            return 3;
        if (next() % 4 == 0 && ftruncate(file, next() % (unsigned)stat.st_size) == 0)
            puts("the file has shrunk");
        unsigned char *all = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (all == MAP_FAILED)
            return 4;
        /* Sparsely, so that some words stay what they were. */
        for (unsigned writes = next() % 64; writes > 0; writes--) {
            size_t at = next() % ((size_t)stat.st_size - 4) & ~(size_t)3;
            if (at > 8192 && next() % 4)
                at %= 8192;
            *(volatile unsigned *)(all + at) = next() % 3 ? next() % 128 : next();
        }
    }
    ptl_handle_ct_t ct;
    for (int i = 0; i < 4; i++)
        (void)PtlCTAlloc(ni, &ct);
    spin_host_compute(1000);
    return 0;
}
