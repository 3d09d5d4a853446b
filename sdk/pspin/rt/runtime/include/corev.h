/* SPDX-License-Identifier: Apache-2.0 */
/* The CORE-V extensions of CV32E40P in C.
 *
 * The pinned compiler (zig in requirements.txt) selects automatically, with -O2 and for the kind rv32imac-corev: loads
 * and stores with post-increment (xcvmem), minimum, maximum, absolute value and sign extension (xcvalu), branches on
 * small constants (xcvbi), counting and rotating bits (xcvbitmanip). It never selects multiply-accumulate (xcvmac),
 * SIMD (xcvsimd), bit fields and clipping, and does not know hardware loops (xcvhwlp): this file provides those.
 *
 * Each function does the same on cores without the extension, with ordinary instructions. Lanes are half-words (_h) or
 * bytes (_b) of a word; the lowest lane is the least significant one. Nothing here waits, allocates or fails. */
#ifndef SPINKIT_COREV_H
#define SPINKIT_COREV_H

#include <stdint.h>

#if defined(__riscv_xcvmac) && defined(__riscv_xcvsimd) && defined(__riscv_xcvbitmanip) && defined(__riscv_xcvalu)
#define COREV 1
#else
#define COREV 0
#endif

#define COREV_INLINE static inline __attribute__((always_inline, unused))

/* Lane `index` of `bits` bits, with its sign or without. */
COREV_INLINE int32_t corev_lane(uint32_t value, uint32_t index, uint32_t bits) {
    return (int32_t)(value >> (index * bits) << (32 - bits)) >> (32 - bits);
}

COREV_INLINE uint32_t corev_lane_u(uint32_t value, uint32_t index, uint32_t bits) {
    return (value >> (index * bits)) & ((1U << bits) - 1);
}

/* The instruction, or the C expression `plain` for lane `i`, whose operands are x and y, for all lanes. */
#if COREV
#define COREV_LANES(name, instruction, bits, type, lane, plain)                                                        \
    COREV_INLINE uint32_t name(uint32_t a, uint32_t b) {                                                               \
        uint32_t d;                                                                                                    \
        __asm__(instruction " %0, %1, %2" : "=r"(d) : "r"(a), "r"(b));                                                 \
        return d;                                                                                                      \
    }
#else
#define COREV_LANES(name, instruction, bits, type, lane, plain)                                                        \
    COREV_INLINE uint32_t name(uint32_t a, uint32_t b) {                                                               \
        uint32_t d = 0;                                                                                                \
        for (uint32_t i = 0; i < 32 / (bits); i++) {                                                                   \
            type x = lane(a, i, bits), y = lane(b, i, bits);                                                           \
            d |= ((uint32_t)(plain) & ((1U << (bits)) - 1)) << (i * (bits));                                           \
        }                                                                                                              \
        return d;                                                                                                      \
    }
#endif

/* Sums, differences, averages, minima, maxima, shifts (by the low bits of each lane of b) and comparisons (all bits of
 * a lane are 1 if the relation holds) of lanes. */
