/* A handler that calls a function with a frame larger than the stack; main's frame does not concern the card. */
#include <spin.h>

static __attribute__((noinline)) int sums(const uint8_t *from) {
    volatile uint8_t copy[9000];
    for (unsigned i = 0; i < sizeof copy; i++)
        copy[i] = from[i];
    return copy[1] + copy[2];
}

__handler int wide(const ptl_payload_t p, void *state) {
    *(int *)state = sums(p.base);
    return SUCCESS;
}

int main(void) {
    volatile uint8_t large[100000];
    large[0] = wide == 0;
    return large[0];
}
