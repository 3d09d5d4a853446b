/* conformance: ranks=1,2,4
 * PtlAtomic: every operation on every datatype, events, lengths, several initiators at once. */
#include "operations.h"

enum { ITEMS = 9, BYTES = 1024 };
static unsigned char __attribute__((aligned(32))) data[BYTES], target[BYTES], want[BYTES];

static void pairs(ptl_pt_index_t pt, ptl_handle_eq_t eq, ptl_handle_eq_t own, ptl_handle_md_t md) {
    for (int op = 0; op < PTL_OP_LAST; op++)
        for (int type = 0; type < PTL_DATATYPE_LAST; type++) {
            size_t length = ITEMS * types[type].size;
            const char *name = pair_name("atomic", op, type);
            if (op >= PTL_SWAP || !defined(op, type)) {
                CODE(name,
                     PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, (ptl_op_t)op,
                               (ptl_datatype_t)type),
                     PTL_ARG_INVALID);
                continue;
            }
            clear(target, BYTES);
            for (size_t i = 0; i < ITEMS; i++) {
                static const int there[ITEMS] = {0, 0, 5, -3, 7, 7, 100, 1, -1},
                                 sent[ITEMS] = {0, 3, 0, 4, 7, -7, 1, 1, 1};
                set_item(type, target + 64, i, there[i]);
                set_item(type, data, i, sent[i]);
            }
            memcpy(want, target, BYTES);
            for (size_t i = 0; i < ITEMS; i++)
                combine(op, type, want + 64 + i * types[type].size, data + i * types[type].size, data);
            barrier();
            CHECK(PtlAtomic(md, 0, length, PTL_ACK_REQ, next(), pt, 0, 64, (void *)3, 99, (ptl_op_t)op,
                            (ptl_datatype_t)type));
            ptl_event_t event = EVENT(name, eq, PTL_EVENT_ATOMIC);
            EQUAL(name, event.atomic_operation, op);
            EQUAL(name, event.atomic_type, type);
            EQUAL(name, event.mlength, length);
            EQUAL(name, event.rlength, length);
            EQUAL(name, event.hdr_data, 99);
            EQUAL(name, (uintptr_t)event.start, (uintptr_t)target + 64);
            judge(same_items(type, target + 64, want + 64, ITEMS), __FILE__, __LINE__, name, "wrong result");
            INTACT(name, target, 64);
            INTACT(name, target + 64 + length, BYTES - 64 - length);
            EVENT(name, own, PTL_EVENT_SEND);
            ptl_event_t ack = EVENT(name, own, PTL_EVENT_ACK);
            EQUAL(name, ack.mlength, length);
            EQUAL(name, (uintptr_t)ack.user_ptr, 3);
            barrier();
        }
    CODE("atomic operation out of range",
         PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_OP_LAST, PTL_INT64_T), PTL_ARG_INVALID);
    CODE("atomic datatype out of range",
         PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_DATATYPE_LAST), PTL_ARG_INVALID);
}

static void lengths(ptl_pt_index_t pt, ptl_handle_eq_t eq, ptl_handle_md_t md) {
    ptl_size_t most = limits.max_atomic_size;
    TRUE("atomic max_atomic_size", most >= 8 && most <= BYTES);
    memset(data, 1, BYTES);
    memset(target, 2, BYTES);
    barrier();
    CHECK(PtlAtomic(md, 0, most, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT8_T));
    EQUAL("atomic longest", EVENT("atomic longest", eq, PTL_EVENT_ATOMIC).mlength, most);
    memset(want, 2, BYTES);
    memset(want, 3, most);
    SAME_BYTES("atomic longest data", target, want, BYTES);
    barrier();
    CODE("atomic too long", PtlAtomic(md, 0, most + 1, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT8_T),
         PTL_ARG_INVALID);
    CHECK(PtlAtomic(md, 0, 0, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT8_T));
    EQUAL("atomic of nothing", EVENT("atomic of nothing", eq, PTL_EVENT_ATOMIC).mlength, 0);
    SAME_BYTES("atomic of nothing", target, want, BYTES);
    barrier();
    /* Truncated at the end of the entry: items that fit are combined, memory beyond is unchanged. */
    CHECK(PtlAtomic(md, 0, 16, PTL_NO_ACK_REQ, next(), pt, 0, BYTES - 8, NULL, 0, PTL_SUM, PTL_UINT32_T));
    ptl_event_t event = EVENT("atomic truncated", eq, PTL_EVENT_ATOMIC);
    EQUAL("atomic truncated rlength", event.rlength, 16);
    EQUAL("atomic truncated mlength", event.mlength, 8);
    memset(want + BYTES - 8, 3, 8);
    SAME_BYTES("atomic truncated data", target, want, BYTES);
    CODE("atomic sync", PtlAtomicSync(), PTL_OK);
    barrier();
}

/* All ranks, including the target, add to rank 0's items at the same time; none is lost. */
static void together(ptl_pt_index_t pt, ptl_handle_md_t md) {
    enum { TURNS = 20 };
    uint64_t one[4] = {1, 10, 100, 1000};
    memcpy(data, one, sizeof one);
    memset(target, 0, BYTES);
    barrier();
    for (int i = 0; i < TURNS; i++)
        CHECK(PtlAtomic(md, 0, sizeof one, PTL_NO_ACK_REQ, process(0), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    settle();
    uint64_t got[4];
    memcpy(got, target, sizeof got);
    for (int i = 0; i < 4; i++)
        EQUAL("atomic together", got[i], me_ == 0 ? (unsigned long long)(size_ * TURNS) * one[i] : 0);
    barrier();
}

int main(int argc, char **argv) {
    start(argc, argv);
    ptl_handle_eq_t eq = queue(16), own = queue(16);
    ptl_pt_index_t pt = portal(eq, 0), quiet = portal(PTL_EQ_NONE, 0);
    ptl_handle_md_t md = descriptor(data, BYTES, 0, own, PTL_CT_NONE);
    ptl_handle_md_t silent = descriptor(data, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    append(quiet, entry(target, BYTES, PTL_ME_OP_PUT), PTL_PRIORITY_LIST, NULL);
    pairs(pt, eq, own, md);
    lengths(pt, eq, silent);
    together(quiet, silent);
    return finish();
}
