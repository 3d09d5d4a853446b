/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the HPU driver for handlers that are machine code of this computer (spinkit pspin serve --engine native):
 * accesses are calls of the runtime in rt/native. Pointers have 32 bits (x32), so all structures have the layout of the
 * card's. */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdint.h>

/* A thread's window: stack, signal stack, and this structure in its last page. It is found by the stack pointer. */
#define NATIVE_WINDOW 0x20000u
#define NATIVE_STACK_END 0x18000u
#define NATIVE_SIGNAL_STACK 0x19000u
#define NATIVE_SIGNAL_STACK_END 0x1e000u
#define NATIVE_HPU 0x1f000u

struct native_hpu {
    uint64_t recover; /* stack pointer of the call of the handler */
    uint32_t number, cluster, within;
    uint32_t is_running; /* set while a handler runs */
    uint32_t words[8];   /* CMD_INFO and the words of a command */
    uint32_t dma[3];     /* source, destination, bytes */
    uint32_t copies, commands;
    uint32_t reserved_address, reserved_value; /* of load_reserved */
    uint32_t line;                             /* characters of the unfinished line of output */
    uint32_t reported;                         /* error that the handler has reported, 0 if none */
    char text[512];
};

static inline struct native_hpu *native_hpu(void) {
    uint32_t stack;
    __asm__("movl %%esp, %0" : "=r"(stack));
    return (struct native_hpu *)((stack & ~(NATIVE_WINDOW - 1)) + NATIVE_HPU);
}

uint32_t native_load(uint32_t address);
void native_store(uint32_t address, uint32_t value);
void native_put(int character);

/* The words of a command are stores to memory; everything else that is a register of HWSCHED_BASE's page, the console or
 * TERMINATE is a call. */
static inline uint32_t native_read(uint32_t address) {
    if (address - 0x1A000000u < 0x2000000u)
        return native_load(address);
    return *(volatile uint32_t *)address;
}

static inline void native_write(uint32_t address, uint32_t value) {
    uint32_t word = (address - 0x1B20508Cu) / 4;
    if (word < 8)
        *(volatile uint32_t *)&native_hpu()->words[word] = value;
    else if (address - 0x1A000000u < 0x2000000u)
        native_store(address, value);
    else
        *(volatile uint32_t *)address = value;
}

#endif
