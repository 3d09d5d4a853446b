/* conformance: ranks=1,2,4
 * Messages longer than the room at the target, in every operation. */
#include "ring.h"

enum { BYTES = 12000, ROOM = 5000 };
static unsigned char source[BYTES], target[BYTES], result[BYTES];

int main(int argc, char **argv) {
    static const ptl_size_t cases[][3] = {/* length, offset, bytes moved */
                                          {ROOM, 0, ROOM},    {BYTES, 0, ROOM},     {100, ROOM - 1, 1},
                                          {100, ROOM, 0},     {100, ROOM + 1, 0},   {BYTES, 904, 4096},
                                          {BYTES, 903, 4097}, {5, PTL_SIZE_MAX, 0}, {0, ROOM + 7, 0}};
    start(argc, argv);
    ptl_handle_eq_t eq = queue(16), own = queue(16);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_md_t md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    ptl_handle_md_t into = descriptor(result, BYTES, 0, own, PTL_CT_NONE);
    append(pt, entry(target, ROOM, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    fill(source, BYTES, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptl_size_t length = cases[i][0], offset = cases[i][1], moved = cases[i][2];
        clear(target, BYTES);
        clear(result, BYTES);
        barrier();
        CHECK(PtlPut(md, 0, length, PTL_ACK_REQ, next(), pt, 0, offset, NULL, 0));
        ptl_event_t ack = EVENT("truncated put ACK", own, PTL_EVENT_ACK);
        ptl_event_t event = EVENT("truncated put", eq, PTL_EVENT_PUT);
        EQUAL("truncated put ACK fail", ack.ni_fail_type, PTL_NI_OK);
        EQUAL("truncated put ACK mlength", ack.mlength, moved);
        EQUAL("truncated put rlength", event.rlength, length);
        EQUAL("truncated put mlength", event.mlength, moved);
        if (moved)
            SAME_BYTES("truncated put data", target + offset, source, moved);
        INTACT("truncated put before", target, offset < ROOM ? offset : ROOM);
        INTACT("truncated put behind", target + ROOM, BYTES - ROOM);
        barrier();
        CHECK(PtlGet(into, 0, length, next(), pt, 0, offset, NULL));
        ptl_event_t reply = EVENT("truncated get REPLY", own, PTL_EVENT_REPLY);
        event = EVENT("truncated get", eq, PTL_EVENT_GET);
        EQUAL("truncated get REPLY mlength", reply.mlength, moved);
        EQUAL("truncated get rlength", event.rlength, length);
        EQUAL("truncated get mlength", event.mlength, moved);
        if (moved)
            SAME_BYTES("truncated get data", result, source, moved);
        INTACT("truncated get behind", result + moved, BYTES - moved);
        barrier();
    }
    /* Atomics: whole items only. */
    uint32_t items[4] = {1, 2, 3, 4}, tail = 10, old[4] = {0};
    memcpy(source, items, sizeof items);
    memcpy(target + ROOM - 8, &tail, 4);
    memcpy(target + ROOM - 4, &tail, 4);
    barrier();
    CHECK(PtlFetchAtomic(into, 0, md, 0, 16, next(), pt, 0, ROOM - 8, NULL, 0, PTL_SUM, PTL_UINT32_T));
    EQUAL("truncated fetch", EVENT("truncated fetch", own, PTL_EVENT_REPLY).mlength, 8);
    EQUAL("truncated fetch", EVENT("truncated fetch", eq, PTL_EVENT_FETCH_ATOMIC).mlength, 8);
    memcpy(old, result, sizeof old);
    TRUE("truncated fetch old values", old[0] == 10 && old[1] == 10);
    memcpy(old, target + ROOM - 8, 8);
    TRUE("truncated fetch new values", old[0] == 11 && old[1] == 12);
    INTACT("truncated fetch behind", target + ROOM, BYTES - ROOM);
    return finish();
}
