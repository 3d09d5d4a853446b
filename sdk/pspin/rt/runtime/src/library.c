/* SPDX-License-Identifier: Apache-2.0 */
/* C library functions besides those of sdk/device/runtime/memory.c: strings, and the ends of programs. */
#include <stddef.h>
#include <stdint.h>

size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t n);
_Noreturn void abort(void);
_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function);
int *__errno_location(void);
int printf(const char *restrict format, ...);

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

int strncmp(const char *left, const char *right, size_t n) {
    for (; n > 0; left++, right++, n--) {
        int difference = (unsigned char)*left - (unsigned char)*right;
        if (difference || !*left)
            return difference;
    }
    return 0;
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }

/* Executes an illegal instruction: the task fails, and the HPU continues with the next. */
_Noreturn void abort(void) { __builtin_trap(); }

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
    printf("%s:%d: %s: the assertion %s failed\n", file, line, function, expression);
    abort();
}

/* Shared by all HPUs, as in the published runtime. */
int *__errno_location(void) {
    static int number;
    return &number;
}
