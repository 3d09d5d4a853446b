/* conformance: ranks=1,2,4
 * PtlInit, PtlFini, PtlNIInit, PtlNIFini: references, four interfaces at once, handles, pids. */
#include "ring.h"

enum { BYTES = 64 };
static unsigned char source[BYTES], target[4][BYTES];
static const unsigned int kinds[4] = {PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
                                      PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};

static void references(void) {
    ptl_handle_ni_t again;
    ptl_uid_t uid;
    CODE("open again", PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, NULL, NULL, &again), PTL_OK);
    TRUE("open again: the same", PtlHandleIsEqual(again, ni) && again == ni);
    CODE("close once", PtlNIFini(again), PTL_OK);
    CODE("still open", PtlGetUid(ni, &uid), PTL_OK);
    CHECK(PtlInit());
    CHECK(PtlInit());
    PtlFini();
    PtlFini();
    CODE("library still open", PtlGetUid(ni, &uid), PTL_OK);
}

static void pids(void) {
    ptl_handle_ni_t other;
    ptl_process_t phys;
    unsigned int kind = kind_bits() ^ (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
    CHECK(PtlGetPhysId(ni, &phys));
    CODE("another pid", PtlNIInit(PTL_IFACE_DEFAULT, kind, phys.phys.pid + 1, NULL, NULL, &other), PTL_PID_IN_USE);
    CODE("the same pid", PtlNIInit(PTL_IFACE_DEFAULT, kind, phys.phys.pid, NULL, NULL, &other), PTL_OK);
    CHECK(PtlNIFini(other));
    CODE("pid out of range", PtlNIInit(PTL_IFACE_DEFAULT, kind, PTL_PID_MAX + 1, NULL, NULL, &other), PTL_ARG_INVALID);
    CODE("another iface", PtlNIInit(7, kind, PTL_PID_ANY, NULL, NULL, &other), PTL_ARG_INVALID);
}

/* Four at once share nid and pid; each has its own table, lists and counters. */
static void four(void) {
    ptl_handle_ni_t all[4], old = ni;
    ptl_handle_eq_t eqs[4];
    ptl_pt_index_t pts[4];
    int old_matching = matching, old_logical = logical;
    for (int k = 0; k < 4; k++) {
        ptl_process_t phys, id;
        CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kinds[k], PTL_PID_ANY, NULL, NULL, &all[k]));
        if (kinds[k] & PTL_NI_LOGICAL) {
            int rc = PtlSetMap(all[k], (ptl_size_t)size_, table);
            TRUE("four: map", rc == PTL_OK || rc == PTL_IGNORED);
        }
        CHECK(PtlGetPhysId(all[k], &phys));
        TRUE("four: one nid and pid", phys.phys.nid == table[me_].phys.nid && phys.phys.pid == table[me_].phys.pid);
        CHECK(PtlGetId(all[k], &id));
        if (kinds[k] & PTL_NI_LOGICAL)
            EQUAL("four: rank", id.rank, me_);
        for (int j = 0; j < k; j++)
            TRUE("four: different handles", !PtlHandleIsEqual(all[j], all[k]));
    }
    for (int k = 0; k < 4; k++) {
        ni = all[k];
        matching = !!(kinds[k] & PTL_NI_MATCHING);
        logical = !!(kinds[k] & PTL_NI_LOGICAL);
        eqs[k] = queue(8);
        CHECK(PtlPTAlloc(ni, 0, eqs[k], 20, &pts[k])); /* the same index everywhere */
        clear(target[k], BYTES);
        append(pts[k], entry(target[k], BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    }
    barrier();
    for (int k = 0; k < 4; k++) {
        ni = all[k];
        matching = !!(kinds[k] & PTL_NI_MATCHING);
        logical = !!(kinds[k] & PTL_NI_LOGICAL);
        fill(source, BYTES, 10u + (unsigned int)k);
        ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
        CHECK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, next(), 20, 0, 0, NULL, (ptl_hdr_data_t)k));
        ptl_event_t event = EVENT("four: put", eqs[k], PTL_EVENT_PUT);
        EQUAL("four: own messages", event.hdr_data, k);
        TRUE("four: initiator", same_process(event.initiator, prev()));
        FILLED("four: data", target[k], BYTES, 10u + (unsigned int)k);
        barrier();
        for (int j = 0; j < 4; j++)
            NO_MORE("four: no other queue", eqs[j]);
        for (int j = 0; j < 4; j++) {
            ptl_md_t foreign = {
                .start = source, .length = 8, .options = 0, .eq_handle = eqs[j], .ct_handle = PTL_CT_NONE};
            ptl_handle_md_t handle;
            CODE("four: queue of another interface", PtlMDBind(ni, &foreign, &handle),
                 j == k ? PTL_OK : PTL_ARG_INVALID);
            ptl_handle_ni_t owner;
            CODE("owner of a queue", PtlNIHandle(eqs[j], &owner), PTL_OK);
            EQUAL("owner of a queue", owner, all[j]);
        }
        CHECK(PtlMDRelease(md));
    }
    ptl_event_t event;
    unsigned int which;
    CODE("four: poll across interfaces", PtlEQPoll(eqs, 4, 0, &event, &which), PTL_ARG_INVALID);
    ni = old;
    matching = old_matching;
    logical = old_logical;
    for (int k = 0; k < 4; k++) {
        ptl_uid_t uid;
        CHECK(PtlNIFini(all[k]));
        CODE("four: closed or open", PtlGetUid(all[k], &uid), all[k] == ni ? PTL_OK : PTL_ARG_INVALID);
        if (all[k] != ni)
            CODE("four: its objects are gone", PtlEQGet(eqs[k], &event), PTL_ARG_INVALID);
    }
}

