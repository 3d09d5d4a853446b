/* Interaction of concurrent handlers: `order CASE KIND`. Rank 0 sends a message whose payload handlers run on rank 1;
 * KIND is their synchronisation. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, PACKETS = 12, WORK = 3000 };

enum kind { RELEASE, FULL, RELAXED, PLAIN, BYTE, WIDE };
static const char *const kinds[] = {"release", "full", "relaxed", "plain", "byte", "wide"};

struct state {
    uint32_t kind, inside, overlaps, inside_cycles, seen_after, set_after; /* cycles of the handlers */
    uint32_t word;
    uint8_t byte;
    uint64_t wide;
    uint64_t results[40];
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

static inline uint32_t cycles(void) {
    uint32_t now = 0;
#ifdef __SPIN_DEVICE__
    __asm__ volatile("rdcycle %0" : "=r"(now) : : "memory");
#endif
    return now;
}

static inline void work(unsigned int rounds) {
    for (unsigned int i = 0; i < rounds; i++)
        __asm__ volatile("" : : : "memory");
}

static int look(struct state *s) {
    switch (s->kind) {
    case RELEASE: return (int)__atomic_load_n(&s->word, __ATOMIC_ACQUIRE);
    case FULL: return (int)__atomic_load_n(&s->word, __ATOMIC_SEQ_CST);
    case RELAXED: return (int)__atomic_load_n(&s->word, __ATOMIC_RELAXED);
    case BYTE: return __atomic_load_n(&s->byte, __ATOMIC_ACQUIRE);
    case WIDE: return (int)(__atomic_load_n(&s->wide, __ATOMIC_ACQUIRE) >> 40);
    default: return (int)*(volatile uint32_t *)&s->word;
    }
}

static void set(struct state *s, unsigned int value) {
    switch (s->kind) {
    case RELEASE: __atomic_store_n(&s->word, value, __ATOMIC_RELEASE); break;
    case FULL: __atomic_store_n(&s->word, value, __ATOMIC_SEQ_CST); break;
    case RELAXED: __atomic_store_n(&s->word, value, __ATOMIC_RELAXED); break;
    case BYTE: __atomic_store_n(&s->byte, (uint8_t)value, __ATOMIC_RELEASE); break;
    case WIDE: __atomic_store_n(&s->wide, (uint64_t)value << 40, __ATOMIC_RELEASE); break;
    default: *(volatile uint32_t *)&s->word = value;
    }
}

