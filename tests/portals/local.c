/* conformance: ranks=1,2,4
 * PTL_ME_MANAGE_LOCAL, min_free, PTL_ME_MAY_ALIGN, PTL_ME_NO_TRUNCATE: entries of matching interfaces. */
#include "ring.h"

enum { BYTES = 256 };
static unsigned char source[BYTES], target[BYTES];
static ptl_handle_eq_t eq, acks;
static ptl_pt_index_t pt;
static ptl_handle_md_t md;

static ptl_event_t answer(const char *name) {
    ptl_event_t event = next_event(acks);
    TRUE(name, event.type == PTL_EVENT_ACK || event.type == PTL_EVENT_REPLY);
    return event;
}

/* One message; compares the target's event. */
static void put(const char *name, ptl_size_t length, ptl_size_t offset, ptl_size_t placed, ptl_size_t moved) {
    settle();
    CHECK(PtlPut(md, 0, length, PTL_ACK_REQ, next(), pt, 0, offset, NULL, 0));
    ptl_event_t ack = answer(name), event = EVENT(name, eq, PTL_EVENT_PUT);
    EQUAL(name, ack.ni_fail_type, PTL_NI_OK);
    EQUAL(name, ack.remote_offset, placed);
    EQUAL(name, ack.mlength, moved);
    EQUAL(name, (uintptr_t)event.start, (uintptr_t)target + placed);
    EQUAL(name, event.mlength, moved);
    EQUAL(name, event.rlength, length);
    EQUAL(name, event.remote_offset, offset);
    SAME_BYTES(name, target + placed, source, moved);
}

static void dropped(const char *name, ptl_size_t length, ptl_size_t offset) {
    settle();
    CHECK(PtlPut(md, 0, length, PTL_ACK_REQ, next(), pt, 0, offset, NULL, 0));
    EQUAL(name, answer(name).ni_fail_type, PTL_NI_DROPPED);
    settle();
    NO_MORE(name, eq);
}

static ptl_handle_me_t add(unsigned int options, ptl_size_t length, ptl_size_t min_free) {
    ptl_me_t me = entry(target, length, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options);
    me.min_free = min_free;
    clear(target, BYTES);
    return append(pt, me, PTL_PRIORITY_LIST, (void *)0x1C);
}

static void managed(void) {
    ptl_handle_me_t handle = add(PTL_ME_MANAGE_LOCAL, 100, 0);
    put("local first", 10, 77, 0, 10);
    put("local second", 0, 0, 10, 0);
    put("local third", 30, 500, 10, 30);
    settle();
    CHECK(PtlGet(md, 0, 20, next(), pt, 0, 3, NULL)); /* gets move the offset, too */
    ptl_event_t reply = answer("local get");
    EQUAL("local get offset", reply.remote_offset, 40);
    EVENT("local get", eq, PTL_EVENT_GET);
    put("local after a get", 5, 0, 60, 5);
    put("local truncated", 50, 0, 65, 35);
    put("local full", 50, 0, 100, 0); /* without min_free it stays linked */
    settle();
    CHECK(unlink_entry(handle));
    INTACT("local nothing behind", target + 100, BYTES - 100);
}

static void min_free(void) {
    fill(source, BYTES, 8);
    add(PTL_ME_MANAGE_LOCAL, 100, 40);
    put("min_free 100 left", 30, 0, 0, 30);
    put("min_free 70 left", 30, 0, 30, 30); /* 40 left is enough */
    NO_MORE("min_free not yet", eq);
    put("min_free 40 left", 1, 0, 60, 1);
    EQUAL("min_free unlinks", (uintptr_t)EVENT("min_free unlinks", eq, PTL_EVENT_AUTO_UNLINK).user_ptr, 0x1C);
    dropped("min_free gone", 1, 0);
    /* The last message may be truncated heavily. */
    add(PTL_ME_MANAGE_LOCAL, 100, 1);
    put("min_free last", 200, 0, 0, 100);
    EVENT("min_free last", eq, PTL_EVENT_AUTO_UNLINK);
    /* Ignored without MANAGE_LOCAL. */
    ptl_handle_me_t handle = add(0, 100, 101);
    put("min_free ignored", 10, 0, 0, 10);
    settle();
    NO_MORE("min_free ignored", eq);
    CODE("min_free ignored", unlink_entry(handle), PTL_OK);
}

