/* Errors reported to programs when packets are lost, ranks die or cards die (spinrun --drop, --fail, --kill-card).
 *
 *   failures puts BYTES COUNT   every other rank puts COUNT messages of BYTES bytes to rank 0, each with an acknowledgement
 *   failures gets BYTES COUNT   every other rank gets COUNT times BYTES bytes from rank 0
 *   failures handlers BYTES COUNT   as puts; handlers of rank 0 copy packets to the host and count the bytes that are missing
 *   failures barrier            all ranks meet COUNT times, 1 us apart
 *
 * Every rank but 0 prints, for each answer, its event, ni_fail_type, mlength and time; rank 0 what it has received. */
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

enum { PT = 1, MOST = 1 << 20 };

struct seen {
    uint32_t bytes, dropped, messages;
};

__handler int copy(const ptl_payload_t p, void *state) {
    struct seen *seen = state;
    __atomic_fetch_add(&seen->bytes, p.length, __ATOMIC_RELAXED);
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

__handler int tell(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct seen *seen = state;
    seen->dropped += dropped_bytes;
    seen->messages++;
    if (flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(seen, 0, sizeof *seen, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

static unsigned char memory[MOST];

static void serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_handle_eq_t eq, const char *mode, int messages) {
    static struct seen seen;
    struct seen none = {0, 0, 0};
    ptl_handle_me_t me;
    ptl_me_t entry = {.start = memory,
                      .length = MOST,
                      .ct_handle = PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                      .match_id.rank = PTL_RANK_ANY,
                      .hpu_memory = PTL_INVALID_HANDLE};
    if (strcmp(mode, "handlers") == 0) {
        entry.payload_handler = copy;
        entry.completion_handler = tell;
        entry.hpu_initial_state = &none;
        entry.hpu_initial_state_length = sizeof none;
        entry.handler_host_mem_start = &seen;
        entry.handler_host_mem_length = sizeof seen;
        CHECK(PtlHPUAllocMem(sizeof none, ni, &entry.hpu_memory));
    }
    CHECK(PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &me));
    CHECK(spin_barrier());
    for (int i = 0; i < messages; i++) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&eq, 1, 2000, &event, &which);
        if (rc == PTL_EQ_EMPTY) {
            printf("0: nothing more comes\n");
            break;
        }
        CHECK(rc);
        printf("0: event %d from %d, fail %d, mlength %zu\n", event.type, (int)event.initiator.rank, event.ni_fail_type,
               (size_t)event.mlength);
    }
    if (seen.messages != 0)
        printf("0: handlers saw %u bytes and missed %u\n", seen.bytes, seen.dropped);
}

static void ask(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_handle_eq_t eq, const char *mode, size_t bytes,
                int messages) {
    ptl_process_t zero = {.rank = 0};
    ptl_handle_md_t handle;
    ptl_md_t md = {memory, MOST, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(i * 7 + 1);
    CHECK(PtlMDBind(ni, &md, &handle));
    CHECK(spin_barrier());
    for (int i = 0; i < messages; i++) {
        ptl_event_t event;
        uint64_t start = spin_time_ps();
        if (strcmp(mode, "gets") == 0)
            CHECK(PtlGet(handle, 0, bytes, zero, pt, 0, 0, NULL));
        else
            CHECK(PtlPut(handle, 0, bytes, PTL_ACK_REQ, zero, pt, 0, 0, NULL, 0));
        CHECK(PtlEQWait(eq, &event));
        printf("%d: event %d, fail %d, mlength %zu after %llu ps\n", spin_rank(), event.type, event.ni_fail_type,
               (size_t)event.mlength, (unsigned long long)(spin_time_ps() - start));
    }
}

int main(int argc, char **argv) {
    ptl_handle_ni_t ni;
    ptl_pt_index_t pt;
    ptl_handle_eq_t eq;
    const char *mode = argc > 1 ? argv[1] : "puts";
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 8;
    int count = argc > 3 ? atoi(argv[3]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(mode, "barrier") == 0) {
        CHECK(PtlInit());
        for (int i = 0; i < count; i++) {
            spin_host_compute(1000);
            CHECK(spin_barrier());
        }
        printf("%d: met %d times until %llu ps\n", spin_rank(), count, (unsigned long long)spin_time_ps());
        return 0;
    }
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PT, &pt));
    if (spin_rank() == 0)
        serve(ni, pt, eq, mode, (spin_size() - 1) * count);
    else
        ask(ni, pt, eq, mode, bytes, count);
    CHECK(spin_barrier());
    return 0;
}
