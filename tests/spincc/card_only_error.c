#include <spin.h>

__handler int h(const ptl_header_t h, void *state) {
#ifdef __SPIN_DEVICE__
    return missing;
#endif
    return PROCEED;
}

int main(void) { return h == NULL; }
