/* SPDX-License-Identifier: Apache-2.0 */
/* Receives whose memory takes several messages (FI_MULTI_RECV). */
#include "transfers.h"

enum { MEMORY = 1 << 16, MIN_FREE = 1000 };
static unsigned char from[4 * MEMORY], memory[3][MEMORY];

static void post_multi(int i, size_t length) {
    struct iovec piece = {memory[i], length};
    struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = memory[i]};
    EQUAL("multi", ON(net.ep, msg, recvmsg, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
}

static void set_min_free(size_t bytes) {
    size_t got = 0, length = sizeof got;
    EQUAL("option", net.ep->ops->setopt(&net.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &bytes, sizeof bytes), 0);
    EQUAL("option", net.ep->ops->getopt(&net.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &length), 0);
    EQUAL("option", got, bytes);
    EQUAL("option", length, sizeof got);
}

static void send_one(size_t i, size_t length) {
    EQUAL("multi", ON(net.ep, msg, senddata, from + i, length, NULL, 100 + i, net.peers[next_rank()], NULL), 0);
}

/* Receives `count` messages of these lengths. Each starts at the end of the previous one, in send order; the one
 * completion that releases a memory is its last. Returns the number of memories released. */
static int receive_all(const size_t *lengths, size_t count) {
    size_t ends[3] = {0}, places[256] = {0}, memories[256] = {0};
    bool released[3] = {false}, seen[256] = {false};
    int releases = 0;
    for (size_t k = 0; k < count;) {
        struct fi_cq_tagged_entry entry = {0};
        EXPECT(next_entry(net.rx, &entry, NULL));
        size_t m = (size_t)((unsigned char (*)[MEMORY])entry.op_context - memory);
        EXPECT(m < 3);
        TRUE("no message comes after the release", !released[m]);
        if (entry.flags & FI_MULTI_RECV) {
            released[m] = true;
            releases++;
        }
        if (!(entry.flags & FI_RECV)) {
            EQUAL("release without a message", entry.flags, FI_MULTI_RECV);
            continue;
        }
        size_t i = (size_t)entry.data - 100;
        EXPECT(i < count && !seen[i]);
        seen[i] = true;
        EQUAL("multi", entry.len, lengths[i]);
        size_t at = (size_t)((unsigned char *)entry.buf - memory[m]);
        EXPECT(at + entry.len <= MEMORY);
        SAME_BYTES("multi", entry.buf, from + i, entry.len);
        places[i] = at;
        memories[i] = m;
        k++;
    }
    for (size_t i = 0; i < count; i++) {
        EQUAL("packed", places[i], ends[memories[i]]);
        ends[memories[i]] += lengths[i];
    }
    return releases;
}

/* All messages are still in their memories when the last one arrives, so no two share bytes. */
static void fill_up(const char *name, bool expected, const size_t *lengths, size_t count, int memories, int releases) {
    memset(memory, UNTOUCHED, sizeof memory);
    for (int turn = 0; turn < 2; turn++) {
        if (turn != expected) {
            for (int i = 0; i < memories; i++)
                post_multi(i, MEMORY);
            barrier();
        } else {
            for (size_t i = 0; i < count; i++)
                send_one(i, lengths[i]);
            settle();
        }
    }
    int released = receive_all(lengths, count);
    for (size_t i = 0; i < count; i++) {
        struct fi_cq_tagged_entry entry;
        EXPECT(next_entry(net.tx, &entry, NULL));
    }
    /* A message that no longer fits also releases a memory. */
    if (released < releases) {
        struct fi_cq_tagged_entry entry = {0};
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL(name, entry.flags, FI_MULTI_RECV);
        released++;
    }
    EQUAL(name, released, releases);
    TRUE(name, is_empty(net.rx));
    for (int i = releases; i < memories; i++) {
        struct fi_cq_err_entry error;
        EQUAL(name, net.ep->ops->cancel(&net.ep->fid, memory[i]), 0);
        EXPECT(next_error(net.rx, &error));
        EQUAL(name, error.err, ECANCELED);
        EQUAL(name, error.op_context, memory[i]);
        EQUAL(name, error.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
    }
    TRUE(name, is_empty(net.rx));
    barrier();
}

static void truncated(void) {
    struct fi_cq_err_entry error;
    memset(memory, UNTOUCHED, sizeof memory);
    static const size_t lengths[] = {3000, 30000};
    for (size_t l = 0; l < 2; l++) {
        post_multi(0, 2000);
        barrier();
        send_one(1, lengths[l]);
        EXPECT(next_error(net.rx, &error));
        EQUAL("larger than the memory", error.err, FI_ETRUNC);
        EQUAL("larger than the memory", error.olen, lengths[l] - 2000);
        TRUE("larger than the memory", error.flags & FI_MULTI_RECV);
        SAME_BYTES("larger than the memory", memory[0], from + 1, 2000);
        TRUE("larger than the memory", is_untouched(memory[0] + 2000, MEMORY - 2000));
        struct fi_cq_tagged_entry entry;
        EXPECT(next_entry(net.tx, &entry, NULL));
        barrier();
    }
}

/* A memory cancelled while a message is in flight into it is released once that arrives. */
static void cancelled(void) {
    enum { LONG = 60000 };
    struct fi_cq_tagged_entry entry = {0};
    struct fi_cq_err_entry error;
    post_multi(0, MEMORY);
    barrier();
    send_one(0, LONG);
    send_one(1, 64);
    EXPECT(next_entry(net.rx, &entry, NULL));
    EQUAL("the short message comes first", entry.data, 101);
    EQUAL("cancel", net.ep->ops->cancel(&net.ep->fid, memory[0]), 0);
    EXPECT(next_entry(net.rx, &entry, NULL));
    EQUAL("a message on its way", entry.data, 100);
    EQUAL("a message on its way", entry.len, LONG);
    EQUAL("a message on its way", entry.flags & FI_MULTI_RECV, 0);
    SAME_BYTES("a message on its way", memory[0], from, LONG);
    EXPECT(next_error(net.rx, &error));
    EQUAL("cancelled", error.err, ECANCELED);
    EQUAL("cancelled", error.op_context, memory[0]);
    EQUAL("cancelled", error.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
    for (int i = 0; i < 2; i++)
        EXPECT(next_entry(net.tx, &entry, NULL));
    TRUE("cancelled", is_empty(net.rx));
    barrier();
}

static void refusals(void) {
    size_t small = 0, length = sizeof small;
    struct iovec pieces[2] = {{memory[0], 100}, {memory[1], 100}};
    struct fi_msg message = {.msg_iov = pieces, .iov_count = 2, .addr = FI_ADDR_UNSPEC};
    struct fi_msg_tagged tagged = {.msg_iov = pieces, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
    EQUAL("more pieces", ON(net.ep, msg, recvmsg, &message, FI_MULTI_RECV), -EINVAL);
    EQUAL("with tag", ON(net.ep, tagged, recvmsg, &tagged, FI_MULTI_RECV), -EINVAL);
    EQUAL("option", net.ep->ops->setopt(&net.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small, 1), -EINVAL);
    EQUAL("option", net.ep->ops->setopt(&net.ep->fid, FI_OPT_ENDPOINT, 99, &small, sizeof small), -ENOPROTOOPT);
    EQUAL("option", net.ep->ops->getopt(&net.ep->fid, FI_OPT_ENDPOINT, 99, &small, &length), -ENOPROTOOPT);
    length = 1;
    EQUAL("option", net.ep->ops->getopt(&net.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small, &length),
          -FI_ETOOSMALL);
}

GROUP(multi) {
    enum { COUNT = 40 };
    size_t lengths[COUNT];
    open_net(&(struct wish){.caps = FI_MSG | FI_MULTI_RECV});
    fill(from, sizeof from, 2);
    refusals();
    set_min_free(MIN_FREE);
    for (int expected = 0; expected < 2; expected++) {
        /* They leave more than MIN_FREE. */
        for (size_t i = 0; i < COUNT; i++)
            lengths[i] = i * 61 % 900;
        fill_up("short messages in one memory", expected, lengths, COUNT, 1, 0);
        /* 32 messages of 2 KiB fill a memory of 64 KiB: the 32nd releases it. */
        for (size_t i = 0; i < COUNT; i++)
            lengths[i] = 2048;
        fill_up("memory is full", expected, lengths, COUNT, 2, 1);
        /* 36 messages of 1800 B leave less than MIN_FREE. */
        for (size_t i = 0; i < COUNT; i++)
            lengths[i] = 1800;
        fill_up("less than the minimum is free", expected, lengths, COUNT, 2, 1);
        /* 3 messages of 20 KB leave 5 KB, in which the next does not fit. */
        for (size_t i = 0; i < 7; i++)
            lengths[i] = 20000;
        fill_up("long messages", expected, lengths, 7, 3, 2);
        /* Short messages complete before a long one that was sent earlier. */
        for (size_t i = 0; i < 20; i++)
            lengths[i] = i == 0 ? 60000 : 64;
        fill_up("a long message and short ones", expected, lengths, 20, 2, 0);
        for (size_t i = 0; i < COUNT; i++)
            lengths[i] = i % 4 == 1 ? 30000 + i : 1500;
        /* Messages 0 to 4 are in the first memory, 5 to 9 in the second, where 1,022 B are left. */
        fill_up("long and short messages", expected, lengths, 12, 3, 2);
    }
    truncated();
    cancelled();
    close_net();
}
