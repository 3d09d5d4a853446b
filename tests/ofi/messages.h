/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one kind: all calls, sizes, truncation, order. Included by messages.c and tagged.c. */
#include "transfers.h"

/* One message to the next rank, and the same one from the previous rank. */
struct message {
    size_t size, room;
    enum send_form send;
    enum receive_form receive;
    unsigned char *from, *to;
    unsigned sent, received; /* completions */
};

enum { GUARD = 32 };

static uint64_t data_of(size_t i) { return 0xfedc0000u + i; }

static void prepare(struct message *m, size_t i) {
    m->from = malloc(m->size + 1);
    m->to = malloc(m->room + GUARD);
    EXPECT(m->from && m->to);
    fill(m->from, m->size, (unsigned)(i + 1000 * (size_t)rank));
    memset(m->to, UNTOUCHED, m->room + GUARD);
    m->sent = m->received = 0;
}

/* Transfers all messages, posted before (`expected`), after, or partly before they arrive; checks all results. */
static void transfer_all(enum kind kind, struct message *messages, size_t count, size_t before, const char *what) {
    const uint64_t type = kind == TAGGED ? FI_TAGGED : FI_MSG;
    size_t sends = 0;
    for (size_t i = 0; i < count; i++)
        prepare(&messages[i], i);
    for (size_t i = 0; i < before; i++)
        EQUAL(what,
              post_receive(net.ep, kind, messages[i].receive, messages[i].to, messages[i].room, FI_ADDR_UNSPEC, i, 0,
                           &messages[i]),
              0);
    barrier();
    for (size_t i = 0; i < count; i++) {
        struct message *m = &messages[i];
        EQUAL(what,
              WHEN_THERE_IS_ROOM(
                  post_send(net.ep, kind, m->send, m->from, m->size, net.peers[next_rank()], i, data_of(i), m)),
              0);
        sends += is_told(m->send);
        if (injects(m->send))
            memset(m->from, 0, m->size);
    }
    settle();
    for (size_t i = before; i < count; i++)
        EQUAL(what,
              post_receive(net.ep, kind, messages[i].receive, messages[i].to, messages[i].room, FI_ADDR_UNSPEC, i, 0,
                           &messages[i]),
              0);
    for (size_t k = 0; k < count; k++) {
        struct fi_cq_tagged_entry entry = {0};
        fi_addr_t source = FI_ADDR_NOTAVAIL;
        ssize_t got = ON(net.rx, ops, sreadfrom, &entry, 1, &source, NULL, PATIENCE);
        struct fi_cq_err_entry error = {0};
        if (got == -FI_EAVAIL) {
            EXPECT(ON(net.rx, ops, readerr, &error, 0) == 1);
            entry = (struct fi_cq_tagged_entry){.op_context = error.op_context,
                                                .flags = error.flags,
                                                .len = error.len,
                                                .data = error.data,
                                                .tag = error.tag};
        } else {
            EXPECT(got == 1);
            EQUAL(what, source, net.peers[previous_rank()]);
        }
        struct message *m = entry.op_context;
        EXPECT(m >= messages && m < messages + count);
        size_t i = (size_t)(m - messages), fits = m->size < m->room ? m->size : m->room;
        m->received++;
        EQUAL(what, entry.flags, FI_RECV | type | (has_data(m->send) ? FI_REMOTE_CQ_DATA : 0));
        EQUAL(what, entry.len, fits);
        EQUAL(what, entry.tag, kind == TAGGED ? i : 0);
        if (has_data(m->send))
            EQUAL(what, entry.data, data_of(i));
        EQUAL(what, error.err, m->size > m->room ? FI_ETRUNC : 0);
        EQUAL(what, error.olen, m->size > m->room ? m->size - m->room : 0);
        size_t right = filled(m->to, fits, (unsigned)(i + 1000 * (size_t)previous_rank()));
        judge(right == fits, __FILE__, __LINE__, what, "message %zu of %zu bytes into %zu: byte %zu is wrong", i,
              m->size, m->room, right);
        TRUE(what, is_untouched(m->to + fits, m->room + GUARD - fits));
    }
    for (; sends > 0; sends--) {
        struct fi_cq_tagged_entry entry = {0};
        EXPECT(next_entry(net.tx, &entry, NULL));
        struct message *m = entry.op_context;
        EXPECT(m >= messages && m < messages + count);
        m->sent++;
        EQUAL(what, entry.flags, FI_SEND | type);
    }
    for (size_t i = 0; i < count; i++) {
        EQUAL(what, messages[i].sent, is_told(messages[i].send));
        EQUAL(what, messages[i].received, 1);
        free(messages[i].from);
        free(messages[i].to);
    }
    TRUE(what, is_empty(net.tx));
    TRUE(what, is_empty(net.rx));
}

static void transfer_each_way(enum kind kind, struct message *messages, size_t count, const char *expected,
                              const char *unexpected, const char *mixed) {
    transfer_all(kind, messages, count, count, expected);
    transfer_all(kind, messages, count, 0, unexpected);
    transfer_all(kind, messages, count, count / 2, mixed);
}

