/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks exchange their ids by PMI as MPICH's clients do, and put around a ring: `pmi ROUNDS`. */
#include "../portals/harness.h"
#include <spin.h>

#include "../../crates/system/world/tests/common/pmi.h"

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    pmi_init();
    int self = pmi_env("PMI_RANK"), size = pmi_env("PMI_SIZE");
    static ptl_process_t map[64];
    static int word = -1;
    ptl_process_t id;
    open_interface(PTL_NI_MATCHING | PTL_NI_PHYSICAL);
    CHECK(PtlGetPhysId(ni, &id));
    pmi_ask("cmd=get_my_kvsname\n");
    pmi_ask("cmd=put kvsname=kvs_spin_0 key=id-%d value=%u:%u\n", self, id.phys.nid, id.phys.pid);
    pmi_barrier();
    for (int i = 0; i < size && i < 64; i++) {
        pmi_ask("cmd=get kvsname=kvs_spin_0 key=id-%d\n", i);
        if (sscanf(pmi_field("value"), "%u:%u", &map[i].phys.nid, &map[i].phys.pid) != 2)
            return 3;
    }
    ptl_pt_index_t pt;
    ptl_handle_ct_t ct;
    ptl_handle_me_t handle;
    ptl_ct_event_t count;
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
    ptl_me_t me = plain_entry(&word, sizeof word, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_handle_md_t md = descriptor(&self, sizeof self, 0, PTL_EQ_NONE, PTL_CT_NONE);
    for (int round = 0; round < rounds; round++) {
        spin_host_compute(100 * (self + 1));
        pmi_barrier();
        CHECK(PtlPut(md, 0, sizeof self, PTL_NO_ACK_REQ, map[(self + 1) % size], pt, 0, 0, NULL, 0));
        CHECK(PtlCTWait(ct, round + 1, &count));
        EXPECT(word == (self + size - 1) % size);
        printf("rank %d has had round %d at %llu ps\n", self, round, (unsigned long long)spin_time_ps());
    }
    pmi_barrier();
    pmi_finalize();
    return close_interface();
}
