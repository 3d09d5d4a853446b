/* SPDX-License-Identifier: Apache-2.0 */
/* spin_printf() passes the format and the address of the arguments to the card; the simulator formats them. */
#include <spin.h>
#include <stdarg.h>

#undef spin_printf

_Static_assert(sizeof(va_list) == sizeof(uint32_t), "the arguments of a variadic function are an area of memory");

int spin_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct spin_print_cmd cmd;
    cmd.format = spin_address(format);
    cmd.arguments = spin_address(arguments);
    int result = spin_command(SPIN_CMD_PRINT, spin_address(&cmd));
    va_end(arguments);
    return result;
}
