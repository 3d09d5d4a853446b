#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

__handler int direct(const ptl_header_t h, void *state) {
    printf("%p\n", state);
    return PROCEED;
}

static __attribute__((noinline)) int helper(void *state) { return fputs(state, stderr); }

__handler static int indirect(const ptl_payload_t p, void *state) { return helper(state) ? FAIL : SUCCESS; }

int main(void) { return direct == NULL || indirect == NULL || abs(system("true")); }
