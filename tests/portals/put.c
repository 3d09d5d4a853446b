/* conformance: ranks=1,2,4
 * PtlPut: data, offsets, lengths, acknowledgements, volatile and other hints. */
#include "ring.h"

enum { BYTES = 70000 };
static unsigned char source[BYTES], target[BYTES];

static void lengths(ptl_pt_index_t pt, ptl_handle_eq_t eq, ptl_handle_md_t md) {
    static const ptl_size_t cases[][3] = {
        /* length, local offset, remote offset */
        {0, 0, 0},    {1, 0, 0},    {7, 3, 5},         {8, 0, 64},        {4095, 1, 0},
        {4096, 0, 0}, {4097, 0, 1}, {65536, 17, 4001}, {0, BYTES, BYTES}, {1, BYTES - 1, BYTES - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptl_size_t length = cases[i][0], from = cases[i][1], to = cases[i][2];
        clear(target, BYTES);
        barrier();
        CHECK(PtlPut(md, from, length, PTL_ACK_REQ, next(), pt, 0, to, (void *)0x51, 0xDA7A + i));
        ptl_event_t put = EVENT("put event", eq, PTL_EVENT_PUT);
        EQUAL("put rlength", put.rlength, length);
        EQUAL("put mlength", put.mlength, length);
        EQUAL("put remote_offset", put.remote_offset, to);
        EQUAL("put start", (uintptr_t)put.start, (uintptr_t)target + to);
        EQUAL("put hdr_data", put.hdr_data, 0xDA7A + i);
        TRUE("put initiator", same_process(put.initiator, prev()));
        INTACT("put before", target, to);
        SAME_BYTES("put data", target + to, source + from, length);
        INTACT("put behind", target + to + length, BYTES - to - length);
        barrier();
    }
}

static void acknowledgements(ptl_pt_index_t pt) {
    static const struct {
        ptl_ack_req_t ack;
        int full;
        unsigned int counted;
    } cases[] = {{PTL_NO_ACK_REQ, 0, 0}, {PTL_ACK_REQ, 1, 1}, {PTL_CT_ACK_REQ, 0, 1}, {PTL_OC_ACK_REQ, 0, 1}};
    for (int bytes = 0; bytes < 2; bytes++) {
        for (size_t i = 0; i < 4; i++) {
            ptl_handle_eq_t eq = queue(8);
            ptl_handle_ct_t ct = counter();
            unsigned int options = PTL_MD_EVENT_CT_ACK | (bytes ? PTL_MD_EVENT_CT_BYTES : 0);
            ptl_handle_md_t md = descriptor(source, BYTES, options, eq, ct);
            CHECK(PtlPut(md, 0, 100, cases[i].ack, next(), pt, 0, 32, (void *)0x77, 0));
            settle();
            ptl_event_t send = EVENT("put SEND", eq, PTL_EVENT_SEND);
            EQUAL("put SEND user_ptr", (uintptr_t)send.user_ptr, 0x77);
            EQUAL("put SEND fail", send.ni_fail_type, PTL_NI_OK);
            if (cases[i].full) {
                ptl_event_t ack = EVENT("put ACK", eq, PTL_EVENT_ACK);
                EQUAL("put ACK mlength", ack.mlength, 100);
                EQUAL("put ACK remote_offset", ack.remote_offset, 32);
                EQUAL("put ACK user_ptr", (uintptr_t)ack.user_ptr, 0x77);
                EQUAL("put ACK fail", ack.ni_fail_type, PTL_NI_OK);
                EQUAL("put ACK list", ack.ptl_list, PTL_PRIORITY_LIST);
            }
            NO_MORE("put acknowledgement", eq);
            /* An operation-completed acknowledgement counts operations only. */
            int counts_bytes = bytes && cases[i].ack != PTL_OC_ACK_REQ;
            COUNTS("put counted acknowledgement", ct, cases[i].counted * (counts_bytes ? 100 : 1), 0);
            CHECK(PtlMDRelease(md));
            CHECK(PtlCTFree(ct));
            CHECK(PtlEQFree(eq));
        }
    }
    /* A counting acknowledgement counts only with PTL_MD_EVENT_CT_ACK. */
    ptl_handle_ct_t ct = counter();
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, ct);
    CHECK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    settle();
    COUNTS("put CT ack not counted", ct, 0, 0);
    CODE("put ACK_REQ needs a queue", PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CHECK(PtlMDRelease(md));
    md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    CODE("put CT_ACK_REQ needs a counter", PtlPut(md, 0, 8, PTL_CT_ACK_REQ, next(), pt, 0, 0, NULL, 0),
         PTL_ARG_INVALID);
    CODE("put OC_ACK_REQ needs a counter", PtlPut(md, 0, 8, PTL_OC_ACK_REQ, next(), pt, 0, 0, NULL, 0),
         PTL_ARG_INVALID);
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(ct));
}

