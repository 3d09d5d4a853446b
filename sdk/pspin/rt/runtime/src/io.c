/* SPDX-License-Identifier: Apache-2.0 */
/* Output: characters go to the simulation, which prints whole lines of each HPU. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int putchar(int character);
int puts(const char *text);
int vprintf(const char *restrict format, va_list arguments);
int printf(const char *restrict format, ...);

#ifdef SPIN_NATIVE
void native_put(int character);

int putchar(int character) {
    native_put(character);
    return (uint8_t)character;
}
#else
int putchar(int character) {
    *(volatile uint32_t *)(uintptr_t)0x1A104000 = (uint8_t)character;
    return (uint8_t)character;
}
#endif

static int pad(int count, char with) {
    for (int i = 0; i < count; i++)
        putchar(with);
    return count > 0 ? count : 0;
}

int puts(const char *text) {
    while (*text)
        putchar(*text++);
    putchar('\n');
    return 0;
}

/* A conversion of a format (C11 7.21.6.1). */
struct conversion {
    bool left, zero, plus, space, alternate;
    int width, precision; /* precision -1: none was given */
};

/* Prints `length` characters after a sign or prefix, with the padding of the conversion. */
static int print_field(const struct conversion *c, const char *prefix, const char *text, int length, int zeros) {
    int prefix_length = 0;
    while (prefix[prefix_length])
        prefix_length++;
    int blanks = c->width - prefix_length - zeros - length;
    if (c->zero && !c->left && c->precision < 0 && blanks > 0) {
        zeros += blanks;
        blanks = 0;
    }
    int count = c->left ? 0 : pad(blanks, ' ');
    for (int i = 0; i < prefix_length; i++)
        putchar(prefix[i]);
    count += prefix_length + pad(zeros, '0');
    for (int i = 0; i < length; i++)
        putchar(text[i]);
    return count + length + (c->left ? pad(blanks, ' ') : 0);
}

static int print_number(const struct conversion *c, uint64_t value, const char *prefix, unsigned base, bool upper) {
    char digits[22];
    int length = 0;
    for (; value; value /= base)
        digits[sizeof(digits) - ++length] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    int least = c->precision < 0 ? 1 : c->precision;
    if (c->alternate && base == 8 && least <= length)
        least = length + 1;
    int zeros = least > length ? least - length : 0;
    return print_field(c, prefix, digits + sizeof(digits) - length, length, zeros);
}

static int print_text(struct conversion *c, const char *text) {
    if (!text)
        text = "(null)";
    int length = 0;
    while (length != c->precision && text[length])
        length++;
    c->zero = false;
    return print_field(c, "", text, length, 0);
}

static int number_at(const char *restrict *format) {
    int number = 0;
    for (; **format >= '0' && **format <= '9'; (*format)++)
        number = number * 10 + (**format - '0');
    return number;
}

int vprintf(const char *restrict format, va_list arguments) {
    int count = 0;
    while (*format) {
        if (*format != '%') {
            putchar(*format++);
            count++;
            continue;
        }
        struct conversion c = {.precision = -1};
        for (format++;; format++) {
            if (*format == '-')
                c.left = true;
            else if (*format == '0')
                c.zero = true;
            else if (*format == '+')
                c.plus = true;
            else if (*format == ' ')
                c.space = true;
            else if (*format == '#')
                c.alternate = true;
            else
                break;
        }
        if (*format == '*') {
            format++;
            c.width = va_arg(arguments, int);
            if (c.width < 0) {
                c.left = true;
                c.width = -c.width;
            }
        } else {
            c.width = number_at(&format);
        }
        if (*format == '.') {
            format++;
            if (*format == '*') {
                format++;
                c.precision = va_arg(arguments, int);
            } else {
                c.precision = number_at(&format);
            }
        }
        /* Words and addresses have the size of int; only ll and j are wider. */
        int bits = 32;
        for (;; format++) {
            if (*format == 'h')
                bits /= 2;
            else if (*format == 'j' || (format[0] == 'l' && format[1] == 'l'))
                bits = 64;
            else if (*format != 'l' && *format != 'z' && *format != 't')
                break;
        }
        char kind = *format;
        if (kind)
            format++;
        bool is_signed = kind == 'd' || kind == 'i';
        uint64_t value = 0;
        if (is_signed || kind == 'u' || kind == 'x' || kind == 'X' || kind == 'o') {
            value = bits == 64 ? va_arg(arguments, uint64_t) : va_arg(arguments, uint32_t);
            value <<= 64 - bits;
            value = is_signed ? (uint64_t)((int64_t)value >> (64 - bits)) : value >> (64 - bits);
        }
        const char *sign = c.plus ? "+" : c.space ? " " : "";
        switch (kind) {
        case 'd':
        case 'i':
            if ((int64_t)value < 0)
                count += print_number(&c, -value, "-", 10, false);
            else
                count += print_number(&c, value, sign, 10, false);
            break;
        case 'u': count += print_number(&c, value, "", 10, false); break;
        case 'o': count += print_number(&c, value, "", 8, false); break;
        case 'x':
        case 'X': {
            const char *prefix = kind == 'x' ? "0x" : "0X";
            count += print_number(&c, value, c.alternate && value ? prefix : "", 16, kind == 'X');
            break;
        }
        case 'p': count += print_number(&c, (uintptr_t)va_arg(arguments, void *), "0x", 16, false); break;
        case 'c': {
            char character = (char)va_arg(arguments, int);
            c.precision = -1;
            c.zero = false;
            count += print_field(&c, "", &character, 1, 0);
            break;
        }
        case 's': count += print_text(&c, va_arg(arguments, const char *)); break;
        case 0: break;
        case '%':
            putchar('%');
            count++;
            break;
        default:
            putchar('%');
            putchar(kind);
            count += 2;
        }
    }
    return count;
}

int printf(const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = vprintf(format, arguments);
    va_end(arguments);
    return count;
}
