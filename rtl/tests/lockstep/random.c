/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers controlled by the bytes of their packets, for the lockstep of hardware and model: random packets make random
 * handlers.
 *
 * The first word of a packet determines how long a handler runs, what it uses, and whether it fails; the second one is
 * the number of the packet. A handler writes only to a slot of that number, and shared results are sums, so the final
 * memory does not depend on the order of packets. There are more slots than packets in the unit and its NIC.
 *
 *     spinkit pspin lockstep rtl/tests/lockstep/random.c --handlers words
 *
 * loops: only time. words: loads, stores and atomic operations in L1 and L2. copies: transfers of the cluster's DMA
 * engine. divisions: divisions behind loads, stores and atomic operations, whose responses the core awaits meanwhile,
 * also over the end of a hardware loop. counters: cycles, as handlers read them. commands: packets, and memory of the
 * host. faults: each kind of failure, and endless handlers. all: all of that but divisions, counters, loads, and
 * consecutive transfers. */
#include <corev.h>
#include <handler.h>

enum { WORDS = 1, COPIES = 2, COMMANDS = 4, FAULTS = 8, DIVISIONS = 16, LOADS = 32, COUNTERS = 64, BURSTS = 128 };

/* Bytes of a slot on the card and on the host, and of the sums before the first one. */
#define PLACE 64u
#define HOST_PLACE 4096u
#define SUMS 64u

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = *ph = *th = 0;
    *memory = 0;
}

static inline void add(volatile uint32_t *word, uint32_t value) {
    __asm__ volatile("amoadd.w zero, %1, %0" : "+A"(*word) : "r"(value) : "memory");
}

/* Acquires a lock in one word, adds to another word, and releases the lock. */
static inline void locked(volatile uint32_t *words, uint32_t value) {
    uint32_t old;
    do
        __asm__ volatile("amoswap.w %0, %2, %1" : "=r"(old), "+A"(words[0]) : "r"(1) : "memory");
    while (old);
    words[1] += value;
    __asm__ volatile("amoswap.w zero, zero, %0" : "+A"(words[0])::"memory");
}

static inline void increment(volatile uint32_t *word) {
    uint32_t old, failed;
    do
        __asm__ volatile("lr.w %0, %2\n addi %0, %0, 1\n sc.w %1, %0, %2"
                         : "=&r"(old), "=&r"(failed), "+A"(*word)::"memory");
    while (failed);
}

/* Fails, or never ends. */
static inline void fail(uint32_t choice, volatile uint32_t *words) {
    switch (choice) {
    case 0: *(volatile uint32_t *)(uintptr_t)init_handlers = 1; break;  /* code */
    case 1: (void)*(volatile uint32_t *)16; break;                      /* unmapped memory */
    case 2: __asm__ volatile("ebreak"); break;                          /* a breakpoint */
    case 3: __asm__ volatile(".word 0xFFFFFFFF"); break;                /* illegal instruction */
    case 4: add((volatile uint32_t *)((uintptr_t)words + 2), 1); break; /* an atomic operation across words */
    case 5: ((void (*)(void))0x1D00F000)(); break;                      /* outside the code */
    case 6: MMIO_WRITE(HWSCHED_ERROR, 77); break;                       /* a reported error */
    case 7: spin_send_packet((void *)64, 64, NULL); break;              /* a command with foreign memory */
    case 8: spin_write_to_host(64, 1, NULL); break;                     /* a command refused by the host */
    default:
        for (;;)
            ;
    }
}

/* Divides after an access; `number` selects the access, and `choice` the length of the division. Twice the quotient is
 * independent of the access's result, then once dependent on it. */
static inline void divide(volatile uint32_t *word, uint32_t number, uint32_t choice) {
    uint32_t read, first, second, divisor = choice >> (choice & 31);
    if (number & 1)
        __asm__ volatile("lw %0, %3\n divu %1, %4, %5\n rem %2, %4, %0"
                         : "=&r"(read), "=&r"(first), "=&r"(second), "+A"(*word)
                         : "r"(choice), "r"(divisor)
                         : "memory");
    else if (number & 2)
        __asm__ volatile("sw %4, %3\n rem %1, %4, %5\n divu %2, %4, %1"
                         : "=&r"(read), "=&r"(first), "=&r"(second), "+A"(*word)
                         : "r"(choice), "r"(divisor)
                         : "memory");
    else
        __asm__ volatile("amoadd.w %0, %4, %3\n remu %1, %4, %5\n div %2, %0, %4"
                         : "=&r"(read), "=&r"(first), "=&r"(second), "+A"(*word)
                         : "r"(choice), "r"(divisor)
                         : "memory");
    *word = first ^ second;
}

