/* Formats of spin_printf that fit their arguments on the card, or do not. */
#include <spin.h>
#include <stdio.h>

__handler int prints(const ptl_payload_t p, void *state) {
    spin_printf("%llu at %p\n", p.length, state);
    if (spin_printf("%s: %u\n", "offset", (unsigned)p.offset) != 0)
        return FAIL;
#ifdef WRONG
    spin_printf("%d\n", p.length);        /* line 10 */
    return spin_printf("%s %s\n", "one"); /* line 11 */
#endif
    return SUCCESS;
}

int main(void) {
    printf("%lu\n", (uint64_t)(uintptr_t)prints); /* right on the host, wrong on the card */
    return 0;
}
