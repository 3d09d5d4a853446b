/* conformance: ranks=1
 * What a program sees of the header: values that it relies on, layouts, names of older and of the reference's programs. */
#include "ring.h"
#include <stddef.h>

/* Usable as case labels and in static initialisers. */
static ptl_handle_eq_t no_queue = PTL_EQ_NONE;
static const ptl_process_t first = {.rank = 0}, place = {.phys = {3, 4}};
static const ptl_ct_event_t one = {1, 0};

static int label(int code) {
    switch (code) {
    case PTL_OK: return 0;
    case PTL_ARG_INVALID: return 1;
    case PTL_CT_NONE_REACHED: return 2;
    case PTL_EQ_DROPPED: return 3;
    case PTL_EQ_EMPTY: return 4;
    case PTL_FAIL: return 5;
    case PTL_IGNORED: return 6;
    case PTL_IN_USE: return 7;
    case PTL_LIST_TOO_LONG: return 8;
    case PTL_NO_INIT: return 9;
    case PTL_NO_SPACE: return 10;
    case PTL_PID_IN_USE: return 11;
    case PTL_PT_FULL: return 12;
    case PTL_PT_EQ_NEEDED: return 13;
    case PTL_PT_IN_USE: return 14;
    case PTL_ABORTED: return 15;
    case PTL_INTERRUPTED: return 16;
    default: return -1;
    }
}

#define ORDERED(name, ...)                                                                                             \
    do {                                                                                                               \
        static const int values_[] = {__VA_ARGS__};                                                                    \
        for (size_t i_ = 0; i_ < sizeof values_ / sizeof *values_; i_++)                                               \
            EQUAL(name, values_[i_], i_);                                                                              \
    } while (0)

#define BITS(name, mask, ...)                                                                                          \
    do {                                                                                                               \
        static const unsigned int bits_[] = {__VA_ARGS__};                                                             \
        unsigned int all_ = 0;                                                                                         \
        for (size_t i_ = 0; i_ < sizeof bits_ / sizeof *bits_; i_++) {                                                 \
            TRUE(name, bits_[i_] && !(bits_[i_] & (bits_[i_] - 1)) && !(all_ & bits_[i_]));                            \
            all_ |= bits_[i_];                                                                                         \
        }                                                                                                              \
        EQUAL(name, all_, mask);                                                                                       \
    } while (0)

