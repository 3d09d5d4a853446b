/* conformance: ranks=1,2,4
 * Descriptors and entries over the whole address space, where an offset is an address; memory that is not there. */
#include "ring.h"

enum { BYTES = 9000 };
static unsigned char source[BYTES], target[BYTES];
static uint64_t addresses[2], theirs[2], word;

int main(int argc, char **argv) {
    start(argc, argv);
    unsigned char *heap = malloc(BYTES), stack[64];
    ptl_handle_eq_t eq = queue(16), own = queue(16);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_md_t md = descriptor(NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    append(pt, entry(NULL, PTL_SIZE_MAX, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST,
           NULL);
    addresses[0] = (uintptr_t)target;
    addresses[1] = (uintptr_t)heap;
    fill(source, BYTES, (unsigned int)me_);
    fill(heap, BYTES, 50u + (unsigned int)me_);
    clear(target, BYTES);
    /* Address of the neighbour's memory: in a table whose address every process sends in turn. */
    ptl_pt_index_t guide = portal(PTL_EQ_NONE, 0);
    append(guide, entry(addresses, sizeof addresses, PTL_ME_OP_GET), PTL_PRIORITY_LIST, NULL);
    barrier();
    CHECK(PtlGet(md, (uintptr_t)theirs, sizeof theirs, next(), guide, 0, 0, NULL));
    EVENT("space addresses", own, PTL_EVENT_REPLY);

    CHECK(PtlPut(md, (uintptr_t)source + 5, 5000, PTL_ACK_REQ, next(), pt, 0, theirs[0] + 7, NULL, 0));
    ptl_event_t event = EVENT("space put", eq, PTL_EVENT_PUT);
    EQUAL("space put start", (uintptr_t)event.start, (uintptr_t)target + 7);
    EQUAL("space put mlength", event.mlength, 5000);
    EQUAL("space put offset", event.remote_offset, (uintptr_t)target + 7);
    EQUAL("space put ACK", EVENT("space put ACK", own, PTL_EVENT_ACK).remote_offset, theirs[0] + 7);
    INTACT("space put before", target, 7);
    for (size_t i = 0; i < 5000; i += 499)
        EQUAL("space put data", target[7 + i], pattern(5 + i, (unsigned int)prev_rank()));
    INTACT("space put behind", target + 5007, BYTES - 5007);

    /* A process with unmapped memory gets the error, and no other memory is written. */
    if (limits.features & PTL_TARGET_BIND_INACCESSIBLE) {
        CHECK(PtlPut(md, 16, 5000, PTL_ACK_REQ, next(), pt, 0, theirs[0] + 7, NULL, 0));
        EQUAL("space put from nowhere", EVENT("space put from nowhere", own, PTL_EVENT_ACK).ni_fail_type, PTL_NI_SEGV);
        settle();
        for (size_t i = 0; i < 5000; i += 499)
            EQUAL("space put from nowhere data", target[7 + i], pattern(5 + i, (unsigned int)prev_rank()));
        NO_MORE("space put from nowhere event", eq);
    }

    CHECK(PtlGet(md, (uintptr_t)stack, sizeof stack, next(), pt, 0, theirs[1] + 100, NULL));
    EVENT("space get", own, PTL_EVENT_REPLY);
    EVENT("space get", eq, PTL_EVENT_GET);
    for (size_t i = 0; i < sizeof stack; i++)
        if (stack[i] != pattern(100 + i, 50u + (unsigned int)next_rank()))
            TRUE("space get data", 0);

    word = 5;
    addresses[0] = 100;
    ptl_pt_index_t open = portal(PTL_EQ_NONE, 0);
    append(open, entry(NULL, PTL_SIZE_MAX, PTL_ME_OP_PUT | PTL_ME_OP_GET), PTL_PRIORITY_LIST, NULL);
    theirs[0] = (uintptr_t)&addresses[0];
    settle();
    if (size_ == 1) { /* only its own address is known */
        CHECK(PtlFetchAtomic(md, (uintptr_t)&theirs[1], md, (uintptr_t)&word, 8, next(), open, 0, theirs[0], NULL, 0,
                             PTL_SUM, PTL_UINT64_T));
        EVENT("space atomic", own, PTL_EVENT_REPLY);
        EQUAL("space atomic", addresses[0], 105);
        EQUAL("space atomic, old value", theirs[1], 100);
    }
    settle();

    /* Unmapped memory: the answer reports it, and no other memory is affected. */
    if (limits.features & PTL_TARGET_BIND_INACCESSIBLE) {
        CHECK(PtlPut(md, (uintptr_t)source, 8, PTL_ACK_REQ, next(), open, 0, 16, NULL, 0));
        EQUAL("space put to nowhere", EVENT("space put to nowhere", own, PTL_EVENT_ACK).ni_fail_type, PTL_NI_SEGV);
        CHECK(PtlGet(md, (uintptr_t)target, 8, next(), open, 0, 16, NULL));
        EQUAL("space get from nowhere", EVENT("space get from nowhere", own, PTL_EVENT_REPLY).ni_fail_type,
              PTL_NI_SEGV);
        CHECK(PtlAtomic(md, (uintptr_t)source, 8, PTL_ACK_REQ, next(), open, 0, 16, NULL, 0, PTL_SUM, PTL_INT8_T));
        EQUAL("space atomic to nowhere", EVENT("space atomic to nowhere", own, PTL_EVENT_ACK).ni_fail_type,
              PTL_NI_SEGV);
        settle();
    }
    CHECK(PtlPut(md, (uintptr_t)source, 8, PTL_ACK_REQ, next(), pt, 0, (uintptr_t)0, NULL, 0));
    next_event(own);
    settle();

    /* An empty descriptor needs no memory. */
    ptl_handle_md_t nothing = descriptor(NULL, 0, PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    ptl_pt_index_t empty = portal(PTL_EQ_NONE, 0);
    append(empty, entry(NULL, 0, PTL_ME_OP_PUT), PTL_PRIORITY_LIST, NULL);
    settle();
    CHECK(PtlPut(nothing, 0, 0, PTL_ACK_REQ, next(), empty, 0, 0, NULL, 0));
    EQUAL("space of nothing", EVENT("space of nothing", own, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
    CHECK(PtlPut(md, (uintptr_t)source, 100, PTL_ACK_REQ, next(), empty, 0, 0, NULL, 0));
    EQUAL("space of nothing, truncated", EVENT("space of nothing, truncated", own, PTL_EVENT_ACK).mlength, 0);
    free(heap);
    return finish();
}
