#include <spin.h>

const void *one(void);

__handler static int same(const ptl_header_t h, void *state) { return DROP; }

int main(void) { return one() == (const void *)same; }
