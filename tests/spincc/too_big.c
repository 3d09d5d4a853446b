#include <spin.h>

static const uint32_t table[10000] = {1, 2, 3};

__handler int big(const ptl_header_t h, void *state) { return (int)((const volatile uint32_t *)table)[h.offset]; }

int main(void) { return big == NULL; }
