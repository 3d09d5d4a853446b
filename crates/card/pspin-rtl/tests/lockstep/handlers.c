/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers with every kind of instruction of the cores, to compare the hardware with the simulator. */
#include <corev.h>
#include <handler.h>

static volatile uint32_t prepared = 3;

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    volatile handler_fn handlers[3] = {0};
    prepared += 1;
    *hh = handlers[0], *ph = handlers[1], *th = handlers[2];
    *memory = 0;
}

__attribute__((noinline)) static uint32_t fibonacci(uint32_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__handler__ void empty_ph(handler_args_t *args) { (void)args; }

/* Multiplications and divisions with their special cases, shifts, comparisons, calls. */
__handler__ void arithmetic_ph(handler_args_t *args) {
    volatile int32_t *out = (volatile int32_t *)args->task->scratchpad[0];
    static const int32_t values[] = {0, 1, -1, 7, -7, 0x7FFFFFFF, (int32_t)0x80000000, 12345, -98765};
    int32_t sum = 0;
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        for (unsigned j = 0; j < sizeof values / sizeof *values; j++) {
            int32_t a = values[i], b = values[j], quotient, rest, high;
            uint32_t unsigned_quotient, unsigned_rest, unsigned_high, mixed_high;
            __asm__ volatile("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(quotient), "=&r"(rest) : "r"(a), "r"(b));
            __asm__ volatile("divu %0, %2, %3\n remu %1, %2, %3"
                             : "=&r"(unsigned_quotient), "=&r"(unsigned_rest)
                             : "r"(a), "r"(b));
            __asm__ volatile("mulh %0, %3, %4\n mulhu %1, %3, %4\n mulhsu %2, %3, %4"
                             : "=&r"(high), "=&r"(unsigned_high), "=&r"(mixed_high)
                             : "r"(a), "r"(b));
            sum += a * b + quotient + rest + high + (a < b) + ((uint32_t)a < (uint32_t)b) + (a >> (b & 31));
            sum ^= (int32_t)(unsigned_quotient + unsigned_rest + unsigned_high + mixed_high) + (a << (b & 31));
            out[i * 16 + j] = sum;
        }
    out[250] = (int32_t)fibonacci(9) + (int32_t)prepared;
}

/* Loads and stores of all widths, also across words. */
__handler__ void memory_ph(handler_args_t *args) {
    volatile uint8_t *bytes = (volatile uint8_t *)args->task->scratchpad[0] + 0x800;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(i * 37 + 200);
    for (uint32_t i = 0; i < 24; i++) {
        int32_t byte, half;
        uint32_t unsigned_half, word;
        __asm__ volatile("lb %0, (%4)\n lh %1, (%4)\n lhu %2, (%4)\n lw %3, (%4)"
                         : "=&r"(byte), "=&r"(half), "=&r"(unsigned_half), "=&r"(word)
                         : "r"(bytes + i)
                         : "memory");
        sum = sum * 31 + (uint32_t)byte + (uint32_t)half + unsigned_half + word;
        __asm__ volatile("sh %0, 25(%1)\n sw %0, 30(%1)\n lw zero, (%1)" ::"r"(sum), "r"(bytes + i) : "memory");
    }
    *(volatile uint32_t *)(bytes + 128) = sum;
}

#define AMO(name)                                                                                                      \
    __asm__ volatile(name " %0, %2, %1" : "=r"(old), "+A"(*word) : "r"(value) : "memory");                             \
    value = value * 5 + old

/* Atomic operations on L1 and on static data in L2. */
__handler__ void atomic_ph(handler_args_t *args) {
    volatile uint32_t *words[2] = {(volatile uint32_t *)args->task->scratchpad[0] + 0x300, &prepared};
    uint32_t old, value = 0x89ABCDEF;
    for (int i = 0; i < 2; i++) {
        volatile uint32_t *word = words[i];
        AMO("amoadd.w");
        AMO("amoswap.w");
        AMO("amoxor.w");
        AMO("amoand.w");
        AMO("amoor.w");
        AMO("amomin.w");
        AMO("amomax.w");
        AMO("amominu.w");
        AMO("amomaxu.w");
        uint32_t failed;
        __asm__ volatile("lr.w %0, %2\n sc.w %1, %3, %2" : "=&r"(old), "=&r"(failed), "+A"(*word) : "r"(value));
        __asm__ volatile("sc.w %0, %2, %1" : "=&r"(failed), "+A"(*word) : "r"(failed));
        __asm__ volatile("lr.w %0, %2\n sw %3, %2\n sc.w %1, %3, %2"
                         : "=&r"(old), "=&r"(failed), "+A"(*word)
                         : "r"(old + 1));
    }
}

/* Post-increment accesses, hardware loops, multiply-accumulate, SIMD, bits. */
__handler__ void corev_ph(handler_args_t *args) {
    uint32_t *words = (uint32_t *)args->task->scratchpad[0] + 0x400, *at = words;
    for (uint32_t i = 0; i < 64; i++)
        words[i] = i * i * 7919;
    uint32_t word, sum = 0, dots = 0, bits = 0;
    CV_LOOP(64, "cv.lw %[word], (%[at]), 4\n nop\n add %[sum], %[sum], %[word]", [at] "+r"(at), [sum] "+r"(sum),
            [word] "=&r"(word));
    for (uint32_t i = 0; i + 1 < 64; i++) {
        __asm__ volatile("cv.sdotsp.b %0, %1, %2" : "+r"(dots) : "r"(words[i]), "r"(words[i + 1]));
        __asm__ volatile("cv.extractu %0, %1, 7, 5\n cv.cnt %0, %0" : "=r"(bits) : "r"(words[i] ^ bits));
        sum = (uint32_t)cv_mac((int32_t)sum, (int32_t)bits, (int32_t)words[i]);
    }
    words[100] = sum;
    words[101] = dots;
}

/* A store outside the handler's memory. */
__handler__ void fault_ph(handler_args_t *args) {
    (void)args;
    *(volatile uint32_t *)0x10000400 = 1;
}

/* Never returns. */
__handler__ void endless_ph(handler_args_t *args) {
    volatile uint32_t *out = (volatile uint32_t *)args->task->scratchpad[0];
    for (;;)
        *out += 1;
}

/* Work that depends on the packet, in all handlers of a message. */
__attribute__((noinline)) static uint32_t work(const task_t *task) {
    const uint8_t *packet = (const uint8_t *)task->pkt_mem;
    uint32_t rounds = task->pkt_mem_size ? packet[0] & 31 : 3, sum = 0;
    for (uint32_t i = 0; i < rounds; i++)
        sum = sum * 5 + i;
    return sum;
}

__handler__ void mixed_hh(handler_args_t *args) { *(volatile uint32_t *)args->task->scratchpad[0] = work(args->task); }
__handler__ void mixed_ph(handler_args_t *args) { (void)work(args->task); }
__handler__ void mixed_th(handler_args_t *args) { *(volatile uint32_t *)args->task->scratchpad[0] += work(args->task); }

/* Commands: sends the packet back; copies it to the host; copies data from the host; writes some words host-direct. */
__handler__ void send_ph(handler_args_t *args) {
    spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, NULL);
}

__handler__ void to_host_ph(handler_args_t *args) {
    spin_cmd_t command;
    uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
    spin_dma_to_host(host, (uint32_t)args->task->pkt_mem, args->task->pkt_mem_size, true, &command);
    spin_cmd_wait(command);
}

__handler__ void from_host_ph(handler_args_t *args) {
    spin_cmd_t command;
    uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
    spin_dma_from_host(host, (uint32_t)args->task->scratchpad[0], args->task->pkt_mem_size, false, &command);
    spin_cmd_wait(command);
}

__handler__ void direct_ph(handler_args_t *args) {
    uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
    spin_write_to_host(host + 64, 0x0123456789ABCDEF, NULL);
}

/* A transfer by the cluster's DMA engine, and reads of the packet in L2. */
__handler__ void copy_ph(handler_args_t *args) {
    spin_dma_t copy;
    spin_dma(args->task->pkt_mem, (void *)args->task->scratchpad[0], 64, SPIN_DMA_EXT2LOC, 0, &copy);
    spin_dma_wait(copy);
}

__handler__ void remote_ph(handler_args_t *args) {
    volatile uint32_t *words = (volatile uint32_t *)args->task->handler_mem;
    words[1] = words[0] + 1;
}

/* Copies the packet to the host and back to other memory; fails if the result differs. */
__handler__ void round_trip_ph(handler_args_t *args) {
    task_t *task = args->task;
    spin_cmd_t copy, word;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    uint8_t *back = (uint8_t *)task->scratchpad[0] + 0x1003, *packet = (uint8_t *)task->pkt_mem;
    spin_dma_to_host(host + 5, (uint32_t)packet, task->pkt_mem_size, 1, &copy);
    spin_write_to_host(host + 2048, 0x0123456789ABCDEF, &word);
    spin_cmd_wait(copy);
    spin_dma_from_host(host + 5, (uint32_t)back, task->pkt_mem_size, 0, &copy);
    spin_cmd_wait(word);
    spin_cmd_wait(copy);
    for (uint32_t i = 0; i < task->pkt_mem_size; i++)
        if (back[i] != packet[i])
            *(volatile uint32_t *)0 = i;
}

/* A copy to memory that the host refuses. */
__handler__ void refused_ph(handler_args_t *args) {
    spin_cmd_t copy;
    spin_dma_to_host(64, (uint32_t)args->task->pkt_mem, 64, 1, &copy);
    spin_cmd_wait(copy);
}

/* Fails while data of the host is in flight to it; the data is then not written. */
__handler__ void orphan_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    uint8_t *target = (uint8_t *)task->scratchpad[0] + 0x1800;
    for (uint32_t i = 0; i < 64; i++)
        target[i] = 1;
    spin_dma_from_host(host, (uint32_t)target, 64, 0, NULL);
    *(volatile uint32_t *)0 = 1;
}

/* A store whose first bytes only are in the handler's memory. */
__handler__ void edge_ph(handler_args_t *args) {
    task_t *task = args->task;
    *(volatile uint16_t *)((uint8_t *)task->scratchpad[0] + task->scratchpad_size[0] - 1) = 1;
}

/* All HPUs increment one word. */
__handler__ void contention_ph(handler_args_t *args) {
    volatile uint32_t *word = (volatile uint32_t *)args->task->scratchpad[0] + 0x500;
    for (uint32_t i = 0, old, failed; i < 32; i++)
        do
            __asm__ volatile("lr.w %0, %2\n addi %0, %0, 1\n nop\n nop\n sc.w %1, %0, %2"
                             : "=&r"(old), "=&r"(failed), "+A"(*word)::"memory");
        while (failed);
}
