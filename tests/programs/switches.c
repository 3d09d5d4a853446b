/* Calls about switches with handlers (spin.h), and a handler on a switch.
 *
 *   switches distances          rank 0 prints the number of switches, and the distances from itself to all processes and to none
 *   switches attach CASE [I]    rank 0 attaches to switch I (0) and prints the return codes of spin_switch_alloc and spin_switch_attach.
 *                               CASE is what is wrong: nothing, map (spin_set_map was not called), memory, counter, handlers_memory
 *                               (memory of handlers), handler (a function that is none), interface, or large (more than the
 *                               HPU memory of a switch)
 *   switches count N [I]        every rank but 0 sends N messages to switch I, whose handler tells rank 0 the sum of their lengths; rank 0
 *                               prints it */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            printf("%d: %s returns %d\n", spin_rank(), #call, rc_);                                                    \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PT = 1, TO_SWITCH = 7, TO_RANK = 8 };

struct sum {
    uint32_t bytes, messages;
};

__handler int add_length(const ptl_header_t h, void *state) {
    struct sum *sum = state;
    struct sum now = {.bytes = __atomic_add_fetch(&sum->bytes, (uint32_t)h.length, __ATOMIC_RELAXED),
                      .messages = __atomic_add_fetch(&sum->messages, 1, __ATOMIC_RELAXED)};
    /* Handlers may run concurrently, so each message has a separate place at rank 0. */
    return PtlHandlerPutFromDevice(&now, sizeof now, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, TO_RANK,
                                   (now.messages - 1) * sizeof now, NULL, 0) == 0
               ? DROP
               : FAIL;
}

static int no_handler(void) { return DROP; }

static ptl_handle_ni_t ni;

static ptl_me_t entry(void) {
    return (ptl_me_t){.ct_handle = PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT,
                      .match_id.rank = PTL_RANK_ANY,
                      .match_bits = TO_SWITCH,
                      .header_handler = add_length,
                      .hpu_memory = PTL_INVALID_HANDLE};
}

static void attach(const char *wrong, int which) {
    static char memory[64];
    static const struct sum start = {0, 0};
    ptl_me_t me = entry();
    ptl_size_t bytes = strcmp(wrong, "large") == 0 ? 1u << 30 : sizeof start;
    if (strcmp(wrong, "interface") == 0)
        ni = PTL_INVALID_HANDLE;
    int allocated = spin_switch_alloc(which, ni, bytes, &me.hpu_memory);
    me.hpu_initial_state = allocated == PTL_OK ? &start : NULL;
    me.hpu_initial_state_length = allocated == PTL_OK ? sizeof start : 0;
    if (strcmp(wrong, "memory") == 0)
        me.start = memory, me.length = sizeof memory;
    if (strcmp(wrong, "handlers_memory") == 0)
        me.handler_host_mem_start = memory, me.handler_host_mem_length = sizeof memory;
    if (strcmp(wrong, "counter") == 0)
        CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (strcmp(wrong, "handler") == 0)
        me.header_handler = (ptl_header_handler_t)(void (*)(void))no_handler;
    printf("alloc %d, attach %d\n", allocated, spin_switch_attach(which, ni, PT, &me));
}

static void count(int messages, int which) {
    enum { MOST = 1000 };
    static struct sum sums[MOST];
    static const struct sum start = {0, 0};
    int expected = messages * (spin_size() - 1);
    ptl_handle_ct_t told;
    ptl_handle_me_t handle;
    if (expected > MOST)
        exit(4);
    CHECK(PtlCTAlloc(ni, &told));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &(ptl_pt_index_t){0}));
    if (spin_rank() == 0) {
        ptl_me_t own = entry(), me = entry();
        own.header_handler = NULL;
        own.start = sums, own.length = sizeof sums, own.match_bits = TO_RANK, own.ct_handle = told;
        own.options |= PTL_ME_EVENT_CT_COMM;
        CHECK(PtlMEAppend(ni, PT, &own, PTL_PRIORITY_LIST, NULL, &handle));
        CHECK(spin_switch_alloc(which, ni, sizeof start, &me.hpu_memory));
        me.hpu_initial_state = &start, me.hpu_initial_state_length = sizeof start;
        CHECK(spin_switch_attach(which, ni, PT, &me));
    }
    CHECK(spin_barrier());
    if (spin_rank() > 0) {
        static char data[256];
        ptl_handle_md_t md;
        ptl_process_t to = {.rank = (ptl_rank_t)(spin_size() + which)};
        CHECK(PtlMDBind(ni, &(ptl_md_t){data, sizeof data, 0, PTL_EQ_NONE, PTL_CT_NONE}, &md));
        for (int i = 0; i < messages; i++)
            CHECK(PtlPut(md, 0, 10 * (ptl_size_t)spin_rank(), PTL_NO_ACK_REQ, to, PT, TO_SWITCH, 0, NULL, 0));
    } else {
        ptl_ct_event_t event;
        uint32_t largest = 0;
        CHECK(PtlCTWait(told, (ptl_size_t)expected, &event));
        for (int i = 0; i < expected; i++)
            largest = sums[i].bytes > largest ? sums[i].bytes : largest;
        printf("%d bytes in %d messages\n", (int)largest, expected);
    }
    CHECK(spin_barrier());
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "distances", *what = argc > 2 ? argv[2] : "nothing";
    int which = argc > 3 ? atoi(argv[3]) : 0;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    if (strcmp(what, "map") == 0) {
        ptl_process_t map[64];
        CHECK(PtlGetPhysId(ni, &map[0]));
        for (int i = spin_size(); i-- > 0;)
            map[i] = (ptl_process_t){.phys = {.nid = (ptl_nid_t)i, .pid = map[0].phys.pid}};
        CHECK(PtlSetMap(ni, (ptl_size_t)spin_size(), map));
    } else {
        CHECK(spin_set_map(ni));
    }
    if (strcmp(mode, "count") == 0) {
        count(atoi(what), which);
    } else if (spin_rank() == 0 && strcmp(mode, "attach") == 0) {
        attach(what, which);
    } else if (spin_rank() == 0) {
        printf("%d switches\n", spin_switches());
        for (int to = -1; to <= spin_size() + spin_switches(); to++)
            printf("%d to %d\n", spin_distance(0, to), to);
    }
    return 0;
}
