/* conformance: ranks=1,2,4
 * Memory in pieces: descriptors and entries with PTL_IOVEC, odd splits, empty segments, every operation. */
#include "ring.h"

enum { BYTES = 20000 };
static unsigned char source[BYTES], target[BYTES], result[BYTES], plain[BYTES];

/* Splits `length` bytes at `start` into segments of these sizes, cyclically, with `gap` bytes after each. */
static ptl_size_t cut(ptl_iovec_t *segments, unsigned char *start, size_t room, const size_t *sizes, size_t count,
                      size_t gap) {
    ptl_size_t n = 0;
    size_t at = 0;
    for (size_t i = 0; at + sizes[i % count] + gap <= room && n < 200; i++) {
        segments[n].iov_base = start + at;
        segments[n].iov_len = sizes[i % count];
        n++;
        at += sizes[i % count] + gap;
    }
    return n;
}

static size_t gather(const ptl_iovec_t *segments, ptl_size_t count, unsigned char *to) {
    size_t at = 0;
    for (ptl_size_t i = 0; i < count; i++) {
        memcpy(to + at, segments[i].iov_base, segments[i].iov_len);
        at += segments[i].iov_len;
    }
    return at;
}

int main(int argc, char **argv) {
    static const size_t odd[] = {1, 0, 7, 300, 13, 4096, 2}, small[] = {3, 5, 8};
    static ptl_iovec_t from[200], to[200], back[200];
    static unsigned char sent[BYTES], got[BYTES];
    start(argc, argv);
    ptl_handle_eq_t eq = queue(16), own = queue(16);
    ptl_pt_index_t pt = portal(eq, 0);
    fill(source, BYTES, 3);
    ptl_size_t n_from = cut(from, source, BYTES, odd, 7, 1), n_to = cut(to, target, BYTES, small, 3, 2);
    ptl_size_t n_back = cut(back, result, BYTES, odd + 2, 3, 0);
    ptl_handle_md_t md = descriptor(from, n_from, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    ptl_handle_md_t into = descriptor(back, n_back, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    append(pt, entry(to, n_to, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE),
           PTL_PRIORITY_LIST, NULL);
    size_t whole = gather(from, n_from, sent), room = 0;
    for (ptl_size_t i = 0; i < n_to; i++)
        room += to[i].iov_len;
    TRUE("iovec test has many segments", n_from > 20 && n_to == 200 && whole > 8192);

    static const size_t cases[][3] = {/* length, local offset, remote offset */
                                      {1, 0, 0},   {9, 0, 0},      {20, 3, 5}, {300, 8, 7},
                                      {900, 4, 1}, {16, 4400, 33}, {0, 9, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = cases[i][0], local = cases[i][1], remote = cases[i][2];
        size_t moved = length < room - remote ? length : room - remote;
        clear(target, BYTES);
        clear(result, BYTES);
        barrier();
        CHECK(PtlPut(md, local, length, PTL_ACK_REQ, next(), pt, 0, remote, NULL, 0));
        EQUAL("iovec put ACK", EVENT("iovec put ACK", own, PTL_EVENT_ACK).mlength, moved);
        ptl_event_t event = EVENT("iovec put", eq, PTL_EVENT_PUT);
        EQUAL("iovec put mlength", event.mlength, moved);
        gather(to, n_to, got);
        SAME_BYTES("iovec put data", got + remote, sent + local, moved);
        INTACT("iovec put before", got, remote);
        INTACT("iovec put behind", got + remote + moved, room - remote - moved);
        for (ptl_size_t s = 0; s + 1 < n_to; s++)
            if (untouched((unsigned char *)to[s].iov_base + to[s].iov_len, 2) != 2) {
                TRUE("iovec put leaves gaps alone", 0);
                break;
            }
        barrier();
        CHECK(PtlGet(into, local, length, next(), pt, 0, remote, NULL));
        EQUAL("iovec get", EVENT("iovec get", own, PTL_EVENT_REPLY).mlength, moved);
        EVENT("iovec get", eq, PTL_EVENT_GET);
        gather(back, n_back, got);
        SAME_BYTES("iovec get data", got + local, sent + local, moved);
        INTACT("iovec get before", got, local);
        barrier();
    }
    /* An atomic across a border of segments, on both sides. */
    static const size_t halves[] = {12};
    uint64_t items[3] = {1, 2, 3}, there[3] = {10, 20, 30}, old[3];
    n_from = cut(from, source, 24, halves, 1, 0);
    ptl_size_t n_there = cut(to, target, 40, halves, 1, 4);
    memcpy(source, items, 24);
    memcpy(target, there, 12);
    memcpy(target + 16, (char *)there + 12, 12);
    ptl_handle_md_t atomic = descriptor(from, n_from, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE, own, PTL_CT_NONE);
    ptl_handle_md_t fetched = descriptor(plain, BYTES, 0, own, PTL_CT_NONE);
    ptl_pt_index_t border = portal(eq, 0);
    append(border, entry(to, n_there, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE),
           PTL_PRIORITY_LIST, NULL);
    barrier();
    CHECK(PtlFetchAtomic(fetched, 0, atomic, 0, 24, next(), border, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    EVENT("iovec atomic", own, PTL_EVENT_REPLY);
    EVENT("iovec atomic", eq, PTL_EVENT_FETCH_ATOMIC);
    memcpy(old, plain, 24);
    for (int i = 0; i < 3; i++)
        EQUAL("iovec atomic, old values", old[i], there[i]);
    gather(to, n_there, got);
    memcpy(old, got, 24);
    for (int i = 0; i < 3; i++)
        EQUAL("iovec atomic, new values", old[i], there[i] + items[i]);
    CODE("iovec beyond the end", PtlPut(atomic, 20, 5, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    return finish();
}
