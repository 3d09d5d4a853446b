/* Compiles for the host alone: glibc has this header, the card's C library lacks it. */
#include <execinfo.h>
#include <stdint.h>

uint32_t mix(uint32_t x);

uint32_t mix(uint32_t x) {
    void *frames[1];
    return x + (uint32_t)backtrace(frames, 1);
}