#define COREV_BOTH(name, type, lane, plain)                                                                            \
    COREV_LANES(cv_##name##_h, "cv." #name ".h", 16, type, lane, plain)                                                \
    COREV_LANES(cv_##name##_b, "cv." #name ".b", 8, type, lane, plain)

COREV_BOTH(add, int32_t, corev_lane, x + y)
COREV_BOTH(sub, int32_t, corev_lane, x - y)
COREV_BOTH(min, int32_t, corev_lane, x < y ? x : y)
COREV_BOTH(max, int32_t, corev_lane, x > y ? x : y)
COREV_BOTH(minu, uint32_t, corev_lane_u, x < y ? x : y)
COREV_BOTH(maxu, uint32_t, corev_lane_u, x > y ? x : y)
COREV_BOTH(cmpeq, int32_t, corev_lane, x == y ? -1 : 0)
COREV_BOTH(cmpgt, int32_t, corev_lane, x > y ? -1 : 0)
COREV_BOTH(cmpgtu, uint32_t, corev_lane_u, x > y ? -1 : 0)
COREV_LANES(cv_srl_h, "cv.srl.h", 16, uint32_t, corev_lane_u, x >> (y & 15))
COREV_LANES(cv_srl_b, "cv.srl.b", 8, uint32_t, corev_lane_u, x >> (y & 7))
COREV_LANES(cv_sra_h, "cv.sra.h", 16, int32_t, corev_lane, x >> (y & 15))
COREV_LANES(cv_sra_b, "cv.sra.b", 8, int32_t, corev_lane, x >> (y & 7))
COREV_LANES(cv_sll_h, "cv.sll.h", 16, uint32_t, corev_lane_u, x << (y & 15))
COREV_LANES(cv_sll_b, "cv.sll.b", 8, uint32_t, corev_lane_u, x << (y & 7))
COREV_LANES(cv_shuffle_h, "cv.shuffle.h", 16, uint32_t, corev_lane_u, ((void)x, corev_lane_u(a, y & 1, 16)))
COREV_LANES(cv_shuffle_b, "cv.shuffle.b", 8, uint32_t, corev_lane_u, ((void)x, corev_lane_u(a, y & 3, 8)))

/* Instructions that add to the old value of their result: `plain` is the C statement that changes d. */
#if COREV
#define COREV_ADDS(name, instruction, plain)                                                                           \
    COREV_INLINE uint32_t name(uint32_t d, uint32_t a, uint32_t b) {                                                   \
        __asm__(instruction " %0, %1, %2" : "+r"(d) : "r"(a), "r"(b));                                                 \
        return d;                                                                                                      \
    }
#else
#define COREV_ADDS(name, instruction, plain)                                                                           \
    COREV_INLINE uint32_t name(uint32_t d, uint32_t a, uint32_t b) {                                                   \
        plain;                                                                                                         \
        return d;                                                                                                      \
    }
#endif

#define COREV_SUM(bits, first, second)                                                                                 \
    for (uint32_t i = 0; i < 32 / (bits); i++)                                                                         \
    d += (uint32_t)first(a, i, bits) * (uint32_t)second(b, i, bits)

/* d + a * b, and d - a * b */
COREV_ADDS(cv_mac, "cv.mac", d += a * b)
COREV_ADDS(cv_msu, "cv.msu", d -= a * b)
/* d plus the sum of the products of lanes: both unsigned, a unsigned and b signed, both signed */
COREV_ADDS(cv_sdotup_h, "cv.sdotup.h", COREV_SUM(16, corev_lane_u, corev_lane_u))
COREV_ADDS(cv_sdotup_b, "cv.sdotup.b", COREV_SUM(8, corev_lane_u, corev_lane_u))
COREV_ADDS(cv_sdotusp_h, "cv.sdotusp.h", COREV_SUM(16, corev_lane_u, corev_lane))
COREV_ADDS(cv_sdotusp_b, "cv.sdotusp.b", COREV_SUM(8, corev_lane_u, corev_lane))
COREV_ADDS(cv_sdotsp_h, "cv.sdotsp.h", COREV_SUM(16, corev_lane, corev_lane))
COREV_ADDS(cv_sdotsp_b, "cv.sdotsp.b", COREV_SUM(8, corev_lane, corev_lane))
/* Products of the low or of the high half-words */
COREV_ADDS(cv_macs, "cv.macsn %0, %1, %2, 0 #", d += (uint32_t)(corev_lane(a, 0, 16) * corev_lane(b, 0, 16)))
COREV_ADDS(cv_machhs, "cv.machhsn %0, %1, %2, 0 #", d += (uint32_t)(corev_lane(a, 1, 16) * corev_lane(b, 1, 16)))
COREV_ADDS(cv_macu, "cv.macun %0, %1, %2, 0 #", d += corev_lane_u(a, 0, 16) * corev_lane_u(b, 0, 16))
COREV_ADDS(cv_machhu, "cv.machhun %0, %1, %2, 0 #", d += corev_lane_u(a, 1, 16) * corev_lane_u(b, 1, 16))

/* `size` bits (1 to 32) of `value` from bit `position` on, unsigned and signed; size and position are constants, and
 * size + position is at most 32. */
#if COREV
#define cv_extractu(value, size, position)                                                                             \
    (__extension__({                                                                                                   \
        uint32_t cv_d;                                                                                                 \
        __asm__("cv.extractu %0, %1, %2, %3" : "=r"(cv_d) : "r"(value), "i"((size) - 1), "i"(position));               \
        cv_d;                                                                                                          \
    }))
#define cv_extract(value, size, position)                                                                              \
    (__extension__({                                                                                                   \
        int32_t cv_d;                                                                                                  \
        __asm__("cv.extract %0, %1, %2, %3" : "=r"(cv_d) : "r"(value), "i"((size) - 1), "i"(position));                \
        cv_d;                                                                                                          \
    }))
/* `old` with `size` bits from bit `position` on replaced by the lowest bits of `value` */
#define cv_insert(old, value, size, position)                                                                          \
    (__extension__({                                                                                                   \
        uint32_t cv_d = (old);                                                                                         \
        __asm__("cv.insert %0, %1, %2, %3" : "+r"(cv_d) : "r"(value), "i"((size) - 1), "i"(position));                 \
        cv_d;                                                                                                          \
    }))
/* `value` limited to the range of signed numbers with `size` bits (1 to 31); size is a constant. */
#define cv_clip(value, size)                                                                                           \
    (__extension__({                                                                                                   \
        int32_t cv_d;                                                                                                  \
        __asm__("cv.clip %0, %1, %2" : "=r"(cv_d) : "r"(value), "i"(size));                                            \
        cv_d;                                                                                                          \
    }))
#else
#define cv_extractu(value, size, position) ((uint32_t)(value) << (32 - (size) - (position)) >> (32 - (size)))
#define cv_extract(value, size, position) ((int32_t)((uint32_t)(value) << (32 - (size) - (position))) >> (32 - (size)))
#define cv_insert(old, value, size, position)                                                                          \
    (((uint32_t)(old) & ~(0xffffffffU >> (32 - (size)) << (position))) |                                               \
     (((uint32_t)(value) << (position)) & (0xffffffffU >> (32 - (size)) << (position))))
COREV_INLINE int32_t cv_clip(int32_t value, uint32_t size) {
    int32_t most = (int32_t)((1U << (size - 1)) - 1);
    return value < -most - 1 ? -most - 1 : value > most ? most : value;
}
#endif

/* A hardware loop around instructions: `body` is assembler text of at least three instructions, without jumps, and runs `count`
 * times (not at all for 0) without a cycle for the repetition. The operands of the body follow, all as outputs:
 *
 *     CV_LOOP(words, "cv.lw %[word], (%[at]), 4 \n nop \n add %[sum], %[sum], %[word]",
 *             [at] "+r"(at), [sum] "+r"(sum), [word] "=&r"(word));
 *
 * Only for cores with CORE-V (#if COREV). */
#if COREV
#define CV_LOOP(count, body, ...)                                                                                      \
    do {                                                                                                               \
        register uint32_t cv_count __asm__("t6") = (count);                                                            \
        if (cv_count == 0)                                                                                             \
            break;                                                                                                     \
        /* cv.setup 0, t6, words to the end */                                                                         \
        __asm__ volatile(".balign 4 \n .option push \n .option norelax \n .option norvc \n"                            \
                         "77: .word 0x000fc72b | ((78f - 77b) >> 2) << 20 \n" body " \n 78: .option pop"               \
                         : "+r"(cv_count), __VA_ARGS__                                                                 \
                         :                                                                                             \
                         : "memory");                                                                                  \
    } while (0)
#endif

#endif
