/* Refused calls, one after the other; `spinrun -v` reports the wrong argument of each, and the reason. */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

static char data[64];
static ptl_handle_ni_t ni, physical;

/* A call that must be refused. */
static void refused(int rc) {
    if (rc == PTL_OK)
        abort();
}

/* A call that must be accepted. */
static void accepted(int rc) {
    if (rc != PTL_OK)
        abort();
}

__handler int nothing(const ptl_header_t h, void *state) {
    (void)h, (void)state;
    return PROCESS_DATA;
}

int main(void) {
    ptl_process_t zero = {.rank = 0}, seven = {.rank = 7}, id;
    ptl_handle_any_t made;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct, elsewhere;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    ptl_pt_index_t index;
    ptl_md_t bound = {.start = data, .length = sizeof data, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_me_t me = {.start = data,
                   .length = sizeof data,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT,
                   .match_id.rank = PTL_RANK_ANY,
                   .hpu_memory = PTL_INVALID_HANDLE};
    refused(PtlEQAlloc(PTL_INVALID_HANDLE, 1, &eq)); /* before PtlInit */
    accepted(PtlInit());
    refused(PtlNIInit(3, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    refused(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
    refused(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, 2000, NULL, NULL, &ni));
    refused(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, NULL));
    accepted(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    accepted(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &physical));
    refused(PtlGetId(ni, &id));
    accepted(PtlMDBind(ni, &bound, &md));
    refused(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0)); /* no map */
    refused(PtlSetMap(ni, 1, &seven));
    accepted(spin_set_map(ni));
    refused(spin_set_map(ni));
    refused(PtlSetMap(physical, 1, &zero));
    refused(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, seven, 0, 0, 0, NULL, 0));
    refused(PtlPut(md, 60, 8, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0));
    refused(PtlPut(md, 0, 8, PTL_ACK_REQ, zero, 0, 0, 0, NULL, 0));
    refused(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, zero, 64, 0, 0, NULL, 0));
    refused(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0, PTL_BOR, PTL_DOUBLE));
    refused(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0, PTL_CSWAP, PTL_INT64_T));
    refused(PtlSwap(md, 0, md, 8, 16, zero, 0, 0, 0, NULL, 0, data, PTL_CSWAP, PTL_INT64_T));
    refused(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, 0, &index));
    accepted(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &index));
    refused(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &index));
    refused(PtlPTFree(ni, 5));
    refused(PtlMEAppend(ni, 5, &me, PTL_PRIORITY_LIST, NULL, &entry));
    refused(PtlMEAppend(ni, 0, NULL, PTL_PRIORITY_LIST, NULL, &entry));
    accepted(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry));
    refused(PtlPTFree(ni, 0));
    accepted(PtlMEUnlink(entry));
    refused(PtlMEUnlink(entry));
    accepted(PtlCTAlloc(ni, &ct));
    accepted(PtlCTAlloc(physical, &elsewhere));
    bound.ct_handle = elsewhere;
    refused(PtlMDBind(ni, &bound, &made));
    refused(PtlCTInc(ct, (ptl_ct_event_t){.success = 1, .failure = 1}));
    refused(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0, elsewhere, 1));
    refused(PtlCTFree(md));
    refused(PtlEQAlloc(ni, 1ull << 30, &eq));
    refused(PtlEQPoll(&eq, 0, 0, &(ptl_event_t){0}, &(unsigned){0}));
    refused(PtlHPUAllocMem(4 << 20, ni, &made));
    refused(PtlHPUAllocMem(0, ni, &made));
    accepted(PtlHPUAllocMem(64, ni, &me.hpu_memory));
    me.header_handler = nothing;
    me.hpu_initial_state = data;
    me.hpu_initial_state_length = 65;
    refused(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry));
    me.hpu_initial_state_length = 64;
    accepted(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry));
    made = me.hpu_memory;
    refused(PtlHPUFreeMem(&made));
    return 0;
}