static void values(void) {
    for (int code = 0; code < PTL_STATUS_LAST; code++)
        TRUE("return codes are distinct", label(code) >= 0);
    EQUAL("PTL_OK", PTL_OK, 0);
    EQUAL("PTL_NI_OK", PTL_NI_OK, 0);
    ORDERED("event kinds", PTL_EVENT_GET, PTL_EVENT_GET_OVERFLOW, PTL_EVENT_PUT, PTL_EVENT_PUT_OVERFLOW,
            PTL_EVENT_ATOMIC, PTL_EVENT_ATOMIC_OVERFLOW, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC_OVERFLOW,
            PTL_EVENT_REPLY, PTL_EVENT_SEND, PTL_EVENT_ACK, PTL_EVENT_PT_DISABLED, PTL_EVENT_LINK,
            PTL_EVENT_AUTO_UNLINK, PTL_EVENT_AUTO_FREE, PTL_EVENT_SEARCH);
    ORDERED("fail types", PTL_NI_OK, PTL_NI_UNDELIVERABLE, PTL_NI_DROPPED, PTL_NI_PT_DISABLED, PTL_NI_PERM_VIOLATION,
            PTL_NI_OP_VIOLATION, PTL_NI_NO_MATCH, PTL_NI_SEGV);
    ORDERED("operations", PTL_MIN, PTL_MAX, PTL_SUM, PTL_PROD, PTL_LOR, PTL_LAND, PTL_BOR, PTL_BAND, PTL_LXOR, PTL_BXOR,
            PTL_SWAP, PTL_CSWAP, PTL_CSWAP_NE, PTL_CSWAP_LE, PTL_CSWAP_LT, PTL_CSWAP_GE, PTL_CSWAP_GT, PTL_MSWAP,
            PTL_OP_LAST);
    ORDERED("datatypes", PTL_INT8_T, PTL_UINT8_T, PTL_INT16_T, PTL_UINT16_T, PTL_INT32_T, PTL_UINT32_T, PTL_FLOAT,
            PTL_INT64_T, PTL_UINT64_T, PTL_DOUBLE, PTL_FLOAT_COMPLEX, PTL_DOUBLE_COMPLEX, PTL_LONG_DOUBLE,
            PTL_LONG_DOUBLE_COMPLEX, PTL_DATATYPE_LAST);
    ORDERED("lists", PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST);
    ORDERED("searches", PTL_SEARCH_ONLY, PTL_SEARCH_DELETE);
    ORDERED("acknowledgements", PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ);
    ORDERED("registers", PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS, PTL_SR_OPERATION_VIOLATIONS, PTL_SR_LAST);
    ORDERED("counter types", PTL_CT_OPERATION, PTL_CT_BYTE);
    EQUAL("PTL_IOVEC", PTL_IOVEC, 1);
    /* P4sPIN's values follow those of Portals; tests/programs/errors.c raises them. */
    EQUAL("PTL_EVENT_HANDLER_ERROR", PTL_EVENT_HANDLER_ERROR, PTL_EVENT_SEARCH + 1);
    EQUAL("PTL_NI_HANDLER_FAIL", PTL_NI_HANDLER_FAIL, PTL_NI_SEGV + 1);
    EQUAL("PTL_NI_HANDLER_TIMEOUT", PTL_NI_HANDLER_TIMEOUT, PTL_NI_SEGV + 2);
    BITS("NI options", PTL_NI_INIT_OPTIONS_MASK, PTL_NI_MATCHING, PTL_NI_NO_MATCHING, PTL_NI_LOGICAL, PTL_NI_PHYSICAL);
    BITS("PT options", PTL_PT_ALLOC_OPTIONS_MASK, PTL_PT_ONLY_USE_ONCE, PTL_PT_FLOWCTRL, PTL_PT_ONLY_TRUNCATE,
         PTL_PT_MATCH_UNORDERED, PTL_PT_ALLOC_DISABLED);
    BITS("MD options", PTL_MD_OPTIONS_MASK, PTL_IOVEC, PTL_MD_EVENT_SUCCESS_DISABLE, PTL_MD_EVENT_CT_SEND,
         PTL_MD_EVENT_CT_REPLY, PTL_MD_EVENT_CT_ACK, PTL_MD_UNORDERED, PTL_MD_VOLATILE, PTL_MD_EVENT_SEND_DISABLE,
         PTL_MD_UNRELIABLE, PTL_MD_EVENT_CT_BYTES);
    BITS("ME options", PTL_ME_APPEND_OPTIONS_MASK, PTL_IOVEC, PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_USE_ONCE,
         PTL_ME_UNEXPECTED_HDR_DISABLE, PTL_ME_IS_ACCESSIBLE, PTL_ME_EVENT_LINK_DISABLE, PTL_ME_EVENT_COMM_DISABLE,
         PTL_ME_EVENT_FLOWCTRL_DISABLE, PTL_ME_EVENT_SUCCESS_DISABLE, PTL_ME_EVENT_OVER_DISABLE,
         PTL_ME_EVENT_UNLINK_DISABLE, PTL_ME_EVENT_CT_COMM, PTL_ME_EVENT_CT_OVERFLOW, PTL_ME_ACK_DISABLE,
         PTL_ME_EVENT_CT_BYTES, PTL_ME_MANAGE_LOCAL, PTL_ME_NO_TRUNCATE, PTL_ME_MAY_ALIGN, PTL_ME_LOCAL_INC_UH_RLENGTH);
    BITS("LE options", PTL_LE_APPEND_OPTIONS_MASK, PTL_IOVEC, PTL_LE_OP_PUT, PTL_LE_OP_GET, PTL_LE_USE_ONCE,
         PTL_LE_UNEXPECTED_HDR_DISABLE, PTL_LE_IS_ACCESSIBLE, PTL_LE_EVENT_LINK_DISABLE, PTL_LE_EVENT_COMM_DISABLE,
         PTL_LE_EVENT_FLOWCTRL_DISABLE, PTL_LE_EVENT_SUCCESS_DISABLE, PTL_LE_EVENT_OVER_DISABLE,
         PTL_LE_EVENT_UNLINK_DISABLE, PTL_LE_EVENT_CT_COMM, PTL_LE_EVENT_CT_OVERFLOW, PTL_LE_ACK_DISABLE,
         PTL_LE_EVENT_CT_BYTES);
    TRUE("LE and ME options are the same",
         PTL_LE_OP_PUT == PTL_ME_OP_PUT && PTL_LE_EVENT_CT_BYTES == PTL_ME_EVENT_CT_BYTES);
    TRUE("MD and ME count bytes by the same bit", PTL_MD_EVENT_CT_BYTES == PTL_ME_EVENT_CT_BYTES);
    BITS("features", 7, PTL_TARGET_BIND_INACCESSIBLE, PTL_TOTAL_DATA_ORDERING, PTL_COHERENT_ATOMICS);
    EQUAL("PTL_SIZE_MAX", PTL_SIZE_MAX, UINT64_MAX);
    TRUE("wildcards and limits", PTL_PID_ANY > PTL_PID_MAX && PTL_NID_ANY > 100000 && PTL_RANK_ANY > 100000 &&
                                     PTL_UID_ANY > 100000 && PTL_PT_ANY > 511 && PTL_TIME_FOREVER > 1000000);
    TRUE("static initialisers", no_queue == PTL_EQ_NONE && first.rank == 0 && place.phys.pid == 4 && one.success == 1);
    TRUE("default interface", PTL_IFACE_DEFAULT == (ptl_interface_t)PTL_IFACE_DEFAULT);
}

