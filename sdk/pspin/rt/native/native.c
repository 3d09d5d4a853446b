/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime of handlers that are machine code of this computer. It is the whole process: no C library, and after its start no
 * memory but that of the card's context, and no system calls but futex, sigreturn, and write to the port and the bell. */
#include <stddef.h>
#include <stdint.h>

#include <handler.h>

#include "card.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
int memcmp(const void *left, const void *right, size_t n);
int bcmp(const void *left, const void *right, size_t n);

/* System calls of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl). */
enum {
    SYS_WRITE = 1,
    SYS_CLOSE = 3,
    SYS_MMAP = 9,
    SYS_MUNMAP = 11,
    SYS_RT_SIGACTION = 13,
    SYS_RT_SIGRETURN = 15,
    SYS_CLONE = 56,
    SYS_PRCTL = 157,
    SYS_SIGALTSTACK = 131,
    SYS_GETTID = 186,
    SYS_FUTEX = 202,
    SYS_EXIT_GROUP = 231,
    SYS_SECCOMP = 317,
};

enum { SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGFPE = 8, SIGUSR1 = 10, SIGSEGV = 11, SIGSYS = 31 };
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 16, MAP_ANONYMOUS = 32 };

#define CONTROL ((struct native_control *)NATIVE_CONTROL)
#define RING ((uint32_t *)(NATIVE_CONTROL + NATIVE_AT_RING))
#define SLOTS ((struct native_slot *)(NATIVE_CONTROL + NATIVE_AT_SLOTS))

/* The compiler makes a call of it of each memcmp that tests for equality. */
int bcmp(const void *left, const void *right, size_t n) { return memcmp(left, right, n); }

static inline struct native_shared *shared(uint32_t number) {
    return (struct native_shared *)(NATIVE_CONTROL + NATIVE_AT_HPUS) + number;
}

