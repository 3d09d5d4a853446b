/* abort() and a failed assert() end the handler with the return code FAIL. */
#include <spin.h>

_Noreturn void abort(void);

_Noreturn void abort(void) {
    for (;;)
        spin_command(SPIN_CMD_ABORT, 0);
}

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function);

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
    (void)expression, (void)file, (void)line, (void)function;
    abort();
}
