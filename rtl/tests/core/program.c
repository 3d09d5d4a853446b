/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that leave their results in L1, where the bench compares them. */
#include <corev.h>
#include <stdint.h>

#define OUT ((volatile uint32_t *)0x10008000)
#define __handler__ __attribute__((used, noinline))

typedef struct {
    uint32_t task, gid, cluster, hpu;
} handler_args_t;

void init_handlers(void *hh, void *ph, void *th, void *memory);
void init_handlers(void *hh, void *ph, void *th, void *memory) {
    (void)hh, (void)ph, (void)th, (void)memory;
    OUT[0] = 0x600D0000;
}

__handler__ void empty_ph(handler_args_t *args);
__attribute__((naked, used)) void empty_ph(handler_args_t *args) { __asm__("ret"); }

#define AMO(index, name, operand)                                                                                      \
    __asm__ volatile(name " %0, %2, %1" : "=r"(old), "+A"(OUT[index]) : "r"(operand) : "memory");                      \
    OUT[(index) + 1] = old

/* Each atomic operation: old value, and new value. */
__handler__ void atomics_ph(handler_args_t *args);
void atomics_ph(handler_args_t *args) {
    uint32_t old;
    (void)args;
    for (uint32_t i = 1; i < 20; i += 2)
        OUT[i] = 0xFFFFFFF0;
    AMO(1, "amoadd.w", 0x20);
    AMO(3, "amoswap.w", 7);
    AMO(5, "amoxor.w", 0xFF);
    AMO(7, "amoand.w", 0x3C);
    AMO(9, "amoor.w", 0x0F);
    AMO(11, "amomin.w", 5);
    AMO(13, "amomax.w", 5);
    AMO(15, "amominu.w", 5);
    AMO(17, "amomaxu.w", 5);
    /* Store-conditionals: successful, without a reservation, and with a changed word. */
    uint32_t value, failed[3];
    __asm__ volatile("lr.w %0, %2 \n sc.w %1, %3, %2" : "=&r"(value), "=&r"(failed[0]), "+A"(OUT[19]) : "r"(77));
    __asm__ volatile("sc.w %0, %2, %1" : "=r"(failed[1]), "+A"(OUT[19]) : "r"(88));
    __asm__ volatile("lr.w %0, %2 \n sw %3, %2 \n sc.w %1, %4, %2"
                     : "=&r"(value), "=&r"(failed[2]), "+A"(OUT[20])
                     : "r"(1), "r"(99));
    OUT[21] = failed[0] << 8 | failed[1] << 4 | failed[2];
    OUT[22] = OUT[19];
}

/* Sum with post-increment loads and a hardware loop: 4 instructions and 3 cycles per word. */
__handler__ void corev_ph(handler_args_t *args);
void corev_ph(handler_args_t *args) {
    (void)args;
    volatile uint32_t *words = (volatile uint32_t *)0x10009000;
    for (uint32_t i = 0; i < 64; i++)
        words[i] = i * i;
    uint32_t word, sum = 0;
    uint32_t *at = (uint32_t *)words;
    CV_LOOP(64, "cv.lw %[word], (%[at]), 4 \n nop \n add %[sum], %[sum], %[word]", [at] "+r"(at), [sum] "+r"(sum),
            [word] "=&r"(word));
    OUT[24] = sum;
    OUT[25] = cv_mac(1000, 20, 30);
}

/* Long-running handler for measuring simulation speed: about a third of its instructions are accesses. */
__handler__ void busy_ph(handler_args_t *args);
void busy_ph(handler_args_t *args) {
    (void)args;
    volatile uint32_t *words = (volatile uint32_t *)0x10009000;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        sum = sum * 3 + words[i & 63];
        words[(i * 5) & 63] = sum;
    }
    OUT[26] = sum;
}

/* Accesses across words are split in two. */
__handler__ void misaligned_ph(handler_args_t *args);
void misaligned_ph(handler_args_t *args) {
    (void)args;
    OUT[28] = 0x33221100;
    OUT[29] = 0x77665544;
    uint32_t word;
    __asm__ volatile("lw %0, 3(%1)" : "=r"(word) : "r"(&OUT[28]) : "memory");
    OUT[30] = word;
}
