#include <stdint.h>

uint32_t mix(uint32_t x);

uint32_t mix(uint32_t x) { return x * 2654435761u; }