/* Each form of a send to each form of a receive. */
static void forms(enum kind kind) {
    static const size_t sizes[] = {0, 9, 250, 3000, 20000};
    struct message messages[SEND_FORMS * RECEIVE_FORMS];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t count = 0;
        for (enum send_form send = SEND; send < SEND_FORMS; send++)
            for (enum receive_form receive = RECV; receive < RECEIVE_FORMS; receive++)
                if (!injects(send) || sizes[s] <= net.info->tx_attr->inject_size)
                    messages[count++] =
                        (struct message){.size = sizes[s], .room = sizes[s] + 5, .send = send, .receive = receive};
        transfer_each_way(kind, messages, count, "forms, expected", "forms, unexpected", "forms, both");
    }
}

/* Sizes at boundaries: nothing, short user headers, the inject size, a packet, the eager size. */
static void sizes(enum kind kind) {
    const size_t inject = net.info->tx_attr->inject_size;
    const size_t list[] = {0,    1,    8,    15,   16,    17,    64,    65,    inject,  inject + 1,
                           4095, 4096, 4097, 8191, 8192,  8193,  8208,  12288, 16384,   32769,
                           4080, 4081, 8175, 8176, 65535, 65536, 65537, 99999, 1 << 20, (1 << 20) + 1};
    enum { COUNT = sizeof list / sizeof *list };
    static const enum send_form forms[] = {SEND, SENDV, SENDMSG_DELIVERED, SENDDATA};
    struct message messages[COUNT];
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < COUNT; i++)
            messages[i] = (struct message){.size = list[i],
                                           .room = list[i],
                                           .send = forms[(i + (size_t)turn) % 4],
                                           .receive = (enum receive_form)((i / 2 + (size_t)turn) % RECEIVE_FORMS)};
        transfer_each_way(kind, messages, COUNT, "sizes, expected", "sizes, unexpected", "sizes, both");
    }
}

static void truncation(enum kind kind) {
    static const size_t pairs[][2] = {{8, 0},        {8, 4},        {100, 64},      {8192, 8191},    {8193, 8192},
                                      {8193, 100},   {8193, 0},     {20000, 15},    {20000, 16},     {20000, 17},
                                      {20000, 8191}, {20000, 8208}, {20000, 19999}, {1 << 20, 9000}, {1 << 20, 0}};
    enum { COUNT = sizeof pairs / sizeof *pairs };
    struct message messages[COUNT];
    for (enum receive_form receive = RECV; receive < RECEIVE_FORMS; receive++) {
        for (size_t i = 0; i < COUNT; i++)
            messages[i] = (struct message){
                .size = pairs[i][0], .room = pairs[i][1], .send = i % 2 ? SENDV : SEND, .receive = receive};
        transfer_each_way(kind, messages, COUNT, "truncation, expected", "truncation, unexpected", "truncation, both");
    }
}

/* Many messages at the same time, alternately short and long. */
static void many(enum kind kind) {
    enum { COUNT = 1000 };
    static struct message messages[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i % 50 == 7 ? 9000 + 11 * i : i * 37 % 1500;
        messages[i] = (struct message){.size = size,
                                       .room = size,
                                       .send = i % 3 && size <= net.info->tx_attr->inject_size ? INJECT : SEND,
                                       .receive = RECV};
    }
    transfer_each_way(kind, messages, COUNT, "many receives", "many messages without a receive", "many");
}

/* Calls that must be refused. */
static void refusals(enum kind kind) {
    static unsigned char buffer[MOST_PIECES];
    const struct fi_tx_attr *tx = net.info->tx_attr;
    struct iovec pieces[MOST_PIECES];
    for (size_t i = 0; i < MOST_PIECES; i++)
        pieces[i] = (struct iovec){buffer + i, 1};
    const fi_addr_t to = net.peers[next_rank()];
    void *all = malloc(tx->inject_size + 1);
    EXPECT(all && tx->iov_limit < MOST_PIECES);
    const size_t max = net.info->ep_attr->max_msg_size;
    EQUAL("more than max_msg_size", post_send(net.ep, kind, SEND, buffer, max + 1, to, 0, 0, NULL), -EMSGSIZE);
    EQUAL("more than inject_size", post_send(net.ep, kind, INJECT, all, tx->inject_size + 1, to, 0, 0, NULL), -EINVAL);
    EQUAL("more than inject_size", post_send(net.ep, kind, SENDMSG_INJECTED, all, tx->inject_size + 1, to, 0, 0, NULL),
          -EINVAL);
    EQUAL("to nobody", post_send(net.ep, kind, SEND, buffer, 8, 12345, 0, 0, NULL), -EINVAL);
    EQUAL("from nobody", post_receive(net.ep, kind, RECV, buffer, 8, 12345, 0, 0, NULL), -EINVAL);
    if (kind == TAGGED) {
        EQUAL("more pieces than iov_limit", ON(net.ep, tagged, sendv, pieces, NULL, tx->iov_limit + 1, to, 0, NULL),
              -EINVAL);
        EQUAL("more pieces than iov_limit", ON(net.ep, tagged, recvv, pieces, NULL, tx->iov_limit + 1, to, 0, 0, NULL),
              -EINVAL);
    } else {
        EQUAL("more pieces than iov_limit", ON(net.ep, msg, sendv, pieces, NULL, tx->iov_limit + 1, to, NULL), -EINVAL);
        EQUAL("more pieces than iov_limit", ON(net.ep, msg, recvv, pieces, NULL, tx->iov_limit + 1, to, NULL), -EINVAL);
    }
    free(all);
    TRUE("nothing is left of refused calls", is_empty(net.tx) && is_empty(net.rx));
}

