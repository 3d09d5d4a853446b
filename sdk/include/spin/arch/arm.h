/* SPDX-License-Identifier: Apache-2.0 */
/* ARM: a command is an SVC, with its number in r7 and its argument and result in r0. */
#ifndef SPIN_ARCH_ARM_H
#define SPIN_ARCH_ARM_H

#include <stdint.h>

static inline __attribute__((always_inline, unused)) int spin_command(uint32_t number, uint32_t argument) {
    register uint32_t r7 __asm__("r7") = number;
    register uint32_t r0 __asm__("r0") = argument;
    __asm__ volatile("svc #0" : "+r"(r0) : "r"(r7) : "memory");
    return (int)r0;
}

#endif
