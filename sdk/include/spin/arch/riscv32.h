/* SPDX-License-Identifier: Apache-2.0 */
/* RV32: a command is an ECALL, with its number in a7 and its argument and result in a0. */
#ifndef SPIN_ARCH_RISCV32_H
#define SPIN_ARCH_RISCV32_H

#include <stdint.h>

static inline __attribute__((always_inline, unused)) int spin_command(uint32_t number, uint32_t argument) {
    register uint32_t a7 __asm__("a7") = number;
    register uint32_t a0 __asm__("a0") = argument;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return (int)a0;
}

#endif