/* Takes the lock if it is free. Returns true on success. */
static int take(struct state *s) {
    uint64_t free = 0;
    switch (s->kind) {
    case BYTE: return !__atomic_test_and_set(&s->byte, __ATOMIC_ACQUIRE);
    case WIDE:
        return __atomic_compare_exchange_n(&s->wide, &free, (uint64_t)1 << 40, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    default: return !__atomic_exchange_n(&s->word, 1, __ATOMIC_ACQUIRE);
    }
}

/* A lock around a section; no other handler may be in it. */
__handler int section(const ptl_payload_t p, void *state) {
    struct state *s = state;
    (void)p;
    while (!take(s))
        while (look(s))
            ;
    uint32_t start = cycles();
    s->overlaps += s->inside;
    s->inside = 1;
    work(450);
    s->inside = 0;
    s->inside_cycles += cycles() - start;
    set(s, 0);
    return SUCCESS;
}

/* The first packet's handler waits for the flag that the second's sets last. */
__handler int flag(const ptl_payload_t p, void *state) {
    struct state *s = state;
    if (p.offset == 0) {
        while (!look(s))
            ;
        s->seen_after = cycles();
    } else {
        work(WORK);
        s->set_after = cycles();
        set(s, 1);
    }
    return SUCCESS;
}

/* All atomic operations of C11 on one type; on the host and on the card they give the same. */
#define OPERATIONS(type, at)                                                                                           \
    do {                                                                                                               \
        type *v = (at), expected = 5;                                                                                  \
        __atomic_store_n(v, (type)0x8123456789abcdef, __ATOMIC_SEQ_CST);                                               \
        *r++ = __atomic_fetch_add(v, (type)0xfedcba9876543210, __ATOMIC_SEQ_CST);                                      \
        *r++ = __atomic_fetch_sub(v, (type)0x1111111122222222, __ATOMIC_RELAXED);                                      \
        *r++ = __atomic_fetch_and(v, (type)0xf0f0f0f0f0f0f0f7, __ATOMIC_ACQ_REL);                                      \
        *r++ = __atomic_fetch_or(v, (type)0x0102030405060708, __ATOMIC_RELEASE);                                       \
        *r++ = __atomic_fetch_xor(v, (type)0xffffffff00000055, __ATOMIC_ACQUIRE);                                      \
        *r++ = __atomic_fetch_nand(v, (type)0x00ff00ff00ff00ff, __ATOMIC_SEQ_CST);                                     \
        *r++ = __atomic_exchange_n(v, (type)77, __ATOMIC_SEQ_CST);                                                     \
        *r++ = __atomic_compare_exchange_n(v, &expected, (type)1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
        *r++ = expected;                                                                                               \
        *r++ = __atomic_compare_exchange_n(v, &expected, (type) - 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
        *r++ = __atomic_load_n(v, __ATOMIC_SEQ_CST);                                                                   \
        *r++ = __atomic_add_fetch(v, (type) - 3, __ATOMIC_SEQ_CST);                                                    \
    } while (0)

static void operations(struct state *s) {
    uint64_t *r = s->results;
    uint16_t half;
    OPERATIONS(uint64_t, &s->wide);
    OPERATIONS(uint8_t, &s->byte);
    OPERATIONS(uint16_t, &half);
    static const uint64_t constant = 12;
    *r++ = __atomic_load_n(&constant, __ATOMIC_SEQ_CST);
}

__handler int compute(const ptl_payload_t p, void *state) {
    (void)p;
    operations(state);
    return SUCCESS;
}

__handler int report(int dropped_bytes, bool flow_control, void *state) {
    if (dropped_bytes != 0 || flow_control)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct state), PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

/* Sends a message of this many bytes from rank 0 to the handler of rank 1. Returns its final state. */
static struct state run(ptl_payload_handler_t handler, enum kind kind, ptl_size_t bytes) {
    struct state result;
    memset(&result, 0, sizeof result);
    result.kind = kind;
    ptl_pt_index_t pt;
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    unsigned char *data = calloc(1, bytes);
    if (spin_rank() == 0) {
        CHECK(spin_barrier());
        CHECK(PtlPut(descriptor(data, bytes, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, ct), 0, bytes, PTL_NO_ACK_REQ,
                     to_rank(1), pt, 7, 0, NULL, 0));
    } else {
        ptl_me_t me = plain_entry(data, bytes, 7, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
        me.ct_handle = ct;
        me.payload_handler = handler;
        me.completion_handler = report;
        struct state initial = result;
        me.hpu_initial_state = &initial;
        me.hpu_initial_state_length = sizeof initial;
        me.handler_host_mem_start = &result;
        me.handler_host_mem_length = sizeof result;
        CHECK(PtlHPUAllocMem(sizeof initial, ni, &me.hpu_memory));
        ptl_handle_me_t handle;
        CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
        CHECK(spin_barrier());
    }
    ptl_ct_event_t count;
    CHECK(PtlCTWait(ct, 1, &count));
    EXPECT(count.success == 1 && count.failure == 0);
    return result;
}

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    enum kind kind = RELEASE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (argc > 2 && strcmp(argv[2], kinds[i]) == 0)
            kind = (enum kind)i;
    if (argc > 1 && strcmp(argv[1], "section") == 0) {
        struct state s = run(section, kind, (ptl_size_t)PACKETS * MTU);
        if (spin_rank() == 1)
            printf("overlaps %u inside %u\n", s.overlaps, s.inside_cycles);
    } else if (argc > 1 && strcmp(argv[1], "flag") == 0) {
        struct state s = run(flag, kind, 2 * MTU);
        if (spin_rank() == 1)
            printf("set %u seen %u\n", s.set_after, s.seen_after);
    } else {
        struct state s = run(compute, kind, 8), reference;
        operations(&reference);
        if (spin_rank() == 1) {
            for (size_t i = 0; i < sizeof s.results / sizeof *s.results - 3; i++)
                if (s.results[i] != reference.results[i]) {
                    fprintf(stderr, "operation %zu: %llx on the card, %llx on the host\n", i,
                            (unsigned long long)s.results[i], (unsigned long long)reference.results[i]);
                    return 1;
                }
            printf("same\n");
        }
    }
    CHECK(spin_barrier());
    return close_interface();
}
