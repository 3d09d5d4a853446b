/* The device runtime's memory functions against the C library's, on every alignment and every short length. */
#include <stdio.h>
#include <string.h>

#define memcpy spin_memcpy
#define memmove spin_memmove
#define memset spin_memset
#define memcmp spin_memcmp
#include "../../sdk/device/runtime/memory.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp

enum { SPAN = 160, LONGEST = 70 };

static unsigned char ours[SPAN] __attribute__((aligned(8))), theirs[SPAN] __attribute__((aligned(8)));
static unsigned char from[SPAN] __attribute__((aligned(8)));

static void fill(void) {
    for (int i = 0; i < SPAN; i++) {
        ours[i] = theirs[i] = (unsigned char)(i * 7 + 1);
        from[i] = (unsigned char)(i * 13 + 5);
    }
}

static int same(void *result, size_t to, const char *name, size_t other, size_t n) {
    if (result == ours + to && memcmp(ours, theirs, SPAN) == 0)
        return 1;
    printf("%s: to %zu, other %zu, %zu bytes\n", name, to, other, n);
    return 0;
}

static int sign(int x) { return (x > 0) - (x < 0); }

int main(void) {
    int checks = 0;
    for (size_t n = 0; n <= LONGEST; n++)
        for (size_t to = 0; to < 8; to++) {
            fill();
            memset(theirs + to, (int)(n + 0x1f3), n);
            checks += same(spin_memset(ours + to, (int)(n + 0x1f3), n), to, "memset", 0, n);
            for (size_t other = 0; other < 8; other++) {
                fill();
                memcpy(theirs + to, from + other, n);
                checks += same(spin_memcpy(ours + to, from + other, n), to, "memcpy", other, n);
                /* Overlapping from both sides, at every distance below 8. */
                fill();
                memmove(theirs + to, theirs + other, n);
                checks += same(spin_memmove(ours + to, ours + other, n), to, "memmove", other, n);
                fill();
                memcpy(ours + to, from + other, n);
                int equal = spin_memcmp(ours + to, from + other, n) == 0;
                if (n > 0) {
                    ours[to + n - 1] ^= 0x80;
                    equal &= sign(spin_memcmp(ours + to, from + other, n)) == sign(memcmp(ours + to, from + other, n));
                }
                checks += equal;
            }
        }
    printf("%d\n", checks);
    return checks != (LONGEST + 1) * 8 * (1 + 8 * 3);
}
