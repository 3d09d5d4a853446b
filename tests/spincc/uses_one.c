#include <spin.h>

const void *one(void);
uint32_t mix(uint32_t x);

static uint32_t calls = 7;
static uint32_t zero[4];

__handler int mixing(const ptl_header_t h, void *state) {
    uint32_t last = zero[calls % 4];
    zero[calls++ % 4] = mix((uint32_t)h.length);
    return last == 1 ? DROP : PROCEED;
}

int main(void) { return one() == (const void *)mixing; }
