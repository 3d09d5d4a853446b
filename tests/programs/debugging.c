/* Handlers that one debugs: they print, and fail in a function that they call.
 *
 *   debugging [BYTES [MODE]]   rank 0 puts BYTES (default 6000) to rank 1, whose handlers print; the payload handler of a packet
 *                              beyond the first fails an assertion. MODE race: payload handlers add without an atomic operation.
 *                              MODE unwritten: they read memory that nobody has written. MODE lock: they add under a lock. */
#include "../portals/harness.h"
#include <assert.h>
#include <spin.h>

enum mode { PRINT, RACE, UNWRITTEN, LOCK };
static const char *const modes[] = {"print", "race", "unwritten", "lock"};

struct state {
    uint64_t sum;
    char name[8];
    uint32_t mode;
    uint32_t lock;
};

struct memory {
    struct state state;
    uint32_t rest[8]; /* not in the initial state */
};

__handler int head(const ptl_header_t h, void *state) {
    struct state *s = state;
    if (s->mode != PRINT)
        return PROCESS_DATA;
    spin_printf("%-6s| %llu B from %u, %#llx, %c %6.2f %*d%%\n", s->name, (unsigned long long)h.length,
                (unsigned)h.source_id.rank, (unsigned long long)h.match_bits, 'x', 3.14159, 5, -42);
    return PROCESS_DATA;
}

static __attribute__((noinline)) void check(const ptl_payload_t *p) { assert(p->offset == 0); /* check */ }

__handler int pay(const ptl_payload_t p, void *state) {
    struct memory *memory = state;
    struct state *s = &memory->state;
    uint64_t before;
    switch (s->mode) {
    case RACE: s->sum += p.length; return SUCCESS;                                             /* race */
    case UNWRITTEN: s->name[0] = (char)((volatile uint32_t *)memory->rest)[1]; return SUCCESS; /* unwritten */
    case LOCK:
        while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
            ;
        s->sum += p.length;
        __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
        return SUCCESS;
    }
    spin_printf("two\nlines\n");
    PtlHandlerFAdd(&s->sum, &before, p.length); /* add */
    check(&p);
    return SUCCESS;
}

int main(int argc, char **argv) {
    static unsigned char data[16384];
    ptl_size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 6000;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    ptl_handle_eq_t eq;
    CHECK(PtlEQAlloc(ni, 64, &eq));
    if (spin_rank() == 1) {
        ptl_pt_index_t portal;
        ptl_event_t event;
        ptl_handle_me_t handle;
        struct state state = {.name = "hello"};
        for (unsigned int mode = 0; argc > 2 && mode < sizeof modes / sizeof *modes; mode++)
            state.mode = strcmp(modes[mode], argv[2]) == 0 ? mode : state.mode;
        CHECK(PtlPTAlloc(ni, 0, eq, 0, &portal));
        ptl_me_t me = plain_entry(data, sizeof data, 0x17, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        CHECK(PtlHPUAllocMem(sizeof(struct memory), ni, &me.hpu_memory));
        me.header_handler = head;
        me.payload_handler = pay;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
        CHECK(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, NULL, &handle));
        spin_barrier();
        CHECK(PtlEQWait(eq, &event));
        printf("%s at %llu ps\n", fail_name(event.ni_fail_type), (unsigned long long)spin_time_ps());
    } else {
        ptl_md_t md = {.start = data, .length = bytes, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        ptl_handle_md_t handle;
        CHECK(PtlMDBind(ni, &md, &handle));
        spin_barrier();
        CHECK(PtlPut(handle, 0, bytes, PTL_NO_ACK_REQ, to_rank(1), 0, 0x17, 0, NULL, 0));
    }
    spin_barrier();
    return 0;
}
