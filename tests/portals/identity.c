/* conformance: ranks=1,2,4
 * Processes: ids, maps and their errors, permuted maps, processes that do not exist. */
#include "ring.h"

enum { BYTES = 64 };
static unsigned char source[BYTES], target[BYTES];

static void ids(void) {
    ptl_process_t id, phys;
    ptl_uid_t uid;
    CODE("id", PtlGetId(ni, &id), PTL_OK);
    CODE("physical id", PtlGetPhysId(ni, &phys), PTL_OK);
    CODE("user id", PtlGetUid(ni, &uid), PTL_OK);
    TRUE("physical id is no wildcard", phys.phys.nid != PTL_NID_ANY && phys.phys.pid != PTL_PID_ANY);
    TRUE("user id is no wildcard", uid != PTL_UID_ANY);
    TRUE("physical id is that of the table",
         phys.phys.nid == table[me_].phys.nid && phys.phys.pid == table[me_].phys.pid);
    if (logical)
        EQUAL("id is the rank", id.rank, me_);
    else
        TRUE("id is physical", id.phys.nid == phys.phys.nid && id.phys.pid == phys.phys.pid);
    for (int a = 0; a < size_; a++)
        for (int b = 0; b < a; b++)
            TRUE("physical ids differ",
                 table[a].phys.nid != table[b].phys.nid || table[a].phys.pid != table[b].phys.pid);
}

static void maps(void) {
    ptl_process_t got[8];
    ptl_size_t count = 99;
    memset(got, 0xEE, sizeof got);
    if (!logical) {
        CODE("map of a physical interface", PtlGetMap(ni, 8, got, &count), PTL_ARG_INVALID);
        CODE("map for a physical interface", PtlSetMap(ni, (ptl_size_t)size_, table), PTL_ARG_INVALID);
        return;
    }
    CODE("map", PtlGetMap(ni, 8, got, &count), PTL_OK);
    EQUAL("map size", count, size_);
    SAME_BYTES("map", got, table, (size_t)size_ * sizeof *got);
    memset(got, 0xEE, sizeof got);
    CODE("map, first entry only", PtlGetMap(ni, 1, got, &count), PTL_OK);
    EQUAL("map, first entry only: true size", count, size_);
    TRUE("map, first entry only", got[0].phys.nid == table[0].phys.nid && got[1].phys.nid == 0xEEEEEEEE);
    CODE("map, size only", PtlGetMap(ni, 0, NULL, &count), PTL_OK);
    CODE("map twice", PtlSetMap(ni, (ptl_size_t)size_, table), PTL_IGNORED);
}

/* On a fresh logical interface: no operation works before the map; then ranks are reversed. */
static void permuted(void) {
    ptl_handle_ni_t old = ni;
    ptl_process_t reversed[8], stranger = table[me_], id;
    ptl_size_t count;
    unsigned int kind = (matching ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) | PTL_NI_LOGICAL;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind, PTL_PID_ANY, NULL, NULL, &ni));
    ptl_handle_eq_t eq = queue(8);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_md_t md = descriptor(source, BYTES, 0, eq, PTL_CT_NONE);
    ptl_process_t first = {.rank = 0};
    CODE("no map yet", PtlGetMap(ni, 8, reversed, &count), PTL_NO_SPACE);
    CODE("no rank yet", PtlGetId(ni, &id), PTL_ARG_INVALID);
    CODE("no operation yet", PtlPut(md, 0, 8, PTL_NO_ACK_REQ, first, pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("physical id before the map", PtlGetPhysId(ni, &id), PTL_OK);
    TRUE("physical id before the map", id.phys.nid == table[me_].phys.nid && id.phys.pid == table[me_].phys.pid);
    stranger.phys.nid += 100;
    CODE("map without its process", PtlSetMap(ni, 1, &stranger), PTL_ARG_INVALID);
    CODE("map of nothing", PtlSetMap(ni, 0, table), PTL_ARG_INVALID);
    CODE("map from nowhere", PtlSetMap(ni, 1, NULL), PTL_ARG_INVALID);
    for (int i = 0; i < size_; i++)
        reversed[i] = table[size_ - 1 - i];
    CODE("permuted map", PtlSetMap(ni, (ptl_size_t)size_, reversed), PTL_OK);
    CODE("permuted id", PtlGetId(ni, &id), PTL_OK);
    EQUAL("permuted id", id.rank, size_ - 1 - me_);
    CODE("rank beyond the map",
         PtlPut(md, 0, 8, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)size_}, pt, 0, 0, NULL, 0),
         PTL_ARG_INVALID);
    /* Every process sends its spinrun rank to reversed rank 0, which is the last process. */
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_le_t le = list_entry(&me);
    ptl_handle_me_t handle;
    me.match_id.rank = PTL_RANK_ANY;
    CHECK(matching ? PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, NULL, &handle)
                   : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    barrier();
    CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, first, pt, 0, 0, NULL, (ptl_hdr_data_t)me_));
    int sends = 0, puts = 0;
    for (int left = 1 + (me_ == size_ - 1 ? size_ : 0); left > 0; left--) { /* in any order */
        ptl_event_t event = next_event(eq);
        sends += event.type == PTL_EVENT_SEND;
        puts += event.type == PTL_EVENT_PUT;
        if (event.type == PTL_EVENT_PUT)
            EQUAL("permuted initiator", event.initiator.rank, size_ - 1 - (int)event.hdr_data);
    }
    EQUAL("permuted SEND", sends, 1);
    EQUAL("permuted put", puts, me_ == size_ - 1 ? size_ : 0);
    settle();
    NO_MORE("permuted, others get nothing", eq);
    CHECK(PtlNIFini(ni));
    ni = old;
}

/* Reported once: by SEND if it is enabled, else by the answer. */
static void unknown(void) {
    ptl_handle_eq_t eq = queue(8);
    ptl_handle_ct_t ct = counter();
    ptl_handle_md_t md = descriptor(source, BYTES, 0, eq, PTL_CT_NONE);
    ptl_handle_md_t counted = descriptor(source, BYTES, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct);
    ptl_process_t nobody = table[me_], wildcard = table[me_], wrong_pid = next();
    if (logical)
        return;
    nobody.phys.nid = 5000;
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, nobody, 0, 0, 0, NULL, 0));
    EQUAL("no such node: put", EVENT("no such node: put", eq, PTL_EVENT_SEND).ni_fail_type, PTL_NI_UNDELIVERABLE);
    CHECK(PtlGet(md, 0, 8, nobody, 0, 0, 0, NULL));
    EQUAL("no such node: get", EVENT("no such node: get", eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_UNDELIVERABLE);
    CHECK(PtlPut(counted, 0, 8, PTL_CT_ACK_REQ, nobody, 0, 0, 0, NULL, 0));
    settle();
    COUNTS("no such node: counted", ct, 0, 1);
    NO_MORE("no such node is told of once", eq);
    wrong_pid.phys.pid += 1;
    CHECK(PtlGet(md, 0, 8, wrong_pid, 0, 0, 0, NULL));
    EQUAL("no such process", EVENT("no such process", eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_UNDELIVERABLE);
    wildcard.phys.nid = PTL_NID_ANY;
    CODE("any node is no target", PtlPut(md, 0, 8, PTL_NO_ACK_REQ, wildcard, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
    wildcard = table[me_];
    wildcard.phys.pid = PTL_PID_ANY;
    CODE("any process is no target", PtlPut(md, 0, 8, PTL_NO_ACK_REQ, wildcard, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
}

int main(int argc, char **argv) {
    start(argc, argv);
    ids();
    maps();
    permuted();
    unknown();
    return finish();
}
