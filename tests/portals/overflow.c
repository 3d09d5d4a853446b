/* conformance: ranks=1,2,4
 * The overflow list: unexpected messages, entries that take them later, AUTO_FREE, entries without headers. */
#include "ring.h"

enum { BYTES = 32768, MESSAGE = 64 };
static unsigned char source[BYTES], pool[BYTES], target[BYTES];
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;
static ptl_handle_md_t md;

static void fresh(void) {
    settle();
    eq = queue(64);
    pt = portal(eq, 0);
    clear(pool, BYTES);
    clear(target, BYTES);
    barrier();
}

static void put(ptl_match_bits_t bits, ptl_size_t length, ptl_hdr_data_t data) {
    CHECK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, next(), pt, bits, 0, NULL, data));
}

static ptl_me_t expecting(ptl_match_bits_t bits, unsigned int options) {
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET | options);
    me.match_bits = bits;
    me.ignore_bits = matching ? 0 : ~(ptl_match_bits_t)0;
    return me;
}

/* An unexpected message lands in the overflow entry; a later entry gets an event for it, without a copy. */
static void once(void) {
    fresh();
    ptl_handle_me_t overflow =
        append(pt, entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST, (void *)0x0F);
    barrier();
    put(7, MESSAGE, 1);
    ptl_event_t event = EVENT("overflow PUT", eq, PTL_EVENT_PUT);
    EQUAL("overflow PUT list", event.ptl_list, PTL_OVERFLOW_LIST);
    EQUAL("overflow PUT user_ptr", (uintptr_t)event.user_ptr, 0x0F);
    EQUAL("overflow PUT start", (uintptr_t)event.start, (uintptr_t)pool);
    FILLED("overflow data", pool, MESSAGE, 1);
    NO_MORE("overflow PUT", eq);
    CODE("overflow entry in use", unlink_entry(overflow), PTL_IN_USE);

    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    ptl_me_t me = expecting(7, PTL_ME_USE_ONCE);
    CODE("overflow append use-once", append_code(pt, &me, PTL_PRIORITY_LIST, (void *)0xE1, &handle), PTL_OK);
    TRUE("overflow handle is written", handle != PTL_INVALID_HANDLE);
    event = EVENT("overflow PUT_OVERFLOW", eq, PTL_EVENT_PUT_OVERFLOW);
    EQUAL("overflow user_ptr of the new entry", (uintptr_t)event.user_ptr, 0xE1);
    EQUAL("overflow start in the old one", (uintptr_t)event.start, (uintptr_t)pool);
    EQUAL("overflow mlength", event.mlength, MESSAGE);
    EQUAL("overflow rlength", event.rlength, MESSAGE);
    EQUAL("overflow hdr_data", event.hdr_data, 1);
    EQUAL("overflow list", event.ptl_list, PTL_OVERFLOW_LIST);
    EQUAL("overflow fail", event.ni_fail_type, PTL_NI_OK);
    TRUE("overflow initiator", same_process(event.initiator, prev()));
    EVENT("overflow use-once is unlinked, never linked", eq, PTL_EVENT_AUTO_UNLINK);
    NO_MORE("overflow use-once", eq);
    CODE("overflow use-once is gone", unlink_entry(handle), PTL_ARG_INVALID);
    INTACT("overflow copies nothing", target, BYTES);
    CODE("overflow entry free again", unlink_entry(overflow), PTL_OK);
    CODE("overflow entry gone", unlink_entry(overflow), PTL_ARG_INVALID);
    NO_MORE("overflow unlinks in silence", eq);
    CODE("overflow portal free", PtlPTFree(ni, pt), PTL_OK);
}

