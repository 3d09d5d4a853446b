/* SPDX-License-Identifier: Apache-2.0 */
/* Exhausted room for messages without a receive, receives, and sends. */
#include "transfers.h"

enum { LENGTH = 8192, COUNT = 800, TURNS = 2, ENTRIES = 17000 };
static unsigned char from[LENGTH + COUNT], to[COUNT][LENGTH];

static enum kind kind;
static ssize_t send_one(size_t i) {
    return post_send(net.ep, kind, SEND, from + i, LENGTH, net.peers[next_rank()], i, 0, NULL);
}

/* Nearly the maximum of buffered messages waits for receives, several times, so that buffers are reused. */
static void messages(void) {
    struct fi_cq_tagged_entry entry;
    memset(to, 0, sizeof to);
    barrier();
    for (size_t i = 0; i < COUNT; i++)
        EQUAL("send", WHEN_THERE_IS_ROOM(send_one(i)), 0);
    for (size_t i = 0; i < COUNT; i++)
        EXPECT(next_entry(net.tx, &entry, NULL));
    settle();
    for (size_t i = 0; i < COUNT; i++)
        EQUAL("receive", post_receive(net.ep, kind, RECV, to[i], LENGTH, FI_ADDR_UNSPEC, i, 0, NULL), 0);
    for (size_t i = 0; i < COUNT; i++)
        EXPECT(next_entry(net.rx, &entry, NULL));
    for (size_t i = 0; i < COUNT; i++)
        SAME_BYTES("message", to[i], from + i, LENGTH);
    barrier();
}

static ssize_t receive_one(size_t i) {
    return post_receive(net.ep, kind, RECV, to[i % COUNT], LENGTH, FI_ADDR_UNSPEC, i, 0, &to[i % COUNT]);
}

/* More receives than the card has entries. */
static void receives(void) {
    size_t posted = 0;
    ssize_t rc = 0;
    while (posted < ENTRIES && (rc = receive_one(posted)) == 0)
        posted++;
    EQUAL("the card has no entry left", rc, -EAGAIN);
    barrier();
    static unsigned char byte;
    const fi_addr_t next = net.peers[next_rank()];
    size_t all[RANKS];
    exchange(&posted, sizeof posted, all);
    for (size_t i = 0; i < all[next_rank()]; i++)
        EQUAL("send",
              kind == TAGGED ? ON(net.ep, tagged, inject, &byte, 1, next, i) : ON(net.ep, msg, inject, &byte, 1, next),
              0);
    struct fi_cq_tagged_entry entry;
    for (size_t i = 0; i < posted; i++)
        EXPECT(next_entry(net.rx, &entry, NULL));
    EQUAL("room again", receive_one(0), 0);
    barrier();
    EQUAL("room again", send_one(0), 0);
    EXPECT(next_entry(net.rx, &entry, NULL));
    EXPECT(next_entry(net.tx, &entry, NULL));
    barrier();
}

GROUP(room) {
    open_net(&(struct wish){0});
    EXPECT(COUNT * LENGTH < net.info->rx_attr->total_buffered_recv);
    fill(from, sizeof from, 6);
    for (kind = MSG; kind <= TAGGED; kind++) {
        for (int turn = 0; turn < TURNS; turn++)
            messages();
    }
    close_net();
}

GROUP(entries) {
    open_net(&(struct wish){0});
    fill(from, sizeof from, 6);
    kind = TAGGED;
    receives();
    close_net();
}