static void no_truncate(void) {
    ptl_handle_me_t handle = add(PTL_ME_NO_TRUNCATE, 100, 0);
    put("no-truncate fits", 100, 0, 0, 100);
    put("no-truncate fits at the end", 10, 90, 90, 10);
    dropped("no-truncate too long", 101, 0);
    dropped("no-truncate too far", 10, 91);
    put("no-truncate nothing at the end", 0, 100, 100, 0);
    settle();
    CHECK(unlink_entry(handle));
    /* The next entry is tried. */
    handle = add(PTL_ME_NO_TRUNCATE, 10, 0);
    ptl_handle_me_t wide = add(0, 50, 0);
    put("no-truncate first", 10, 0, 0, 10);
    put("no-truncate second", 60, 0, 0, 50);
    settle();
    CHECK(unlink_entry(handle));
    CHECK(unlink_entry(wide));
    /* With MANAGE_LOCAL the room left counts. */
    handle = add(PTL_ME_NO_TRUNCATE | PTL_ME_MANAGE_LOCAL, 100, 0);
    put("no-truncate local", 60, 0, 0, 60);
    dropped("no-truncate local, 40 left", 41, 0);
    put("no-truncate local, exactly", 40, 0, 60, 40);
    settle();
    CHECK(unlink_entry(handle));
}

/* Placement may be aligned: order and room hold, and the events give the location of the data. */
static void may_align(void) {
    ptl_handle_me_t handle = add(PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN, BYTES, 0);
    uintptr_t end = (uintptr_t)target;
    for (int i = 0; i < 4; i++) {
        settle();
        CHECK(PtlPut(md, 0, 5, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
        answer("may-align");
        ptl_event_t event = EVENT("may-align", eq, PTL_EVENT_PUT);
        TRUE("may-align behind the last", (uintptr_t)event.start >= end && (uintptr_t)event.start < end + 64);
        SAME_BYTES("may-align data", event.start, source, 5);
        end = (uintptr_t)event.start + 5;
    }
    settle();
    CHECK(unlink_entry(handle));
}

/* All ranks send to rank 0 at once; no two messages overlap. */
static void together(void) {
    enum { EACH = 4, LENGTH = 16 };
    ptl_handle_me_t handle = add(PTL_ME_MANAGE_LOCAL, BYTES, 0);
    memset(source, 'A' + me_, BYTES);
    settle();
    for (int i = 0; i < EACH; i++)
        CHECK(PtlPut(md, 0, LENGTH, PTL_ACK_REQ, process(0), pt, 0, 0, NULL, 0));
    for (int i = 0; i < EACH; i++)
        answer("local together");
    settle();
    int counts[4] = {0}, whole = 1;
    for (int i = 0; me_ == 0 && i < EACH * size_; i++) {
        EVENT("local together", eq, PTL_EVENT_PUT);
        unsigned char *at = target + i * LENGTH;
        for (int k = 1; k < LENGTH; k++)
            whole &= at[k] == at[0];
        counts[(at[0] - 'A') & 3]++;
    }
    for (int i = 0; me_ == 0 && i < size_; i++)
        EQUAL("local together", counts[i], EACH);
    TRUE("local together", whole);
    CHECK(unlink_entry(handle));
}

int main(int argc, char **argv) {
    arguments(argc, argv);
    skip_unless(matching);
    start(argc, argv);
    fill(source, BYTES, 8);
    eq = queue(64);
    acks = queue(64);
    pt = portal(eq, 0);
    md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, acks, PTL_CT_NONE);
    managed();
    min_free();
    no_truncate();
    may_align();
    together();
    return finish();
}