/* A persistent entry takes every matching header, oldest first, and is then linked. */
static void persistent(void) {
    fresh();
    append(pt, entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST, NULL);
    barrier();
    for (ptl_hdr_data_t i = 0; i < 6; i++)
        put(i % 2, 8, i);
    settle();
    for (int i = 0; i < 6; i++)
        EVENT("overflow PUT", eq, PTL_EVENT_PUT);
    ptl_handle_me_t handle = append(pt, expecting(0, 0), PTL_PRIORITY_LIST, NULL);
    for (ptl_hdr_data_t i = 0; i < 6; i++)
        if (i % 2 == 0 || !matching)
            EQUAL("overflow persistent, oldest first",
                  EVENT("overflow persistent", eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    EVENT("overflow persistent is linked", eq, PTL_EVENT_LINK);
    NO_MORE("overflow persistent", eq);
    barrier();
    put(0, 8, 9);
    EQUAL("overflow persistent takes what comes", EVENT("overflow persistent", eq, PTL_EVENT_PUT).ptl_list,
          PTL_PRIORITY_LIST);
    settle();
    CODE("overflow persistent unlink", unlink_entry(handle), PTL_OK);
    if (!matching)
        return;
    /* Use-once takes the oldest only; the others stay. */
    for (ptl_hdr_data_t i = 1; i < 6; i += 2) {
        append(pt, expecting(1, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, NULL);
        EQUAL("overflow one after the other", EVENT("overflow one", eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
        EVENT("overflow one", eq, PTL_EVENT_AUTO_UNLINK);
    }
    append(pt, expecting(1, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, NULL);
    EVENT("overflow exhausted", eq, PTL_EVENT_LINK);
    /* The overflow list itself is not matched with headers. */
    barrier();
    put(5, 8, 0);
    EVENT("overflow PUT", eq, PTL_EVENT_PUT);
    settle();
    append(pt, entry(pool, BYTES, PTL_ME_OP_PUT), PTL_OVERFLOW_LIST, NULL);
    EVENT("overflow list searches nothing", eq, PTL_EVENT_LINK);
    NO_MORE("overflow list searches nothing", eq);
}

/* An exhausted overflow entry stays for its headers: AUTO_FREE after the last. */
static void auto_free(void) {
    fresh();
    ptl_me_t me = entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t overflow = append(pt, me, PTL_OVERFLOW_LIST, (void *)0xF1);
    barrier();
    put(1, 8, 0);
    EVENT("free PUT", eq, PTL_EVENT_PUT);
    EQUAL("free AUTO_UNLINK", (uintptr_t)EVENT("free AUTO_UNLINK", eq, PTL_EVENT_AUTO_UNLINK).user_ptr, 0xF1);
    NO_MORE("free not before its header goes", eq);
    CODE("free unlinked already", unlink_entry(overflow), PTL_ARG_INVALID);
    append(pt, expecting(1, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    EVENT("free claimed", eq, PTL_EVENT_PUT_OVERFLOW);
    ptl_event_t event = EVENT("free AUTO_FREE", eq, PTL_EVENT_AUTO_FREE);
    EQUAL("free AUTO_FREE user_ptr", (uintptr_t)event.user_ptr, 0xF1);
    EQUAL("free AUTO_FREE pt_index", event.pt_index, pt);
    EQUAL("free AUTO_FREE fail", event.ni_fail_type, PTL_NI_OK);
    NO_MORE("free", eq);

    /* An entry used up by the last header is reported after the overflow entry. */
    append(pt, me, PTL_OVERFLOW_LIST, (void *)0xF3);
    barrier();
    put(1, 8, 0);
    EVENT("free order", eq, PTL_EVENT_PUT);
    EVENT("free order", eq, PTL_EVENT_AUTO_UNLINK);
    append(pt, expecting(1, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, (void *)0xF4);
    EVENT("free order", eq, PTL_EVENT_PUT_OVERFLOW);
    EQUAL("free order", (uintptr_t)EVENT("free order", eq, PTL_EVENT_AUTO_FREE).user_ptr, 0xF3);
    EQUAL("free order", (uintptr_t)EVENT("free order", eq, PTL_EVENT_AUTO_UNLINK).user_ptr, 0xF4);

    /* Without headers it is free at once. */
    me.options |= PTL_ME_UNEXPECTED_HDR_DISABLE;
    append(pt, me, PTL_OVERFLOW_LIST, (void *)0xF2);
    barrier();
    put(1, 8, 0);
    EVENT("free without headers", eq, PTL_EVENT_PUT);
    EVENT("free without headers", eq, PTL_EVENT_AUTO_UNLINK);
    EQUAL("free without headers", (uintptr_t)EVENT("free without headers", eq, PTL_EVENT_AUTO_FREE).user_ptr, 0xF2);
    ptl_handle_me_t handle = append(pt, expecting(1, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, NULL);
    EVENT("no header is kept", eq, PTL_EVENT_LINK);
    NO_MORE("no header is kept", eq);
    CHECK(unlink_entry(handle));

    /* Neither AUTO_UNLINK nor AUTO_FREE when they are disabled. */
    me.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
    append(pt, me, PTL_OVERFLOW_LIST, NULL);
    barrier();
    put(1, 8, 0);
    EVENT("free in silence", eq, PTL_EVENT_PUT);
    append(pt, expecting(1, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    EVENT("free in silence", eq, PTL_EVENT_PUT_OVERFLOW);
    settle();
    NO_MORE("free in silence", eq);
    CODE("free portal", PtlPTFree(ni, pt), PTL_OK);
}

/* The kinds of events, their counting and their disabling. */
static void kinds(void) {
    static const int base[] = {PTL_EVENT_GET, PTL_EVENT_PUT, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
    for (int silent = 0; silent < 2; silent++)
        for (int bytes = 0; bytes < 2; bytes++) {
            fresh();
            ptl_me_t me = entry(pool, BYTES,
                                PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM |
                                    (silent ? PTL_ME_EVENT_COMM_DISABLE : 0) | (bytes ? PTL_ME_EVENT_CT_BYTES : 0));
            me.ct_handle = counter();
            append(pt, me, PTL_OVERFLOW_LIST, NULL);
            barrier();
            CHECK(PtlGet(md, 0, 8, next(), pt, 3, 0, NULL));
            put(3, 16, 0);
            CHECK(PtlAtomic(md, 0, 24, PTL_NO_ACK_REQ, next(), pt, 3, 0, NULL, 0, PTL_MAX, PTL_INT8_T));
            CHECK(PtlFetchAtomic(md, 0, md, 0, 32, next(), pt, 3, 0, NULL, 0, PTL_MIN, PTL_UINT8_T));
            settle();
            for (int i = 0; i < 4 && !silent; i++)
                EVENT("overflow communication", eq, base[i]);
            NO_MORE("overflow communication", eq);
            COUNTS("overflow communication counted", me.ct_handle, bytes ? 80 : 4, 0);
            ptl_me_t late =
                expecting(3, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_OVERFLOW |
                                 (silent ? PTL_ME_EVENT_OVER_DISABLE : 0) | (bytes ? PTL_ME_EVENT_CT_BYTES : 0));
            late.ct_handle = counter();
            append(pt, late, PTL_PRIORITY_LIST, NULL);
            for (int i = 0; i < 4 && !silent; i++) {
                ptl_event_t event = EVENT("overflow kind", eq, base[i] + 1);
                EQUAL("overflow kind mlength", event.mlength, 8 * (i + 1));
                if (i == 2)
                    EQUAL("overflow operation", event.atomic_operation, PTL_MAX);
                if (i == 3)
                    EQUAL("overflow datatype", event.atomic_type, PTL_UINT8_T);
            }
            NO_MORE("overflow kinds", eq);
            COUNTS("overflow events counted", late.ct_handle, bytes ? 80 : 4, 0);
        }
}

/* An entry may claim a message whose data is still arriving: the event waits for the data. */
static void arriving(void) {
    fresh();
    append(pt, entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE),
           PTL_OVERFLOW_LIST, NULL);
    fill(source, BYTES, 9);
    barrier();
    put(1, BYTES, 0);
    /* Poll until the header arrives, long before the last of eight packets. */
    for (;;) {
        CHECK(search(pt, expecting(1, PTL_ME_USE_ONCE), PTL_SEARCH_ONLY, NULL));
        if (EVENT("arriving search", eq, PTL_EVENT_SEARCH).ni_fail_type == PTL_NI_OK)
            break;
        spin_host_compute(50);
    }
    append(pt, expecting(1, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, NULL);
    ptl_event_t event = EVENT("arriving claimed", eq, PTL_EVENT_PUT_OVERFLOW);
    EQUAL("arriving mlength", event.mlength, BYTES);
    FILLED("arriving data is complete", pool, BYTES, 9);
    EVENT("arriving unlinked", eq, PTL_EVENT_AUTO_UNLINK);
    NO_MORE("arriving", eq);
    fill(source, BYTES, 1);
}

/* Offsets by rlength of unexpected headers (4.3). */
static void by_rlength(void) {
    if (!matching)
        return;
    fresh();
    append(pt, entry(pool, 4, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST, NULL);
    barrier();
    for (ptl_hdr_data_t i = 0; i < 4; i++)
        put(1, 100, i); /* truncated to 4 bytes */
    settle();
    for (int i = 0; i < 4; i++)
        EQUAL("rlength PUT", EVENT("rlength PUT", eq, PTL_EVENT_PUT).mlength, 4);
    ptl_me_t me = expecting(1, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH);
    me.length = 400;
    me.min_free = 150; /* 300 and 200 bytes are enough, 100 are not */
    append(pt, me, PTL_PRIORITY_LIST, (void *)6);
    for (ptl_hdr_data_t i = 0; i < 3; i++)
        EQUAL("rlength claims", EVENT("rlength claims", eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    EQUAL("rlength used up", (uintptr_t)EVENT("rlength used up", eq, PTL_EVENT_AUTO_UNLINK).user_ptr, 6);
    NO_MORE("rlength never linked", eq);
    /* The fourth header stayed; room is left this time, and the next message is placed after it. */
    me.min_free = 10;
    append(pt, me, PTL_PRIORITY_LIST, NULL);
    EQUAL("rlength the rest", EVENT("rlength the rest", eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 3);
    EVENT("rlength linked", eq, PTL_EVENT_LINK);
    barrier();
    put(1, 20, 4);
    EQUAL("rlength offset", (uintptr_t)EVENT("rlength offset", eq, PTL_EVENT_PUT).start, (uintptr_t)target + 100);
    /* Without the option headers take no room, so min_free does not stop the entry before it is linked. */
    for (ptl_hdr_data_t i = 0; i < 2; i++)
        put(9, 100, i);
    settle();
    for (int i = 0; i < 2; i++)
        EVENT("local PUT", eq, PTL_EVENT_PUT);
    me = expecting(9, PTL_ME_MANAGE_LOCAL);
    me.length = 50;
    me.min_free = 60;
    ptl_handle_me_t handle = append(pt, me, PTL_PRIORITY_LIST, NULL);
    for (ptl_hdr_data_t i = 0; i < 2; i++)
        EQUAL("local claims all", EVENT("local claims all", eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    EVENT("local linked", eq, PTL_EVENT_LINK);
    NO_MORE("local stays", eq);
    CODE("local stays", unlink_entry(handle), PTL_OK);
}

int main(int argc, char **argv) {
    start(argc, argv);
    fill(source, BYTES, 1);
    md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    once();
    persistent();
    auto_free();
    kinds();
    arriving();
    by_rlength();
    return finish();
}