/* iov_limit pieces work, and so does a receive of as many. */
static void all_pieces(enum kind kind) {
    enum { PIECE = 1000 };
    const size_t limit = net.info->tx_attr->iov_limit;
    struct iovec from[MOST_PIECES], to[MOST_PIECES];
    static unsigned char source[MOST_PIECES * PIECE], target[MOST_PIECES * PIECE], want[MOST_PIECES * PIECE];
    struct fi_cq_tagged_entry entry = {0};
    EXPECT(limit <= MOST_PIECES);
    for (size_t i = 0; i < limit; i++) {
        from[i] = (struct iovec){source + i * PIECE, PIECE};
        to[i] = (struct iovec){target + (limit - 1 - i) * PIECE, PIECE};
    }
    fill(source, limit * PIECE, 3);
    memset(target, 0, sizeof target);
    for (size_t i = 0; i < limit; i++)
        memcpy(want + (limit - 1 - i) * PIECE, source + i * PIECE, PIECE);
    if (kind == TAGGED) {
        EQUAL("pieces", ON(net.ep, tagged, recvv, to, NULL, limit, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
        barrier();
        EQUAL("pieces", ON(net.ep, tagged, sendv, from, NULL, limit, net.peers[next_rank()], 1, NULL), 0);
    } else {
        EQUAL("pieces", ON(net.ep, msg, recvv, to, NULL, limit, FI_ADDR_UNSPEC, NULL), 0);
        barrier();
        EQUAL("pieces", ON(net.ep, msg, sendv, from, NULL, limit, net.peers[next_rank()], NULL), 0);
    }
    EXPECT(next_entry(net.rx, &entry, NULL));
    EQUAL("pieces", entry.len, limit * PIECE);
    SAME_BYTES("pieces", target, want, limit * PIECE);
    EXPECT(next_entry(net.tx, &entry, NULL));
}

/* Blocks with gaps at both sides, as in an MPI vector; a receive posted before or after the message. */
static void vectors(enum kind kind) {
    static const size_t blocks[] = {1, 24, 64, 256, 2048};
    const size_t limit = net.info->rx_attr->iov_limit;
    struct iovec from[MOST_PIECES], to[MOST_PIECES];
    struct fi_cq_tagged_entry entry = {0};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        const size_t block = blocks[b], extent = 2 * block * limit;
        unsigned char *source = malloc(extent), *target = malloc(extent), *want = malloc(extent);
        EXPECT(source && target && want);
        for (size_t i = 0; i < limit; i++) {
            from[i] = (struct iovec){source + 2 * block * i, block};
            to[i] = (struct iovec){target + 2 * block * i + block, block};
        }
        for (int late = 0; late < 2; late++) {
            fill(source, extent, (unsigned)(b + 10 * (size_t)late));
            memset(want, UNTOUCHED, extent);
            memset(target, UNTOUCHED, extent);
            for (size_t i = 0; i < limit; i++)
                memcpy(want + 2 * block * i + block, source + 2 * block * i, block);
            for (int turn = 0; turn < 2; turn++) {
                if (turn == late)
                    EQUAL("vector",
                          kind == TAGGED ? ON(net.ep, tagged, recvv, to, NULL, limit, FI_ADDR_UNSPEC, 1, 0, NULL)
                                         : ON(net.ep, msg, recvv, to, NULL, limit, FI_ADDR_UNSPEC, NULL),
                          0);
                else
                    EQUAL("vector",
                          kind == TAGGED ? ON(net.ep, tagged, sendv, from, NULL, limit, net.peers[next_rank()], 1, NULL)
                                         : ON(net.ep, msg, sendv, from, NULL, limit, net.peers[next_rank()], NULL),
                          0);
                settle();
            }
            EXPECT(next_entry(net.rx, &entry, NULL));
            EQUAL("vector", entry.len, limit * block);
            SAME_BYTES("vector", target, want, extent);
            EXPECT(next_entry(net.tx, &entry, NULL));
        }
        free(source), free(target), free(want);
    }
}

static void messages_of(enum kind kind) {
    open_net(&(struct wish){0});
    refusals(kind);
    forms(kind);
    sizes(kind);
    all_pieces(kind);
    vectors(kind);
    truncation(kind);
    many(kind);
    close_net();
}