static inline int64_t call(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    int64_t result;
    register uint64_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline uint64_t address_of(const volatile void *pointer) { return (uintptr_t)pointer; }

static inline uint64_t ticks(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Calls a handler. Returns 0 when it returns, 1 when it leaves by native_leave, or by a signal to native_recover. */
uint32_t native_call(void *function, handler_args_t *args, uint64_t *recover);
_Noreturn void native_leave(uint64_t recover);
void native_recover(void);
void native_restorer(void);
int64_t native_clone(uint64_t flags, void *stack);
void native_thread(void);
_Noreturn void native_main(void);

__asm__(".text\n"
        ".globl _start\n"
        "_start:\n"
        "  leal native_boot_stack+16384(%rip), %esp\n"
        "  xorl %ebp, %ebp\n"
        "  call native_main\n"
        "  ud2\n"
        ".globl native_call\n"
        "native_call:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  subq $8, %rsp\n"
        "  movq %rsp, (%rdx)\n"
        "  movl %edi, %eax\n"
        "  movl %esi, %edi\n"
        "  call *%rax\n"
        "  xorl %eax, %eax\n"
        "1:\n"
        "  addq $8, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        /* A signal handler has set the stack pointer. */
        ".globl native_recover\n"
        "native_recover:\n"
        "  cld\n"
        "  movl $1, %eax\n"
        "  jmp 1b\n"
        ".globl native_leave\n"
        "native_leave:\n"
        "  movq %rdi, %rsp\n"
        "  jmp native_recover\n"
        ".globl native_restorer\n"
        "native_restorer:\n"
        "  movl $15, %eax\n"
        "  syscall\n"
        ".globl native_clone\n"
        "native_clone:\n"
        "  movl $56, %eax\n"
        "  xorl %edx, %edx\n  xorl %r10d, %r10d\n  xorl %r8d, %r8d\n"
        "  syscall\n"
        "  testq %rax, %rax\n"
        "  jnz 2f\n"
        "  xorl %ebp, %ebp\n"
        "  call native_thread\n"
        "  ud2\n"
        "2:\n"
        "  ret\n");

__attribute__((aligned(64), used)) char native_boot_stack[16384];

static void ring_bell(void) {
    uint64_t one = 1;
    call(SYS_WRITE, NATIVE_FILE_BELL, address_of(&one), sizeof one, 0, 0, 0);
}

/* Result of the running handler, in the memory of the card. */
static struct native_result *running[256];

/* Records the failure of the running handler. */
static void record(struct native_hpu *hpu, uint32_t outcome, uint64_t pc, uint32_t code, uint64_t address,
                   uint32_t bytes) {
    struct native_result *result = running[hpu->number];
    result->pc = pc <= UINT32_MAX ? (uint32_t)pc : 0;
    result->code = code;
    result->address = address;
    result->bytes = bytes;
    result->outcome = outcome;
}

/* Ends the running handler by a failure of its command, issued at `pc`. */
static _Noreturn void fail(struct native_hpu *hpu, uint32_t outcome, void *pc, uint64_t address, uint32_t bytes) {
    record(hpu, outcome, address_of(pc), 0, address, bytes);
    hpu->is_running = 0;
    native_leave(hpu->recover);
}

/* Offsets in the kernel's siginfo_t and ucontext_t (signal.h of x86-64). */
enum { INFO_ADDRESS = 16, INFO_SYSTEM_CALL = 24, CONTEXT_RSP = 160, CONTEXT_RIP = 168, CONTEXT_FLAGS = 176 };

static void handle_signal(int number, uint8_t *info, uint8_t *context) {
    struct native_hpu *hpu = native_hpu();
    struct native_shared *mine = shared(hpu->number);
    if (number == SIGUSR1 && (!hpu->is_running || mine->killed != mine->sequence))
        return; /* the handler has ended meanwhile */
    if (!hpu->is_running)
        for (;;) /* a defect of this runtime: the card starts another process */
            __asm__ volatile("hlt");
    uint64_t pc = *(uint64_t *)(context + CONTEXT_RIP);
    if (number == SIGUSR1)
        record(hpu, NATIVE_WATCHDOG, pc, 0, 0, 0);
    else if (number == SIGSYS)
        record(hpu, NATIVE_SYSTEM_CALL, pc, *(uint32_t *)(info + INFO_SYSTEM_CALL), 0, 0);
    else
        record(hpu, NATIVE_SIGNAL, pc, (uint32_t)number, *(uint64_t *)(info + INFO_ADDRESS), 0);
    hpu->is_running = 0;
    *(uint64_t *)(context + CONTEXT_RSP) = hpu->recover;
    *(uint64_t *)(context + CONTEXT_RIP) = address_of((void *)native_recover);
    /* No single steps, descending strings or alignment checks of the handler. */
    *(uint64_t *)(context + CONTEXT_FLAGS) &= ~(0x100ull | 0x400ull | 0x40000ull);
}

static bool holds(uint32_t start, uint32_t bytes, uint32_t address, uint32_t size) {
    return address - start <= bytes && size <= bytes - (address - start);
}

/* Returns true if a command of the HPU's handler may use these bytes: its packet, its memories, its stack, static data. */
static bool may_use(const struct native_hpu *hpu, const struct native_slot *slot, uint32_t address, uint32_t size) {
    const struct native_control *control = CONTROL;
    if (holds(control->handler_memory, control->handler_memory_bytes, address, size) ||
        holds(control->data, control->data_bytes, address, size) ||
        holds(NATIVE_THREADS + hpu->number * NATIVE_WINDOW, NATIVE_STACK_END, address, size))
        return true;
    for (uint32_t cluster = 0; cluster < 4; cluster++)
        if (holds(control->scratchpads[cluster], control->scratchpad_bytes[cluster], address, size))
            return true;
    return slot != NULL && (holds(slot->packet, slot->size, address, size) ||
                            holds(NATIVE_L1_PACKETS + hpu->number * NATIVE_L1_PACKET, slot->transfer, address, size));
}

/* Slot of each HPU's task; NULL while init_handlers runs. */
static struct native_slot *tasks[256];

static void *host_window(struct native_hpu *hpu, void *pc, uint64_t address, uint32_t size) {
    const struct native_control *control = CONTROL;
    uint64_t offset = address - control->host;
    if (offset > control->host_bytes || size > control->host_bytes - offset)
        fail(hpu, NATIVE_HOST_MEM, pc, address, size);
    return (void *)(uintptr_t)(NATIVE_HOST + offset);
}

/* Performs the command in the words of the HPU, at once. */
static uint32_t issue(struct native_hpu *hpu, void *pc) {
    struct native_shared *mine = shared(hpu->number);
    const uint32_t info = hpu->words[0], *word = &hpu->words[1];
    if (info & CMD_INFO_NIC) {
        uint32_t data = word[2], size = word[4];
        if (size == 0 || !may_use(hpu, tasks[hpu->number], data, size))
            fail(hpu, NATIVE_COMMAND, pc, data, size);
        if (word[1] != 0) {
            mine->puts++; /* data of RDMA has no headers */
        } else if (call(SYS_WRITE, NATIVE_FILE_PORT, data, size, 0, 0, 0) == size) {
            mine->sent++;
            mine->sent_bytes += size;
        } else {
            mine->unsent++;
        }
    } else if (info & CMD_INFO_HOST_DIRECT) {
        uint32_t size = word[2] >> 1;
        if (size > 16 || !(word[2] & 1))
            fail(hpu, NATIVE_COMMAND, pc, 0, size);
        memcpy(host_window(hpu, pc, (uint64_t)word[1] << 32 | word[0], size), &word[3], size);
        mine->host_direct++;
        mine->to_host_bytes += size;
    } else {
        uint32_t data = word[2], size = word[3];
        if (!may_use(hpu, tasks[hpu->number], data, size))
            fail(hpu, NATIVE_COMMAND, pc, data, size);
        void *host = host_window(hpu, pc, (uint64_t)word[1] << 32 | word[0], size);
        if (word[4]) {
            memcpy(host, (void *)data, size);
            mine->to_host++;
            mine->to_host_bytes += size;
        } else {
            memcpy((void *)data, host, size);
            mine->from_host++;
            mine->from_host_bytes += size;
        }
    }
    return hpu->commands++ % 4;
}

uint32_t native_load(uint32_t address) {
    struct native_hpu *hpu = native_hpu();
    void *pc = __builtin_return_address(0);
    switch (address) {
    case CMD_ISSUE: return issue(hpu, pc);
    case CMD_TEST: return 1;
    case DMA_LAUNCH: {
        uint32_t source = hpu->dma[0], destination = hpu->dma[1], bytes = hpu->dma[2];
        if (!may_use(hpu, tasks[hpu->number], source, bytes))
            fail(hpu, NATIVE_COMMAND, pc, source, bytes);
        if (!may_use(hpu, tasks[hpu->number], destination, bytes))
            fail(hpu, NATIVE_COMMAND, pc, destination, bytes);
        memmove((void *)destination, (void *)source, bytes);
        return ++hpu->copies;
    }
    case DMA_DONE: return hpu->copies;
    default: fail(hpu, NATIVE_COMMAND, pc, address, 4);
    }
}

void native_store(uint32_t address, uint32_t value) {
    struct native_hpu *hpu = native_hpu();
    void *pc = __builtin_return_address(0);
    switch (address) {
    case CMD_WAIT:
    case CMD_TEST: return; /* commands are done when they are issued */
    case DMA_SOURCE: hpu->dma[0] = value; return;
    case DMA_DESTINATION: hpu->dma[1] = value; return;
    case DMA_BYTES: hpu->dma[2] = value; return;
    case HWSCHED_ERROR: hpu->reported = value ? value : 1; return;
    case 0x1B200000u: /* TERMINATE */
        __atomic_store_n(&CONTROL->terminated, hpu->number + 1, __ATOMIC_SEQ_CST);
        ring_bell();
        fail(hpu, NATIVE_REPORTED, pc, 0, 0);
    default: fail(hpu, NATIVE_COMMAND, pc, address, 4);
    }
}

/* Passes whole lines to the card, which prints them with the place of the HPU. */
void native_put(int character) {
    struct native_hpu *hpu = native_hpu();
    struct native_shared *mine = shared(hpu->number);
    hpu->text[hpu->line++] = (char)character;
    if (character != '\n' && hpu->line < sizeof hpu->text - 1)
        return;
    if (character != '\n')
        hpu->text[hpu->line++] = '\n';
    uint32_t written = mine->written, read = __atomic_load_n(&mine->read, __ATOMIC_ACQUIRE);
    if (written - read + hpu->line > NATIVE_OUTPUT) {
        mine->lost++;
    } else {
        for (uint32_t i = 0; i < hpu->line; i++)
            mine->output[(written + i) % NATIVE_OUTPUT] = (uint8_t)hpu->text[i];
        __atomic_store_n(&mine->written, written + hpu->line, __ATOMIC_RELEASE);
    }
    hpu->line = 0;
    ring_bell();
}

/* Runs a function of the program as a handler. Returns true if it has not failed. */
static bool run(struct native_hpu *hpu, uint32_t function, handler_args_t *args, struct native_result *result) {
    struct native_shared *mine = shared(hpu->number);
    running[hpu->number] = result;
    result->outcome = NATIVE_DONE;
    hpu->reported = 0;
    result->start = ticks();
    mine->sequence++;
    __atomic_store_n(&mine->since, result->start, __ATOMIC_RELEASE);
    hpu->is_running = 1;
    __asm__ volatile("" ::: "memory");
    uint32_t failed = native_call((void *)function, args, &hpu->recover);
    __asm__ volatile("" ::: "memory");
    hpu->is_running = 0;
    __atomic_store_n(&mine->since, 0, __ATOMIC_RELEASE);
    result->end = ticks();
    if (!failed && hpu->reported) {
        record(hpu, NATIVE_REPORTED, 0, hpu->reported, 0, 0);
        failed = 1;
    }
    return !failed;
}

/* Runs the handlers of a packet. Each gets a copy of it, as on the card, where each is a task. */
static void run_slot(struct native_hpu *hpu, struct native_slot *slot) {
    const struct native_control *control = CONTROL;
    uint8_t *packet = (uint8_t *)(NATIVE_L1_PACKETS + hpu->number * NATIVE_L1_PACKET);
    task_t task = {
        .handler_mem = (void *)control->handler_memory,
        .handler_mem_size = control->handler_memory_bytes,
        .pkt_mem = packet,
        .pkt_mem_size = slot->transfer,
        .host_mem_high = (uint32_t)(control->host >> 32),
        .host_mem_low = (uint32_t)control->host,
        .host_mem_size = (size_t)control->host_bytes,
        .l2_pkt_mem = (void *)slot->packet,
        .home_cluster_id = slot->home,
        .flow_id = slot->flow,
    };
    for (uint32_t cluster = 0; cluster < 4; cluster++) {
        task.scratchpad[cluster] = (void *)control->scratchpads[cluster];
        task.scratchpad_size[cluster] = control->scratchpad_bytes[cluster];
    }
    handler_args_t args = {&task, hpu->number, hpu->cluster, hpu->within};
    tasks[hpu->number] = slot;
    slot->hpu = hpu->number;
    bool is_whole = true;
    for (uint32_t role = 0; role < 3; role++) {
        struct native_result *result = &slot->results[role];
        if (slot->handlers[role] == 0)
            continue;
        if (!is_whole) {
            result->outcome = NATIVE_SKIPPED;
            continue;
        }
        memcpy(packet, (void *)slot->packet, slot->transfer);
        /* No handler of a message runs after its header handler failed. */
        is_whole = run(hpu, slot->handlers[role], &args, result) || role > 0;
    }
    tasks[hpu->number] = NULL;
    __atomic_store_n(&slot->is_done, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&CONTROL->wants_bell, __ATOMIC_SEQ_CST))
        ring_bell();
}

static struct native_slot *take(struct native_control *control) {
    uint32_t head = __atomic_load_n(&control->head, __ATOMIC_SEQ_CST);
    while (head != __atomic_load_n(&control->tail, __ATOMIC_SEQ_CST)) {
        uint32_t slot = RING[head % NATIVE_RING];
        if (__atomic_compare_exchange_n(&control->head, &head, head + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return &SLOTS[slot % NATIVE_RING];
    }
    return NULL;
}

/* Loop of an HPU. */
void native_thread(void) {
    struct native_control *control = CONTROL;
    struct native_hpu *hpu = native_hpu();
    struct native_shared *mine = shared(hpu->number);
    /* stack_t of the kernel */
    struct {
        uint64_t start;
        uint64_t flags;
        uint64_t bytes;
    } stack = {(address_of(hpu) & ~(uint64_t)(NATIVE_WINDOW - 1)) + NATIVE_SIGNAL_STACK, 0,
               NATIVE_SIGNAL_STACK_END - NATIVE_SIGNAL_STACK};
    if (call(SYS_SIGALTSTACK, address_of(&stack), 0, 0, 0, 0, 0) != 0)
        call(SYS_EXIT_GROUP, 102, 0, 0, 0, 0, 0);
    mine->thread = (uint32_t)call(SYS_GETTID, 0, 0, 0, 0, 0, 0);
    __atomic_add_fetch(&control->ready, 1, __ATOMIC_SEQ_CST);
    call(SYS_FUTEX, address_of(&control->ready), FUTEX_WAKE, INT32_MAX, 0, 0, 0);
    uint64_t idle = ticks();
    for (;;) {
        struct native_slot *slot = take(control);
        if (slot != NULL) {
            run_slot(hpu, slot);
            idle = control->spin ? ticks() : 0;
            continue;
        }
        if (control->spin && ticks() - idle < control->spin) {
            __builtin_ia32_pause();
            continue;
        }
        uint32_t wake = __atomic_load_n(&control->wake, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&control->sleepers, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&control->head, __ATOMIC_SEQ_CST) == __atomic_load_n(&control->tail, __ATOMIC_SEQ_CST))
            call(SYS_FUTEX, address_of(&control->wake), FUTEX_WAIT, wake, 0, 0, 0);
        __atomic_sub_fetch(&control->sleepers, 1, __ATOMIC_SEQ_CST);
        idle = ticks();
    }
}

static void must(bool is_good, uint32_t status) {
    if (!is_good)
        call(SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0);
}

static void map(uint64_t address, uint64_t bytes, uint64_t flags, int64_t file, uint64_t offset) {
    uint64_t at =
        (uint64_t)call(SYS_MMAP, address, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, (uint64_t)file, offset);
    must(at == address, 103);
}

/* Allows the system calls of the running card, and makes each other one a SIGSYS of its thread (seccomp(2)). */
static void confine(void) {
    /* struct sock_filter: code, jumps if true and false, constant */
    struct filter {
        uint16_t code;
        uint8_t yes, no;
        uint32_t constant;
    } filter[] = {
        {0x20, 0, 0, 4},          /* load the architecture */
        {0x15, 0, 8, 0xc000003e}, /* x86-64 */
        {0x20, 0, 0, 0},          /* load the number of the call */
        {0x15, 5, 0, SYS_FUTEX},
        {0x15, 4, 0, SYS_RT_SIGRETURN},
        {0x15, 0, 4, SYS_WRITE},
        {0x20, 0, 0, 16}, /* load the file */
        {0x15, 1, 0, NATIVE_FILE_PORT},
        {0x15, 0, 1, NATIVE_FILE_BELL},
        {0x06, 0, 0, 0x7fff0000}, /* allow */
        {0x06, 0, 0, 0x00030000}, /* trap */
    };
    struct {
        uint64_t count, filter;
    } program = {sizeof filter / sizeof *filter, address_of(filter)};
    must(call(SYS_PRCTL, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0, 0, 0) == 0, 104);
    must(call(SYS_SECCOMP, 1 /* SET_MODE_FILTER */, 1 /* TSYNC */, address_of(&program), 0, 0, 0) == 0, 105);
}

_Noreturn void native_main(void) {
    struct native_control *control = CONTROL;
    map(NATIVE_CONTROL, 4096, MAP_SHARED, NATIVE_FILE_CONTEXT, 0);
    map(NATIVE_CONTROL, control->bytes, MAP_SHARED, NATIVE_FILE_CONTEXT, 0);
    for (uint32_t i = 0; i < control->regions_count && i < NATIVE_REGIONS; i++) {
        const struct native_region *region = &control->regions[i];
        map(region->address, region->bytes, MAP_SHARED, (int64_t)region->file, region->offset);
    }
    uint32_t hpus = control->hpus;
    map(NATIVE_L1_PACKETS, (uint64_t)hpus * NATIVE_L1_PACKET, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint32_t number = 0; number < hpus; number++) {
        /* Guards below both stacks stay unmapped. */
        uint64_t window = NATIVE_THREADS + (uint64_t)number * NATIVE_WINDOW;
        uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS;
        map(window + 4096, NATIVE_STACK_END - 4096, flags, -1, 0);
        map(window + NATIVE_SIGNAL_STACK, NATIVE_SIGNAL_STACK_END - NATIVE_SIGNAL_STACK, flags, -1, 0);
        map(window + NATIVE_HPU, 4096, flags, -1, 0);
    }
    call(SYS_CLOSE, NATIVE_FILE_CONTEXT, 0, 0, 0, 0, 0);
    call(SYS_CLOSE, NATIVE_FILE_DATA, 0, 0, 0, 0, 0);
    /* The kernel's stack and the vDSO: everything beyond 32 bits. */
    must(call(SYS_MUNMAP, 1ull << 32, (1ull << 47) - 4096 - (1ull << 32), 0, 0, 0, 0) == 0, 106);
    static const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGSYS};
    for (uint32_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        /* struct sigaction of the kernel; flags: siginfo, on the signal stack, with a restorer */
        uint64_t action[4] = {address_of((void *)handle_signal), 0x4 | 0x08000000 | 0x04000000,
                              address_of((void *)native_restorer), ~0ull};
        must(call(SYS_RT_SIGACTION, (uint64_t)signals[i], address_of(action), 0, 8, 0, 0) == 0, 107);
    }
    for (uint32_t number = 0; number < hpus; number++) {
        uint32_t window = NATIVE_THREADS + number * NATIVE_WINDOW;
        struct native_hpu *hpu = (struct native_hpu *)(window + NATIVE_HPU);
        hpu->number = number;
        hpu->cluster = number / control->hpus_per_cluster;
        hpu->within = number % control->hpus_per_cluster;
        /* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
        must(native_clone(0x50f00, (void *)(window + NATIVE_STACK_END)) > 0, 108);
    }
    uint32_t ready;
    while ((ready = __atomic_load_n(&control->ready, __ATOMIC_SEQ_CST)) < hpus)
        call(SYS_FUTEX, address_of(&control->ready), FUTEX_WAIT, ready, 0, 0, 0);
    confine();
    __atomic_store_n(&control->ready, hpus + 1, __ATOMIC_SEQ_CST);
    ring_bell();
    for (;;) /* nobody changes it again */
        call(SYS_FUTEX, address_of(&control->ready), FUTEX_WAIT, hpus + 1, 0, 0, 0);
}

/* Runs the program's initialisation; the card calls it like a handler. */
__attribute__((used)) void native_init(handler_args_t *args) {
    handler_fn header = NULL, payload = NULL, completion = NULL;
    void *memory = NULL;
    (void)args;
    init_handlers(&header, &payload, &completion, &memory);
}