/* Divides at the start of a hardware loop whose body ends with a load, and behind the loop. */
static inline void divide_in_loop(volatile uint32_t *word, uint32_t choice) {
    uint32_t read, quotient, rest, value = choice, divisor = choice >> (choice & 31);
    volatile uint32_t *at = word;
    CV_LOOP(1 + (choice >> 5 & 3),
            "divu %[quotient], %[value], %[divisor]\n nop\n lw %[read], (%[at])", [quotient] "=&r"(quotient),
            [value] "+r"(value), [divisor] "+r"(divisor), [read] "=&r"(read), [at] "+r"(at));
    __asm__ volatile("rem %0, %1, %2" : "=r"(rest) : "r"(value), "r"(divisor));
    CV_LOOP(
        1 + (choice >> 7 & 3),
        "rem %[quotient], %[value], %[divisor]\n add %[value], %[value], %[quotient]\n lw %[read], (%[at])",
        [quotient] "=&r"(quotient), [value] "+r"(value), [divisor] "+r"(divisor), [read] "=&r"(read), [at] "+r"(at));
    *word = quotient ^ rest ^ value;
}

/* Stores the cycles between two reads of their counter; the second read is the target of a jump or behind a fence, and
 * straddles two words or not. */
#define COUNT(to, before, between)                                                                                     \
    do {                                                                                                               \
        uint32_t from, until;                                                                                          \
        __asm__ volatile(".balign 4\n" before "rdcycle %0\n" between "rdcycle %1"                                      \
                         : "=&r"(from), "=&r"(until)                                                                   \
                         : "r"(to), "r"(3)                                                                             \
                         : "t3", "memory");                                                                            \
        *(to) = until - from;                                                                                          \
    } while (0)

static inline void count_cycles(volatile uint32_t *word, uint32_t choice) {
    switch (choice & 15) {
    case 0: COUNT(word, "", "c.j 1f\n1:"); break;
    case 1: COUNT(word, "c.nop\n", "c.j 1f\n1:"); break;
    case 2: COUNT(word, "", "beq zero, zero, 1f\nc.nop\n1:"); break;
    case 3: COUNT(word, "c.nop\n", "beq zero, zero, 1f\nc.nop\n1:"); break;
    case 4: COUNT(word, "", "lw t3, (%2)\nc.j 1f\n1:"); break;
    case 5: COUNT(word, "", "div t3, %3, %3\nc.j 1f\n1:"); break;
    case 6: COUNT(word, "c.nop\n", "fence\n"); break;
    case 7: COUNT(word, "", "fence\n"); break;
    case 8: COUNT(word, "", "lw t3, (%2)\n"); break;
    case 9: COUNT(word, "", "sw %3, (%2)\n"); break;
    case 10: COUNT(word, "c.nop\n", "sw %3, 1(%2)\n"); break;
    case 11: COUNT(word, "", "amoadd.w t3, %3, (%2)\n"); break;
    case 12: COUNT(word, "", "amoadd.w t3, %3, (%2)\nc.j 1f\n1:"); break;
    case 13: COUNT(word, "c.nop\n", "amoadd.w t3, %3, (%2)\nc.j 1f\n1:"); break;
    case 14: COUNT(word, "", "amoadd.w t3, %3, (%2)\nc.j 1f\n1: add t3, %2, %3\n"); break;
    default: COUNT(word, "", "amoadd.w t3, %3, (%2)\nc.j 1f\n1: fence\n"); break;
    }
}