/* An answer that arrives after its interface is closed is discarded, even if another interface of its kind is open:
 * that has other handles. */
static void late_answers(void) {
    ptl_event_t event;
    ptl_handle_ni_t old = ni;
    ptl_handle_eq_t eqs[2];
    int old_matching = matching;
    unsigned int kind = kind_bits() ^ (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
    matching = !matching;
    for (int turn = 0; turn < 2; turn++) {
        CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind, PTL_PID_ANY, NULL, NULL, &ni));
        if (logical)
            PtlSetMap(ni, (ptl_size_t)size_, table);
        eqs[turn] = queue(8);
        if (turn == 0) {
            ptl_handle_md_t md = descriptor(source, BYTES, 0, eqs[0], PTL_CT_NONE);
            CHECK(PtlPut(md, 0, BYTES, PTL_ACK_REQ, next(), 20, 0, 0, NULL, 0));
            CHECK(PtlNIFini(ni));
        }
    }
    CODE("late answer: the old handle", PtlEQGet(eqs[0], &event), PTL_ARG_INVALID);
    settle();
    NO_MORE("late answer", eqs[1]);
    CHECK(PtlNIFini(ni));
    ni = old;
    matching = old_matching;
}

/* The interface of every kind of object; the same values in every process. */
static void handles(void) {
    ptl_handle_ni_t owner;
    ptl_handle_eq_t eq = queue(8);
    ptl_handle_ct_t ct = counter();
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_me_t me =
        append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    ptl_handle_any_t objects[5] = {ni, eq, ct, md, me};
    for (int i = 0; i < 5; i++) {
        CODE("owner", PtlNIHandle(objects[i], &owner), PTL_OK);
        EQUAL("owner", owner, ni);
        for (int j = 0; j < 5; j++)
            EQUAL("equal handles", !!PtlHandleIsEqual(objects[i], objects[j]), i == j);
        TRUE("no object has a special handle",
             objects[i] != PTL_INVALID_HANDLE && objects[i] != PTL_EQ_NONE && objects[i] != PTL_CT_NONE);
    }
    TRUE("invalid handles are equal", PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE));
    TRUE("special handles differ",
         PTL_INVALID_HANDLE != PTL_EQ_NONE && PTL_EQ_NONE != PTL_CT_NONE && PTL_CT_NONE != PTL_INVALID_HANDLE);
    CODE("owner of nothing", PtlNIHandle(PTL_INVALID_HANDLE, &owner), PTL_ARG_INVALID);
    barrier();
    for (int i = 0; i < 5; i++) {
        CHECK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, objects[i]));
        EQUAL("same handles in all processes", EVENT("same handles", eq, PTL_EVENT_PUT).hdr_data, objects[i]);
    }
    barrier();
    CHECK(unlink_entry(me));
    CODE("owner of an unlinked entry", PtlNIHandle(me, &owner), PTL_ARG_INVALID);
    CHECK(PtlCTFree(ct));
    CODE("owner of a freed counter", PtlNIHandle(ct, &owner), PTL_ARG_INVALID);
}

int main(int argc, char **argv) {
    ptl_uid_t uid;
    start(argc, argv);
    references();
    pids();
    handles();
    four();
    late_answers();
    barrier();
    /* The last PtlFini frees everything, including open objects. */
    PtlFini();
    CODE("closed library", PtlGetUid(ni, &uid), PTL_NO_INIT);
    start(argc, argv);
    ptl_handle_eq_t eq = queue(4);
    ptl_event_t event;
    CODE("a new start", PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    return finish();
}