static void types(void) {
    EQUAL("sizes", sizeof(ptl_size_t) + sizeof(ptl_match_bits_t) + sizeof(ptl_hdr_data_t), 24);
    EQUAL("indices",
          sizeof(ptl_pt_index_t) + sizeof(ptl_nid_t) + sizeof(ptl_pid_t) + sizeof(ptl_rank_t) + sizeof(ptl_uid_t), 20);
    EQUAL("handles", sizeof(ptl_handle_any_t), 4);
    EQUAL("handles alike",
          sizeof(ptl_handle_ni_t) + sizeof(ptl_handle_eq_t) + sizeof(ptl_handle_ct_t) + sizeof(ptl_handle_md_t) +
              sizeof(ptl_handle_le_t) + sizeof(ptl_handle_me_t),
          24);
    EQUAL("small types",
          sizeof(ptl_list_t) + sizeof(ptl_search_op_t) + sizeof(ptl_ack_req_t) + sizeof(ptl_op_t) +
              sizeof(ptl_datatype_t) + sizeof(ptl_event_kind_t) + sizeof(ptl_ni_fail_t),
          7);
    EQUAL("int types", sizeof(ptl_time_t) + sizeof(ptl_interface_t) + sizeof(ptl_sr_value_t), 12);
    TRUE("enumerations", (ptl_sr_index_t)PTL_SR_DROP_COUNT == 0 && (ptl_ct_type_t)PTL_CT_BYTE == 1);
    TRUE("process", offsetof(ptl_process_t, phys) == 0 && sizeof(ptl_process_t) == 8);
    TRUE("iovec", offsetof(ptl_iovec_t, iov_base) == 0 && offsetof(ptl_iovec_t, iov_len) == sizeof(void *));
    TRUE("counting event", offsetof(ptl_ct_event_t, success) == 0 && offsetof(ptl_ct_event_t, failure) == 8);
    TRUE("MD", offsetof(ptl_md_t, start) < offsetof(ptl_md_t, length) &&
                   offsetof(ptl_md_t, options) < offsetof(ptl_md_t, eq_handle) &&
                   offsetof(ptl_md_t, eq_handle) < offsetof(ptl_md_t, ct_handle));
    TRUE("an ME starts as an LE", offsetof(ptl_me_t, start) == offsetof(ptl_le_t, start) &&
                                      offsetof(ptl_me_t, length) == offsetof(ptl_le_t, length) &&
                                      offsetof(ptl_me_t, ct_handle) == offsetof(ptl_le_t, ct_handle) &&
                                      offsetof(ptl_me_t, uid) == offsetof(ptl_le_t, uid) &&
                                      offsetof(ptl_me_t, options) == offsetof(ptl_le_t, options));
    TRUE("ME order", offsetof(ptl_me_t, match_id) < offsetof(ptl_me_t, match_bits) &&
                         offsetof(ptl_me_t, match_bits) < offsetof(ptl_me_t, ignore_bits) &&
                         offsetof(ptl_me_t, ignore_bits) < offsetof(ptl_me_t, min_free));
    TRUE("event order", offsetof(ptl_event_t, start) == 0 &&
                            offsetof(ptl_event_t, type) < offsetof(ptl_event_t, ptl_list) &&
                            offsetof(ptl_event_t, atomic_operation) < offsetof(ptl_event_t, atomic_type));
    TRUE("limits order", offsetof(ptl_ni_limits_t, max_entries) == 0 &&
                             offsetof(ptl_ni_limits_t, max_msg_size) < offsetof(ptl_ni_limits_t, features));
}

int main(int argc, char **argv) {
    start(argc, argv);
    values();
    types();
    /* An option of older programs is accepted without effect. */
    static unsigned char memory[8];
    ptl_handle_eq_t eq = queue(8);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_md_t md = descriptor(memory, 8, 0, eq, PTL_CT_NONE);
    append(pt, entry(memory, 8, PTL_ME_OP_PUT | PTL_ME_ACK_DISABLE | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST,
           NULL);
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, process(0), pt, 0, 0, NULL, 0));
    settle();
    EVENT("PTL_ME_ACK_DISABLE: SEND", eq, PTL_EVENT_SEND);
    EVENT("PTL_ME_ACK_DISABLE: PUT", eq, PTL_EVENT_PUT);
    EVENT("PTL_ME_ACK_DISABLE: ACK", eq, PTL_EVENT_ACK);
    return finish();
}