static inline __attribute__((always_inline)) void act(handler_args_t *args, uint32_t part, uint32_t kinds) {
    task_t *task = args->task;
    uint32_t size = task->pkt_mem_size, *packet = task->pkt_mem;
    uint32_t choice = size < 8 ? size * 0x01234567u : packet[0], number = size < 8 ? 0 : packet[1];
    choice = (choice ^ choice >> 15) * (2 * part + 0x2C1B3C6Du);
    choice ^= choice >> 13;
    for (volatile uint32_t rounds = choice & 15; rounds; rounds--)
        ;
    volatile uint32_t *sums[2] = {task->scratchpad[args->cluster_id], task->handler_mem};
    uint32_t place = SUMS + number % ((task->handler_mem_size - SUMS) / PLACE) * PLACE;
    if ((kinds & FAULTS) && (choice >> 4 & 31) == 0)
        fail(choice >> 9 & 15, sums[0]);
    uint32_t in_l2 = choice >> 13 & 1, count = choice >> 14 & 7;
    if (kinds & WORDS) {
        add(&sums[in_l2][count & 3], choice);
        if (choice >> 17 & 1)
            increment(&sums[!in_l2][4]);
        if (!(choice >> 18 & 7))
            locked(&sums[0][6], 1);
    }
    if (size < 8)
        return;
    uint8_t *own = (uint8_t *)sums[in_l2] + place, *other = (uint8_t *)sums[!in_l2] + place;
    if (kinds & WORDS) {
        /* Words, half-words and bytes, also across words. */
        for (uint32_t i = 0; i < count; i++) {
            volatile uint8_t *at = own + i * 5;
            __asm__ volatile("sw %0, (%1)\n sh %0, 7(%1)\n sb %0, 2(%1)" ::"r"(choice + i), "r"(at) : "memory");
            uint32_t read;
            if (kinds & LOADS)
                __asm__ volatile("lhu %0, 3(%1)\n lb %0, 7(%1)\n lw %0, (%1)\n lw %0, 5(%1)"
                                 : "=&r"(read)
                                 : "r"(at)
                                 : "memory");
        }
    }
    if (kinds & DIVISIONS)
        for (uint32_t i = 0; i <= count; i++)
            divide((volatile uint32_t *)(own + i * 4), number + i, choice + i * 0x9E3779B9u);
    if (kinds & DIVISIONS)
        divide_in_loop((volatile uint32_t *)(own + 8 * 4), choice);
    if (kinds & COUNTERS)
        for (uint32_t i = 0; i <= count; i++)
            count_cycles((volatile uint32_t *)((uint8_t *)sums[i >> 1 & 1] + place + i * 4), number + i);
    if (kinds & COPIES) {
        spin_dma_t copy;
        uint32_t bytes = size < PLACE / 2 ? size : PLACE / 2;
        spin_dma(choice >> 21 & 1 ? task->pkt_mem : task->l2_pkt_mem, own + (choice >> 22 & 15), bytes, 0, 0, &copy);
        /* Several in a row: HPUs launch in the same cycle, and the queue of the engine fills up. */
        for (uint32_t more = (kinds & BURSTS) && choice >> 30 == 0 ? choice >> 17 & 7 : 0; more; more--)
            spin_dma(task->l2_pkt_mem, own + (choice >> 22 & 15), bytes, 0, 0, &copy);
        if (choice >> 26 & 1)
            spin_dma_wait(copy);
    }
    if (kinds & COMMANDS) {
        spin_cmd_t first = 0, second = 0;
        uint64_t host = ((uint64_t)task->host_mem_high << 32 | task->host_mem_low) +
                        number % (task->host_mem_size / HOST_PLACE) * HOST_PLACE;
        void *data = choice >> 21 & 1 ? task->pkt_mem : task->l2_pkt_mem;
        if (choice >> 22 & 1)
            spin_dma_to_host(host + (choice >> 27 & 7), (uintptr_t)data, size, choice >> 23 & 1, &first);
        if (choice >> 24 & 1)
            spin_send_packet(data, size, &second);
        if (choice >> 25 & 1)
            spin_write_to_host(host + HOST_PLACE / 2 + 64 + part * 8, choice, NULL);
        if ((choice >> 22 & 1) && (choice >> 26 & 1)) {
            spin_cmd_wait(first);
            spin_dma_from_host(host, (uintptr_t)other + PLACE / 2, PLACE / 2, false, &first);
            spin_cmd_wait(first);
        }
    }
}

#define HANDLERS(name, kinds)                                                                                          \
    static __attribute__((noinline)) void name(handler_args_t *args, uint32_t part) { act(args, part, kinds); }        \
    __handler__ void name##_hh(handler_args_t *args) { name(args, 0); }                                                \
    __handler__ void name##_ph(handler_args_t *args) { name(args, 1); }                                                \
    __handler__ void name##_th(handler_args_t *args) { name(args, 2); }

/* The longest is first: together with the runtime, it just fits into the smallest instruction cache. */
HANDLERS(all, WORDS | COPIES | COMMANDS | FAULTS)
HANDLERS(loops, 0)
HANDLERS(words, WORDS | LOADS)
HANDLERS(divisions, DIVISIONS)
HANDLERS(counters, COUNTERS)
HANDLERS(copies, COPIES | BURSTS)
HANDLERS(commands, COMMANDS)
HANDLERS(faults, FAULTS)
