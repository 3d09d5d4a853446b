/* Handlers with undefined behaviour visible to the compiler, and a function that falls through into the next. */
#include <spin.h>

#ifdef RUNS_ON
void onward(void);
#ifdef __SPIN_DEVICE__
__asm__(".section .text.onward,\"ax\",@progbits\n"
        ".globl onward\n"
        ".type onward, @function\n"
        "onward: addi a0, a0, 1\n"
        ".size onward, . - onward\n"
        ".text");
#else
void onward(void) {}
#endif
__handler int payload(const ptl_payload_t p, void *state) {
    (void)p, (void)state;
    onward();
    return SUCCESS;
}
#else
__handler int payload(const ptl_payload_t p, void *state) {
    (void)p, (void)state;
    __builtin_unreachable();
}
#endif

int main(void) { return payload == 0; }
