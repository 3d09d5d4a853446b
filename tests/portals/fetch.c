/* conformance: ranks=1,2,4
 * PtlFetchAtomic and PtlSwap: every operation on every datatype, old values, operands, one descriptor for both ways. */
#include "operations.h"

enum { ITEMS = 8, BYTES = 1024 };
static unsigned char __attribute__((aligned(32))) data[BYTES], old[BYTES], target[BYTES], before[BYTES], want[BYTES];
static ptl_handle_eq_t get_eq, put_eq;
static ptl_handle_md_t get_md, put_md;

static int fetch(ptl_pt_index_t pt, ptl_size_t length, int op, int type, const void *operand) {
    if (op < PTL_SWAP)
        return PtlFetchAtomic(get_md, 32, put_md, 0, length, next(), pt, 0, 64, (void *)5, 77, (ptl_op_t)op,
                              (ptl_datatype_t)type);
    return PtlSwap(get_md, 32, put_md, 0, length, next(), pt, 0, 64, (void *)5, 77, operand, (ptl_op_t)op,
                   (ptl_datatype_t)type);
}

static void one(ptl_pt_index_t pt, ptl_handle_eq_t eq, int op, int type, size_t items, int there, int sent, int with) {
    const char *name = pair_name(op < PTL_SWAP ? "fetch" : "swap", op, type);
    size_t size = types[type].size, length = items * size;
    __attribute__((aligned(32))) unsigned char operand[32];
    clear(target, BYTES);
    clear(old, BYTES);
    set_item(type, operand, 0, with);
    for (size_t i = 0; i < items; i++) {
        set_item(type, target + 64, i, there + (int)i);
        set_item(type, data, i, sent);
    }
    memcpy(before, target, BYTES);
    memcpy(want, target, BYTES);
    for (size_t i = 0; i < items; i++)
        combine(op, type, want + 64 + i * size, data + i * size, operand);
    barrier();
    CHECK(fetch(pt, length, op, type, op == PTL_SWAP ? NULL : operand));
    memset(operand, 0, sizeof operand); /* is copied during the call */
    ptl_event_t event = EVENT(name, eq, PTL_EVENT_FETCH_ATOMIC);
    EQUAL(name, event.atomic_operation, op);
    EQUAL(name, event.atomic_type, type);
    EQUAL(name, event.mlength, length);
    EQUAL(name, event.hdr_data, 77);
    EVENT(name, put_eq, PTL_EVENT_SEND);
    ptl_event_t reply = EVENT(name, get_eq, PTL_EVENT_REPLY);
    EQUAL(name, reply.mlength, length);
    EQUAL(name, reply.remote_offset, 64);
    EQUAL(name, (uintptr_t)reply.user_ptr, 5);
    judge(same_items(type, target + 64, want + 64, items), __FILE__, __LINE__, name, "wrong result");
    judge(same_items(type, old + 32, before + 64, items), __FILE__, __LINE__, name, "wrong old value");
    INTACT(name, old, 32);
    INTACT(name, old + 32 + length, BYTES - 32 - length);
    barrier();
    NO_MORE(name, put_eq);
    NO_MORE(name, get_eq);
}

static void pairs(ptl_pt_index_t pt, ptl_handle_eq_t eq) {
    for (int op = 0; op < PTL_OP_LAST; op++)
        for (int type = 0; type < PTL_DATATYPE_LAST; type++) {
            const char *name = pair_name("fetch", op, type);
            if (!defined(op, type)) {
                CODE(name, fetch(pt, types[type].size, op, type, data), PTL_ARG_INVALID);
            } else if (op > PTL_SWAP) {
                one(pt, eq, op, type, 1, 12, 99, 12); /* operand equal to the target, less, greater */
                one(pt, eq, op, type, 1, 12, 99, -5);
                one(pt, eq, op, type, 1, 12, 99, 85);
                CODE(name, fetch(pt, 2 * types[type].size, op, type, data), PTL_ARG_INVALID);
            } else {
                one(pt, eq, op, type, ITEMS, -2, 3, 0);
            }
        }
    CODE("fetch takes no swaps",
         PtlFetchAtomic(get_md, 0, put_md, 0, 8, next(), pt, 0, 0, NULL, 0, PTL_SWAP, PTL_INT64_T), PTL_ARG_INVALID);
    CODE("swap takes no sums", PtlSwap(get_md, 0, put_md, 0, 8, next(), pt, 0, 0, NULL, 0, NULL, PTL_SUM, PTL_INT64_T),
         PTL_ARG_INVALID);
}

