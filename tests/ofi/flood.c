/* SPDX-License-Identifier: Apache-2.0 */
/* More messages than the room for them, to a rank that computes, or that also floods: none is lost, and they stay in
 * order. */
#include "transfers.h"

enum { STEP = 8192, BYTES = 600 * STEP };
static const struct load {
    size_t length, count;
} loads[] = {{8, 2000}, {STEP, BYTES / STEP}, {2 * STEP, 100}};

static unsigned char from[BYTES + STEP], expected[BYTES + STEP], to[2 * STEP];
static enum kind kind;

/* Returns the offset of the n-th message of a load. */
static size_t place(const struct load *load, size_t n) { return load->length < STEP ? n * load->length : n * STEP; }

/* Posts all sends. Returns the number completed meanwhile. */
static size_t send_all(const struct load *load, int target) {
    struct fi_cq_tagged_entry entry;
    size_t sent = 0;
    for (size_t i = 0; i < load->count; i++) {
        ssize_t rc;
        while ((rc = post_send(net.ep, kind, SEND, from + place(load, i), load->length, net.peers[target], i, 0,
                               NULL)) == -EAGAIN)
            sent += ON(net.tx, ops, read, &entry, 1) == 1;
        EQUAL("send", rc, 0);
    }
    return sent;
}

static void await_sends(const struct load *load, size_t sent) {
    struct fi_cq_tagged_entry entry;
    for (; sent < load->count; sent++)
        EXPECT(next_entry(net.tx, &entry, NULL));
}

static void receive_one(const struct load *load, int source, size_t n, uint64_t tag, uint64_t ignore) {
    struct fi_cq_tagged_entry entry;
    fi_addr_t told;
    EQUAL("receive", post_receive(net.ep, kind, RECV, to, sizeof to, net.peers[source], tag, ignore, to), 0);
    EXPECT(next_entry(net.rx, &entry, &told));
    EQUAL("length", entry.len, load->length);
    EQUAL("source", told, net.peers[source]);
    SAME_BYTES("message", to, expected + place(load, n), load->length);
}

static void receive_all(const struct load *load, int source) {
    const size_t last = load->count - 1;
    fill(expected, sizeof expected, (unsigned)source + 1);
    if (kind == TAGGED) /* It arrives after all the others, which have no receive. */
        receive_one(load, source, last, last, 0);
    for (size_t i = 0; i < (kind == TAGGED ? last : load->count); i++)
        receive_one(load, source, i, 0, UINT64_MAX);
}

GROUP(flood) {
    open_net(&(struct wish){0});
    EXPECT(ranks > 1);
    fill(from, sizeof from, (unsigned)rank + 1);
    for (kind = MSG; kind <= TAGGED; kind++) {
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
            barrier();
            if (rank > 0) {
                await_sends(&loads[i], send_all(&loads[i], 0));
            } else {
                spin_host_compute(20 * 1000 * 1000);
                for (int source = ranks - 1; source > 0; source--)
                    receive_all(&loads[i], source);
            }
        }
    }
    close_net();
}

/* Each rank sends all messages before its first receive. */
GROUP(burst) {
    open_net(&(struct wish){0});
    fill(from, sizeof from, (unsigned)rank + 1);
    for (kind = MSG; kind <= TAGGED; kind++) {
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
            barrier();
            size_t sent = send_all(&loads[i], next_rank());
            receive_all(&loads[i], previous_rank());
            await_sends(&loads[i], sent);
        }
    }
    close_net();
}
