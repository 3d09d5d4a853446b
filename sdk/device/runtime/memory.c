/* SPDX-License-Identifier: Apache-2.0 */
/* Memory functions that compilers expect everywhere (C11 7.24). They access words where possible, because HPU memory
 * takes the same time for a word as for a byte. They are compiled without builtins, so that the loops do not become
 * calls to themselves. Words are little-endian on every HPU kind. */
#include <stddef.h>
#include <stdint.h>

typedef uint32_t __attribute__((may_alias)) word_t;
enum { WORD = sizeof(word_t) };

static inline unsigned int phase(const void *p) { return (uintptr_t)p % WORD; }

/* Copies in ascending order and reads each block before it writes it, so the destination may begin below the source and
 * overlap it. */
void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    uint8_t *d = to;
    const uint8_t *s = from;
    if (n >= 4 * WORD) {
        while (phase(d)) {
            *d++ = *s++;
            n--;
        }
        word_t *dw = (word_t *)d;
        unsigned int shift = 8 * phase(s);
        if (shift == 0) {
            const word_t *sw = (const word_t *)s;
            for (; n >= 4 * WORD; n -= 4 * WORD, dw += 4, sw += 4) {
                word_t a = sw[0], b = sw[1], c = sw[2], e = sw[3];
                dw[0] = a, dw[1] = b, dw[2] = c, dw[3] = e;
            }
            for (; n >= WORD; n -= WORD)
                *dw++ = *sw++;
            s = (const uint8_t *)sw;
        } else {
            /* Each destination word consists of parts of two aligned source words. The bytes of `low` before `s` are
             * never used, and the last word read contains at least one byte of the source, so every read stays within
             * the words of the source. */
            const word_t *sw = (const word_t *)(s - phase(s));
            word_t low = *sw++;
            for (; n >= WORD; n -= WORD, s += WORD) {
                word_t high = *sw++;
                *dw++ = low >> shift | high << (8 * WORD - shift);
                low = high;
            }
        }
        d = (uint8_t *)dw;
    }
    while (n--)
        *d++ = *s++;
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    uint8_t *d = to;
    const uint8_t *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= n)
        return memcpy(to, from, n);
    d += n;
    s += n;
    if (phase(d) == phase(s) && n >= 2 * WORD) {
        while (phase(d)) {
            *--d = *--s;
            n--;
        }
        word_t *dw = (word_t *)d;
        const word_t *sw = (const word_t *)s;
        for (; n >= WORD; n -= WORD)
            *--dw = *--sw;
        d = (uint8_t *)dw;
        s = (const uint8_t *)sw;
    }
    while (n--)
        *--d = *--s;
    return to;
}

void *memset(void *to, int value, size_t n) {
    uint8_t *d = to;
    if (n >= 4 * WORD) {
        while (phase(d)) {
            *d++ = (uint8_t)value;
            n--;
        }
        word_t *dw = (word_t *)d;
        word_t w = (uint8_t)value * 0x01010101u;
        for (; n >= 4 * WORD; n -= 4 * WORD, dw += 4)
            dw[0] = w, dw[1] = w, dw[2] = w, dw[3] = w;
        for (; n >= WORD; n -= WORD)
            *dw++ = w;
        d = (uint8_t *)dw;
    }
    while (n--)
        *d++ = (uint8_t)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t n) {
    const uint8_t *a = left, *b = right;
    if (phase(a) == phase(b)) {
        while (n && phase(a)) {
            if (*a != *b)
                return *a - *b;
            a++, b++, n--;
        }
        while (n >= WORD && *(const word_t *)a == *(const word_t *)b)
            a += WORD, b += WORD, n -= WORD;
    }
    for (; n; a++, b++, n--)
        if (*a != *b)
            return *a - *b;
    return 0;
}