/* One descriptor and place for both directions: the old buffer is sent, then overwritten by the reply. */
static void same_place(ptl_pt_index_t pt, ptl_handle_eq_t eq) {
    uint64_t mine = 5, theirs;
    memcpy(data, &mine, 8);
    theirs = 37;
    memcpy(target, &theirs, 8);
    barrier();
    CHECK(PtlFetchAtomic(put_md, 0, put_md, 0, 8, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    EVENT("fetch in place SEND", put_eq, PTL_EVENT_SEND);
    EVENT("fetch in place REPLY", put_eq, PTL_EVENT_REPLY);
    EVENT("fetch in place event", eq, PTL_EVENT_FETCH_ATOMIC);
    memcpy(&mine, data, 8);
    memcpy(&theirs, target, 8);
    EQUAL("fetch in place, old value", mine, 37);
    EQUAL("fetch in place, new value", theirs, 42);
    barrier();
}

static void counted(ptl_pt_index_t pt) {
    for (int bytes = 0; bytes < 2; bytes++) {
        ptl_handle_ct_t get_ct = counter(), put_ct = counter();
        unsigned int more = bytes ? PTL_MD_EVENT_CT_BYTES : 0;
        ptl_handle_md_t get = descriptor(old, BYTES, PTL_MD_EVENT_CT_REPLY | more, PTL_EQ_NONE, get_ct);
        ptl_handle_md_t put = descriptor(data, BYTES, PTL_MD_EVENT_CT_SEND | more, PTL_EQ_NONE, put_ct);
        barrier();
        CHECK(PtlFetchAtomic(get, 0, put, 0, 24, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        settle();
        COUNTS("fetch counts REPLY", get_ct, bytes ? 24 : 1, 0);
        COUNTS("fetch counts SEND", put_ct, bytes ? 24 : 1, 0);
        CHECK(PtlFetchAtomic(get, 0, put, 0, 8, next(), (ptl_pt_index_t)limits.max_pt_index, 0, 0, NULL, 0, PTL_SUM,
                             PTL_UINT64_T));
        settle();
        COUNTS("fetch dropped counts REPLY", get_ct, bytes ? 24 : 1, 1);
        COUNTS("fetch dropped counts SEND", put_ct, bytes ? 32 : 2, 0);
        CHECK(PtlMDRelease(get));
        CHECK(PtlMDRelease(put));
    }
    CODE("fetch too long",
         PtlFetchAtomic(get_md, 0, put_md, 0, limits.max_fetch_atomic_size + 8, next(), pt, 0, 0, NULL, 0, PTL_SUM,
                        PTL_UINT64_T),
         PTL_ARG_INVALID);
}

/* A fetching atomic needs both permissions. */
static void permission(void) {
    static const unsigned int options[] = {PTL_ME_OP_PUT, PTL_ME_OP_GET};
    for (int i = 0; i < 2; i++) {
        ptl_pt_index_t pt = portal(PTL_EQ_NONE, 0);
        append(pt, entry(target, BYTES, options[i]), PTL_PRIORITY_LIST, NULL);
        barrier();
        CHECK(PtlFetchAtomic(get_md, 0, put_md, 0, 8, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EVENT("fetch needs both SEND", put_eq, PTL_EVENT_SEND);
        EQUAL("fetch needs both", EVENT("fetch needs both", get_eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_OP_VIOLATION);
    }
}

/* Every rank draws tickets of rank 0; no ticket is drawn twice. */
static void tickets(ptl_pt_index_t pt) {
    enum { TURNS = 10 };
    uint64_t ticket = 1, drawn, mask = 0;
    memcpy(data, &ticket, 8);
    memset(target, 0, BYTES);
    barrier();
    for (int i = 0; i < TURNS; i++) {
        CHECK(PtlFetchAtomic(get_md, 0, put_md, 0, 8, process(0), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EVENT("fetch tickets SEND", put_eq, PTL_EVENT_SEND);
        EVENT("fetch tickets REPLY", get_eq, PTL_EVENT_REPLY);
        memcpy(&drawn, old, 8);
        TRUE("fetch tickets", drawn < (uint64_t)(size_ * TURNS) && !(mask >> drawn & 1));
        mask |= UINT64_C(1) << drawn;
    }
    /* Together the ranks draw all numbers: rank 0 collects the masks. */
    memcpy(data, &mask, 8);
    barrier();
    CHECK(PtlFetchAtomic(get_md, 0, put_md, 0, 8, process(0), pt, 0, 8, NULL, 0, PTL_BXOR, PTL_UINT64_T));
    settle();
    memcpy(&drawn, target + 8, 8);
    if (me_ == 0)
        EQUAL("fetch tickets together", drawn, (UINT64_C(1) << (size_ * TURNS)) - 1);
}

int main(int argc, char **argv) {
    start(argc, argv);
    get_eq = queue(16);
    put_eq = queue(16);
    ptl_handle_eq_t eq = queue(16);
    ptl_pt_index_t pt = portal(eq, 0), quiet = portal(PTL_EQ_NONE, 0);
    unsigned int options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    get_md = descriptor(old, BYTES, 0, get_eq, PTL_CT_NONE);
    put_md = descriptor(data, BYTES, 0, put_eq, PTL_CT_NONE);
    append(pt, entry(target, BYTES, options), PTL_PRIORITY_LIST, NULL);
    append(quiet, entry(target, BYTES, options), PTL_PRIORITY_LIST, NULL);
    pairs(pt, eq);
    same_place(pt, eq);
    counted(quiet);
    permission();
    tickets(quiet);
    return finish();
}
