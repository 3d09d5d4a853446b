/* conformance: ranks=1,2,4
 * Users and operations that an entry does not accept; status registers. */
#include "ring.h"

enum { BYTES = 64 };
static unsigned char source[BYTES], target[BYTES];
static ptl_handle_eq_t eq, own;
static ptl_handle_md_t md;

static void registers(const char *name, int drops, int users, int operations) {
    static const ptl_sr_index_t index[] = {PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS,
                                           PTL_SR_OPERATION_VIOLATIONS};
    int want[3] = {drops, users, operations};
    for (int i = 0; i < 3; i++) {
        ptl_sr_value_t got = -1;
        CODE(name, PtlNIStatus(ni, index[i], &got), PTL_OK);
        EQUAL(name, got, want[i]);
    }
}

/* Each operation on entry options; `fail` is the expected failure in its answer. */
static void attempt(const char *name, int kind, ptl_pt_index_t pt, int fail) {
    settle();
    if (kind == 0)
        CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    if (kind == 1)
        CHECK(PtlGet(md, 0, 8, next(), pt, 0, 0, NULL));
    if (kind == 2)
        CHECK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T));
    if (kind == 3)
        CHECK(PtlFetchAtomic(md, 0, md, 0, 8, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T));
    if (kind == 4)
        CHECK(PtlSwap(md, 0, md, 0, 8, next(), pt, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT8_T));
    ptl_event_t answer = EVENT(name, own, kind == 0 || kind == 2 ? PTL_EVENT_ACK : PTL_EVENT_REPLY);
    EQUAL(name, answer.ni_fail_type, fail);
    EQUAL(name, answer.mlength, fail ? 0 : 8);
    settle();
    if (fail == PTL_NI_OK)
        next_event(eq);
    else
        INTACT(name, target, BYTES);
    NO_MORE(name, eq);
}

int main(int argc, char **argv) {
    static const unsigned int accepts[] = {0, PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_OP_PUT | PTL_ME_OP_GET};
    static const int needs[] = {1, 2, 1, 3, 3}; /* bits of `accepts` */
    ptl_uid_t uid;
    int users = 0, operations = 0;
    start(argc, argv);
    registers("registers start at 0", 0, 0, 0);
    eq = queue(16);
    own = queue(16);
    md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    CHECK(PtlGetUid(ni, &uid));
    for (int a = 0; a < 4; a++)
        for (int kind = 0; kind < 5; kind++) {
            ptl_pt_index_t pt = portal(eq, 0);
            clear(target, BYTES);
            /* Use-once: a refused message leaves the entry where it is. */
            ptl_handle_me_t handle =
                append(pt,
                       entry(target, BYTES,
                             accepts[a] | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE),
                       PTL_PRIORITY_LIST, NULL);
            int fine = (a & needs[kind]) == needs[kind];
            attempt("operation permitted or not", kind, pt, fine ? PTL_NI_OK : PTL_NI_OP_VIOLATION);
            operations += !fine;
            registers("operation violations", 0, 0, operations);
            CODE("operation violation leaves the list", unlink_entry(handle), fine ? PTL_ARG_INVALID : PTL_OK);
            settle();
            CHECK(PtlPTFree(ni, pt));
        }
    for (int mine = 0; mine < 2; mine++) {
        ptl_pt_index_t pt = portal(eq, 0);
        ptl_me_t me = entry(target, BYTES, PTL_ME_EVENT_LINK_DISABLE | (mine ? PTL_ME_OP_PUT : 0));
        me.uid = mine ? uid : uid + 1;
        clear(target, BYTES);
        append(pt, me, PTL_PRIORITY_LIST, NULL);
        /* No further search: a later entry for all users is not tried. The user is checked first. */
        append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
        attempt(mine ? "user of the entry" : "another user's entry", 0, pt, mine ? PTL_NI_OK : PTL_NI_PERM_VIOLATION);
        users += !mine;
        registers("permission violations", 0, users, operations);
    }
    /* Drops: no match, no such portal table entry, a disabled one. */
    ptl_pt_index_t empty = portal(eq, 0), off = portal(eq, PTL_PT_ALLOC_DISABLED);
    append(off, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    clear(target, BYTES);
    attempt("drop: no entry", 0, empty, PTL_NI_DROPPED);
    registers("drop count", 1, users, operations);
    attempt("drop: no portal table entry", 1, (ptl_pt_index_t)limits.max_pt_index, PTL_NI_DROPPED);
    registers("drop count", 2, users, operations);
    attempt("drop: disabled", 0, off, PTL_NI_PT_DISABLED);
    registers("drop count", 3, users, operations);
    ptl_sr_value_t status;
    CODE("register out of range", PtlNIStatus(ni, PTL_SR_LAST, &status), PTL_ARG_INVALID);
    return finish();
}