/* Acknowledgements of messages without a matching entry. */
static void dropped(void) {
    ptl_handle_eq_t eq = queue(8);
    ptl_handle_ct_t ct = counter();
    ptl_handle_md_t md = descriptor(source, BYTES, PTL_MD_EVENT_CT_ACK, eq, ct);
    ptl_pt_index_t nowhere = (ptl_pt_index_t)limits.max_pt_index;
    ptl_sr_value_t drops;
    CHECK(PtlPut(md, 0, BYTES, PTL_ACK_REQ, next(), nowhere, 0, 0, NULL, 0));
    settle();
    EQUAL("put dropped SEND", EVENT("put dropped SEND", eq, PTL_EVENT_SEND).ni_fail_type, PTL_NI_OK);
    EQUAL("put dropped ACK", EVENT("put dropped ACK", eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_DROPPED);
    COUNTS("put dropped ACK counted", ct, 0, 1);
    CHECK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, next(), nowhere, 0, 0, NULL, 0));
    settle();
    EVENT("put dropped SEND", eq, PTL_EVENT_SEND);
    COUNTS("put dropped CT ack", ct, 0, 2);
    CHECK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, next(), nowhere, 0, 0, NULL, 0));
    settle();
    EVENT("put dropped SEND", eq, PTL_EVENT_SEND);
    NO_MORE("put dropped", eq);
    COUNTS("put OC ack counts even a dropped message", ct, 1, 2);
    CHECK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
    EQUAL("put drop count", drops, 3);
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(ct));
    CHECK(PtlEQFree(eq));
}

static void hints(ptl_pt_index_t pt, ptl_handle_eq_t eq) {
    unsigned char small[64];
    ptl_size_t length = limits.max_volatile_size < sizeof small ? limits.max_volatile_size : sizeof small;
    TRUE("put max_volatile_size", limits.max_volatile_size >= 8);
    ptl_handle_md_t md = descriptor(small, sizeof small, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE);
    clear(target, BYTES);
    barrier();
    fill(small, sizeof small, 5);
    CHECK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    memset(small, 0, sizeof small); /* the buffer is free on return */
    EVENT("put volatile event", eq, PTL_EVENT_PUT);
    FILLED("put volatile data", target, length, 5);
    barrier();
    CHECK(PtlMDRelease(md));

    /* Two messages inside a bundle; bundles nest and are only a hint. */
    md = descriptor(source, BYTES, PTL_MD_UNORDERED | PTL_MD_UNRELIABLE, PTL_EQ_NONE, PTL_CT_NONE);
    clear(target, BYTES);
    barrier();
    CHECK(PtlStartBundle(ni));
    CHECK(PtlStartBundle(ni));
    CHECK(PtlPut(md, 0, 50, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    CHECK(PtlEndBundle(ni));
    CHECK(PtlPut(md, 50, 50, PTL_NO_ACK_REQ, next(), pt, 0, 50, NULL, 0));
    CHECK(PtlEndBundle(ni));
    EVENT("put bundle first", eq, PTL_EVENT_PUT);
    EVENT("put bundle second", eq, PTL_EVENT_PUT);
    SAME_BYTES("put bundle data", target, source, 100);
    CHECK(PtlMDRelease(md));

    /* Read-only memory is a valid source; a released descriptor serves its started operations. */
    static const unsigned char constant[16] = "only to be read";
    md = descriptor((void *)(uintptr_t)constant, sizeof constant, 0, PTL_EQ_NONE, PTL_CT_NONE);
    barrier();
    CHECK(PtlPut(md, 0, sizeof constant, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    int rc;
    while ((rc = PtlMDRelease(md)) == PTL_IN_USE)
        spin_host_compute(100);
    EQUAL("put release during a put", rc, PTL_OK);
    EVENT("put read-only event", eq, PTL_EVENT_PUT);
    SAME_BYTES("put read-only data", target, constant, sizeof constant);
}

int main(int argc, char **argv) {
    start(argc, argv);
    fill(source, BYTES, 1);
    ptl_handle_eq_t eq = queue(64), none = queue(8);
    ptl_pt_index_t pt = portal(eq, 0), quiet = portal(PTL_EQ_NONE, 0);
    ptl_handle_md_t md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, none, PTL_CT_NONE);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    append(quiet, entry(target, BYTES, PTL_ME_OP_PUT), PTL_PRIORITY_LIST, NULL);
    lengths(pt, eq, md);
    acknowledgements(quiet);
    dropped();
    hints(pt, eq);
    return finish();
}
