/* SPDX-License-Identifier: Apache-2.0 */
/* Each function of <corev.h> once. Builds with and without CORE-V must agree; intrinsics.rs has the build commands. */
#include <corev.h>

#define HANDLER(name) __attribute__((used)) uint32_t name(uint32_t a, uint32_t b, uint32_t d)

HANDLER(lanes) {
    uint32_t x = cv_add_h(a, b) ^ cv_sub_b(a, d);
    x += cv_min_h(a, b) + 3 * cv_max_h(a, d) + 5 * cv_minu_h(b, d) + 7 * cv_maxu_h(a, b);
    x += 11 * cv_min_b(a, b) + 13 * cv_max_b(a, d) + 17 * cv_minu_b(b, d) + 19 * cv_maxu_b(a, b);
    x ^= cv_cmpeq_h(a, b) + cv_cmpeq_b(a, d) + 3 * cv_cmpgt_h(a, b) + 5 * cv_cmpgt_b(a, b) + 7 * cv_cmpgtu_h(a, b);
    x += cv_cmpgtu_b(a, b) + cv_add_b(a, b) + 3 * cv_sub_h(b, d);
    return x;
}

HANDLER(shifts) {
    uint32_t x = cv_srl_h(a, b & 0x000f000f) + 3 * cv_srl_b(a, b & 0x07070707) + 5 * cv_sra_h(d, b & 0x000f000f);
    x ^= cv_sra_b(a, d & 0x07070707) + 7 * cv_sll_h(a, d & 0x000f000f) + 9 * cv_sll_b(b, d & 0x07070707);
    return x + 11 * cv_shuffle_h(a, b & 0x00010001) + 13 * cv_shuffle_b(d, b & 0x03030303);
}

HANDLER(sums) {
    uint32_t x = cv_mac(d, a, b);
    x = cv_msu(x, b, d);
    x = cv_sdotup_h(x, a, b);
    x = cv_sdotup_b(x, a, b);
    x = cv_sdotusp_h(x, a, b);
    x = cv_sdotusp_b(x, b, a);
    x = cv_sdotsp_h(x, a, d);
    x = cv_sdotsp_b(x, b, d);
    x = cv_macs(x, a, b);
    x = cv_machhs(x, a, b);
    x = cv_macu(x, a, b);
    return cv_machhu(x, a, b);
}

HANDLER(fields) {
    uint32_t x = cv_extractu(a, 5, 27) + 3 * (uint32_t)cv_extract(b, 12, 9) + (uint32_t)cv_extract(a, 32, 0);
    x = cv_insert(x, d, 7, 13);
    x += cv_insert(a, b, 32, 0) + cv_extractu(d, 1, 31);
    return x + (uint32_t)cv_clip((int32_t)a, 8) + 3 * (uint32_t)cv_clip((int32_t)b, 31) +
           5 * (uint32_t)cv_clip((int32_t)d, 1);
}

/* Instructions that the compiler selects by itself. */
HANDLER(selected) {
    int32_t x = (int32_t)a, y = (int32_t)b;
    uint32_t bits = (uint32_t)__builtin_popcount(a ^ b);
    uint32_t least = (uint32_t)(x < y ? x : y), most = (uint32_t)(x > y ? x : y);
    uint32_t rotated = a >> (d & 31) | a << (-d & 31);
    return bits + 3 * least + 5 * most + rotated + (uint32_t)(int16_t)d + (bits == 7 ? 100 : 0);
}

/* The sum of `b` words at `a`. */
HANDLER(sum) {
    const uint32_t *at = (const uint32_t *)a;
    uint32_t total = d;
#if COREV
    uint32_t word;
    CV_LOOP(b, "cv.lw %[word], (%[at]), 4 \n addi %[total], %[total], 1 \n add %[total], %[total], %[word]",
            [at] "+r"(at), [total] "+r"(total), [word] "=&r"(word));
#else
    for (uint32_t i = 0; i < b; i++)
        total += at[i] + 1;
#endif
    return total;
}
