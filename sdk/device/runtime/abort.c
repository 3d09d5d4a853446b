/* SPDX-License-Identifier: Apache-2.0 */
/* abort() and a failed assert() end the handler with the return code FAIL. */
#include <spin.h>

_Noreturn void abort(void);

_Noreturn void abort(void) {
    for (;;)
        spin_command(SPIN_CMD_ABORT, 0);
}

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function);

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
    struct spin_assert_cmd cmd;
    cmd.expression = spin_address(expression);
    cmd.file = spin_address(file);
    cmd.function = spin_address(function);
    cmd.line = (uint32_t)line;
    for (;;)
        spin_command(SPIN_CMD_ASSERT, spin_address(&cmd));
}
