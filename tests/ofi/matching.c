/* SPDX-License-Identifier: Apache-2.0 */
/* Matching of messages with receives: order, tags, sources, cancelled receives, searches, several endpoints. */
#include "transfers.h"

enum { SIZE = 1 << 17, LONG = 20000, SHORT = 40, SLOTS = 64, MANY = 300 };
static unsigned char from[SIZE], to[MANY][LONG];

static ssize_t send_tagged(const void *data, size_t length, uint64_t tag, void *context) {
    return ON(net.ep, tagged, send, data, length, NULL, net.peers[next_rank()], tag, context);
}

static ssize_t receive_tagged(void *buffer, size_t length, fi_addr_t source, uint64_t tag, uint64_t ignore,
                              void *context) {
    return ON(net.ep, tagged, recv, buffer, length, NULL, source, tag, ignore, context);
}

static void drain(struct fid_cq *cq, size_t count) {
    struct fi_cq_tagged_entry entry;
    while (count-- > 0)
        EXPECT(next_entry(cq, &entry, NULL));
}

/* Messages of one tag, short and long, are received in the order of their sends. */
static void order(enum kind kind) {
    static const size_t before[] = {0, SLOTS / 2, SLOTS};
    int contexts[SLOTS];
    for (size_t turn = 0; turn < sizeof before / sizeof *before; turn++) {
        memset(to, UNTOUCHED, sizeof to);
        for (size_t i = 0; i < before[turn]; i++)
            EQUAL("order", post_receive(net.ep, kind, RECV, to[i], LONG, FI_ADDR_UNSPEC, 7, 0, &contexts[i]), 0);
        barrier();
        for (size_t i = 0; i < SLOTS; i++)
            EQUAL("order",
                  post_send(net.ep, kind, SEND, from + i, i % 3 == 1 ? LONG - i : i * i, net.peers[next_rank()], 7, 0,
                            NULL),
                  0);
        settle();
        for (size_t i = before[turn]; i < SLOTS; i++)
            EQUAL("order", post_receive(net.ep, kind, RECV, to[i], LONG, FI_ADDR_UNSPEC, 7, 0, &contexts[i]), 0);
        for (size_t k = 0; k < SLOTS; k++) {
            struct fi_cq_tagged_entry entry = {0};
            EXPECT(next_entry(net.rx, &entry, NULL));
            size_t i = (size_t)((int *)entry.op_context - contexts);
            EXPECT(i < SLOTS);
            size_t length = i % 3 == 1 ? LONG - i : i * i;
            EQUAL("order", entry.len, length);
            SAME_BYTES("order", to[i], from + i, length);
            TRUE("order", is_untouched(to[i] + length, LONG - length));
        }
        drain(net.tx, SLOTS);
    }
}

/* Receives take the first message with their bits, except for the ignored ones. */
static void tags(void) {
    const uint64_t all = net.info->ep_attr->mem_tag_format;
    const uint64_t high = all ^ (all >> 1);
    TRUE("the tag format has 63 or 64 bits", all == UINT64_MAX || all == UINT64_MAX >> 1);
    const uint64_t sent[] = {0, 1, high, all, 0x1234567800000001 & all, high | 1, 0x5555555555555555 & all};
    /* the receive's tag and ignored bits, and the expected message */
    const struct {
        uint64_t tag, ignore;
        size_t takes;
    } receives[] = {{high, 0, 2},        {1, high, 1}, {0x5555555555555555 & all, 0, 6},
                    {1, high, 5},        {all, 0, 3},  {0x1200000000000000, 0x00ffffffffffffff, 4},
                    {all, UINT64_MAX, 0}};
    enum { COUNT = sizeof sent / sizeof *sent };
    for (int expected = 0; expected < 2; expected++) {
        for (int turn = 0; turn < 2; turn++) {
            if (turn == expected) {
                for (size_t i = 0; i < COUNT; i++)
                    EQUAL("tags", send_tagged(from + i, SHORT + i, sent[i], NULL), 0);
                settle();
            } else {
                for (size_t i = 0; i < COUNT; i++)
                    EQUAL("tags",
                          receive_tagged(to[i], LONG, FI_ADDR_UNSPEC, receives[i].tag, receives[i].ignore, to[i]), 0);
                barrier();
            }
        }
        for (size_t k = 0; k < COUNT; k++) {
            struct fi_cq_tagged_entry entry = {0};
            EXPECT(next_entry(net.rx, &entry, NULL));
            size_t i = (size_t)((unsigned char (*)[LONG])entry.op_context - to), takes = receives[i].takes;
            EQUAL("tags", entry.tag, sent[takes]);
            EQUAL("tags", entry.len, SHORT + takes);
            SAME_BYTES("tags", to[i], from + takes, SHORT + takes);
        }
        drain(net.tx, COUNT);
        barrier();
    }
    if (all != UINT64_MAX) {
        EQUAL("a tag beyond the format is refused", send_tagged(from, 8, all + 1, NULL), -EINVAL);
        EQUAL("a tag beyond the format is refused", receive_tagged(to, 8, FI_ADDR_UNSPEC, all + 1, 0, NULL), -EINVAL);
    }
}

static uint64_t data_from(int r) { return 0xd1ec0000u + (unsigned)r; }

/* Rank 0 receives from given ranks, whose messages have data, and from any, in order of arrival. */
static void sources(enum kind kind) {
    if (ranks < 3)
        return;
    for (int expected = 0; expected < 2; expected++) {
        static const size_t lengths[] = {SHORT, LONG};
        for (size_t l = 0; l < 2; l++) {
            size_t length = lengths[l];
            for (int turn = 0; turn < 2; turn++) {
                if (turn == expected && rank != 0) {
                    spin_host_compute((uint64_t)rank * 50000);
                    EQUAL(
                        "sources",
                        post_send(net.ep, kind, SENDDATA, from + rank, length, net.peers[0], 9, data_from(rank), NULL),
                        0);
                    EQUAL("sources", post_send(net.ep, kind, SEND, from + 10 * rank, length, net.peers[0], 9, 0, NULL),
                          0);
                }
                if (turn == expected)
                    settle();
                if (turn != expected && rank == 0) {
                    for (int r = ranks - 1; r > 0; r--)
                        EQUAL("sources", post_receive(net.ep, kind, RECV, to[r], LONG, net.peers[r], 9, 0, to[r]), 0);
                    for (int r = 1; r < ranks; r++)
                        EQUAL("sources",
                              post_receive(net.ep, kind, RECV, to[10 * r], LONG, FI_ADDR_UNSPEC, 9, 0, to[10 * r]), 0);
                }
                barrier();
            }
            if (rank != 0) {
                drain(net.tx, 2);
                continue;
            }
            int wild = 0;
            for (int k = 0; k < 2 * (ranks - 1); k++) {
                struct fi_cq_tagged_entry entry = {0};
                fi_addr_t source = FI_ADDR_NOTAVAIL;
                EXPECT(next_entry(net.rx, &entry, &source));
                int r = 0;
                while (r < ranks && net.peers[r] != source)
                    r++;
                EXPECT(r > 0 && r < ranks);
                EQUAL("sources", entry.len, length);
                if (entry.op_context == to[r]) {
                    SAME_BYTES("source", to[r], from + r, length);
                    EQUAL("source", entry.flags & FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
                    EQUAL("source", entry.data, data_from(r));
                } else {
                    SAME_BYTES("any source", entry.op_context, from + 10 * r, length);
                    wild++;
                }
            }
            EQUAL("any source", wild, ranks - 1);
        }
        barrier();
    }
}

static void cancel_receive(void *context) { EQUAL("cancel", net.ep->ops->cancel(&net.ep->fid, context), 0); }

/* A cancelled receive ends with an error, once, and takes no message. One that has its message ends as usual. */
static void cancel(enum kind kind) {
    const uint64_t type = kind == TAGGED ? FI_TAGGED : FI_MSG;
    struct fi_cq_err_entry error;
    struct fi_cq_tagged_entry entry = {0};
    int contexts[3];
    static const size_t lengths[] = {SHORT, LONG};
    for (size_t l = 0; l < 2; l++) {
        memset(to, UNTOUCHED, sizeof to);
        for (int i = 0; i < 3; i++)
            EQUAL("cancel",
                  post_receive(net.ep, kind, i == 2 ? RECVV : RECV, to[i], LONG, FI_ADDR_UNSPEC, 1, 0, &contexts[i]),
                  0);
        cancel_receive(&contexts[0]);
        cancel_receive(&contexts[2]);
        for (int i = 0; i < 3; i += 2) {
            EXPECT(next_error(net.rx, &error));
            EQUAL("cancel", error.err, ECANCELED);
            EQUAL("cancel", error.op_context, &contexts[i]);
            EQUAL("cancel", error.flags, FI_RECV | type);
        }
        cancel_receive(&contexts[0]);
        TRUE("cancel", is_empty(net.rx));
        barrier();
        for (size_t i = 0; i < 2; i++)
            EQUAL("cancel", post_send(net.ep, kind, SEND, from + i, lengths[l], net.peers[next_rank()], 1, 0, NULL), 0);
        spin_host_compute(500 * 1000);
        barrier();
        /* The message has arrived, but the program has not read its completion. */
        cancel_receive(&contexts[1]);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("cancelled too late", entry.op_context, &contexts[1]);
        SAME_BYTES("cancelled too late", to[1], from, lengths[l]);
        TRUE("cancelled", is_untouched(to[0], LONG) && is_untouched(to[2], LONG));
        EQUAL("after cancelled ones", post_receive(net.ep, kind, RECV, to[3], LONG, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        SAME_BYTES("after cancelled ones", to[3], from + 1, lengths[l]);
        drain(net.tx, 2);
        barrier();
    }
}

/* ---- Searches ------------------------------------------------------------------------------------------------------------ */

static ssize_t search(uint64_t tag, uint64_t flags, void *buffer, size_t length, void *context) {
    struct iovec piece = {buffer, length};
    struct fi_msg_tagged message = {
        .msg_iov = &piece, .iov_count = buffer ? 1 : 0, .addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
    return ON(net.ep, tagged, recvmsg, &message, flags);
}

static void finds(const char *name, uint64_t tag, uint64_t flags, size_t length) {
    int context;
    struct fi_cq_tagged_entry entry = {0};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    EQUAL(name, search(tag, FI_PEEK | flags, NULL, 0, &context), 0);
    EXPECT(next_entry(net.rx, &entry, &source));
    EQUAL(name, entry.op_context, &context);
    EQUAL(name, entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    EQUAL(name, entry.len, length);
    EQUAL(name, entry.tag, tag);
    EQUAL(name, entry.data, length + 1);
    EQUAL(name, source, net.peers[previous_rank()]);
}

static void finds_nothing(const char *name, uint64_t tag, uint64_t flags) {
    int context;
    struct fi_cq_err_entry error;
    EQUAL(name, search(tag, FI_PEEK | flags, NULL, 0, &context), 0);
    EXPECT(next_error(net.rx, &error));
    EQUAL(name, error.err, ENOMSG);
    EQUAL(name, error.op_context, &context);
}

/* Searches see waiting messages; claimed and discarded ones are invisible to others. */
static void searches(void) {
    enum { PEEKED, CLAIMED, DISCARDED, CLAIMED_AND_DISCARDED, TRUNCATED, ONES };
    static const size_t lengths[] = {0, SHORT, 8192, 8193, LONG};
    struct fi_cq_tagged_entry entry = {0};
    struct fi_cq_err_entry error;
    int context;
    finds_nothing("peek without messages", 1, 0);
    finds_nothing("claim without messages", 1, FI_CLAIM);
    finds_nothing("discard without messages", 1, FI_DISCARD);
    EQUAL("claim without a search", search(1, FI_CLAIM, to[0], LONG, &context), -EINVAL);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t length = lengths[l];
        memset(to, UNTOUCHED, sizeof to);
        for (size_t i = 0; i < ONES; i++)
            EQUAL("searches",
                  ON(net.ep, tagged, senddata, from + i, length, NULL, length + 1, net.peers[next_rank()], i, NULL), 0);
        settle();
        finds_nothing("peek for another tag", ONES, 0);
        finds("peek", PEEKED, 0, length);
        finds("peek again", PEEKED, 0, length);
        EQUAL("receive after peek", receive_tagged(to[0], LONG, FI_ADDR_UNSPEC, PEEKED, 0, NULL), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("receive after peek", entry.len, length);
        SAME_BYTES("receive after peek", to[0], from + PEEKED, length);
        finds_nothing("peek after receive", PEEKED, 0);

        int claim, other;
        EQUAL("claim", search(CLAIMED, FI_PEEK | FI_CLAIM, NULL, 0, &claim), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("claim", entry.len, length);
        finds_nothing("peek after claim", CLAIMED, 0);
        EQUAL("a receive is not given a claimed message",
              receive_tagged(to[1], LONG, FI_ADDR_UNSPEC, CLAIMED, 0, &other), 0);
        spin_host_compute(100 * 1000);
        TRUE("a receive is not given a claimed message", is_empty(net.rx));
        cancel_receive(&other);
        EXPECT(next_error(net.rx, &error));
        EQUAL("receive of a claimed message", search(CLAIMED, FI_CLAIM, to[1], LONG, &claim), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("receive of a claimed message", entry.op_context, &claim);
        EQUAL("receive of a claimed message", entry.len, length);
        EQUAL("receive of a claimed message", entry.tag, CLAIMED);
        EQUAL("receive of a claimed message", entry.data, length + 1);
        SAME_BYTES("receive of a claimed message", to[1], from + CLAIMED, length);
        EQUAL("receive of a claimed message, twice", search(CLAIMED, FI_CLAIM, to[1], LONG, &claim), -EINVAL);

        finds("discard", DISCARDED, FI_DISCARD, length);
        finds_nothing("peek after discard", DISCARDED, 0);

        EQUAL("claim", search(CLAIMED_AND_DISCARDED, FI_PEEK | FI_CLAIM, NULL, 0, &claim), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("discard of a claimed message", search(0, FI_CLAIM | FI_DISCARD, NULL, 0, &claim), 0);
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("discard of a claimed message", entry.op_context, &claim);

        if (length > SHORT) {
            EQUAL("claim", search(TRUNCATED, FI_PEEK | FI_CLAIM, NULL, 0, &claim), 0);
            EXPECT(next_entry(net.rx, &entry, NULL));
            EQUAL("truncation of a claimed message", search(TRUNCATED, FI_CLAIM, to[2], SHORT, &claim), 0);
            EXPECT(next_error(net.rx, &error));
            EQUAL("truncation of a claimed message", error.err, FI_ETRUNC);
            EQUAL("truncation of a claimed message", error.olen, length - SHORT);
            SAME_BYTES("truncation of a claimed message", to[2], from + TRUNCATED, SHORT);
            TRUE("truncation of a claimed message", is_untouched(to[2] + SHORT, LONG - SHORT));
        } else {
            finds("discard", TRUNCATED, FI_DISCARD, length);
        }
        drain(net.tx, ONES);
        TRUE("nothing is left", is_empty(net.tx) && is_empty(net.rx));
        barrier();
    }
}

/* Long messages are discarded while the maximum of receives served by handlers wait. */
static void discard_among_receives(void) {
    static int contexts[MANY];
    struct fi_cq_err_entry error;
    struct fi_cq_tagged_entry entry = {0};
    for (int i = 0; i < MANY; i++)
        EQUAL("many receives", receive_tagged(to[i], LONG, FI_ADDR_UNSPEC, 1, 0, &contexts[i]), 0);
    EQUAL("discard", send_tagged(from, LONG, 2, NULL), 0);
    settle();
    EQUAL("discard", search(2, FI_PEEK | FI_DISCARD, NULL, 0, NULL), 0);
    EXPECT(next_entry(net.rx, &entry, NULL));
    drain(net.tx, 1);
    EQUAL("discarded messages complete no receive", ON(net.rx, ops, sread, &entry, 1, NULL, 1), -EAGAIN);
    /* The first receives, served by handlers, and the last ones, served by the CPU, get their messages. */
    barrier();
    for (int i = 0; i < MANY; i++)
        EQUAL("many receives", WHEN_THERE_IS_ROOM(send_tagged(from + i, LONG, 1, NULL)), 0);
    for (int i = 0; i < MANY; i++) {
        EXPECT(next_entry(net.rx, &entry, NULL));
        EQUAL("many receives", entry.len, LONG);
    }
    for (int i = 0; i < MANY; i++)
        SAME_BYTES("many receives", to[i], from + i, LONG);
    drain(net.tx, MANY);
    barrier();
    for (int i = 0; i < MANY; i++)
        EQUAL("many receives", receive_tagged(to[i], LONG, FI_ADDR_UNSPEC, 1, 0, &contexts[i]), 0);
    for (int i = 0; i < MANY; i++) {
        cancel_receive(&contexts[i]);
        EXPECT(next_error(net.rx, &error));
        EQUAL("cancel", error.op_context, &contexts[i]);
    }
    barrier();
}

/* Receives that share memory, as benchmarks post them, disturb each other's data only. */
static void shared_memory(void) {
    struct fi_cq_tagged_entry entry = {0};
    for (int i = 0; i < MANY; i++)
        EQUAL("shared memory", receive_tagged(to[0], LONG, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
    barrier();
    for (int i = 0; i < MANY; i++)
        EQUAL("shared memory", WHEN_THERE_IS_ROOM(send_tagged(from, i % 2 ? LONG : LONG / 2, 1, NULL)), 0);
    size_t sum = 0;
    for (int i = 0; i < MANY; i++) {
        EXPECT(next_entry(net.rx, &entry, NULL));
        sum += entry.len;
    }
    EQUAL("shared memory", sum, MANY / 2 * (LONG + LONG / 2));
    drain(net.tx, MANY);
    SAME_BYTES("shared memory", to[0], from, LONG);
    barrier();
}

/* Several endpoints of a process have separate messages. */
static void several_endpoints(void) {
    enum { COUNT = 4 };
    struct fid_ep *eps[COUNT];
    struct fid_cq *queues[COUNT];
    char names[COUNT][NAME_SIZE], all[RANKS * NAME_SIZE];
    fi_addr_t peers[COUNT][RANKS];
    struct fi_cq_tagged_entry entry = {0};
    const struct wish none = {0};
    for (int i = 0; i < COUNT; i++) {
        queues[i] = open_cq(FI_CQ_FORMAT_TAGGED);
        eps[i] = open_ep(queues[i], queues[i], &none);
        size_t length = name_of(eps[i], names[i]);
        exchange(names[i], length, all);
        EXPECT(ON(net.av, ops, insert, all, (size_t)ranks, peers[i], 0, NULL) == ranks);
    }
    static const size_t lengths[] = {SHORT, LONG};
    for (size_t l = 0; l < 2; l++) {
        memset(to, UNTOUCHED, sizeof to);
        for (enum kind kind = MSG; kind <= TAGGED; kind++)
            for (int i = 0; i < COUNT; i++)
                EQUAL("endpoints",
                      post_receive(eps[i], kind, RECV, to[2 * i + (int)kind], LONG, FI_ADDR_UNSPEC, 3, 0,
                                   to[2 * i + (int)kind]),
                      0);
        barrier();
        for (enum kind kind = MSG; kind <= TAGGED; kind++)
            for (int i = 0; i < COUNT; i++)
                EQUAL("endpoints",
                      post_send(eps[i], kind, SEND, from + 2 * i + kind, lengths[l], peers[COUNT - 1 - i][next_rank()],
                                3, 0, NULL),
                      0);
        for (int i = 0; i < COUNT; i++) {
            int seen = 0;
            for (int k = 0; k < 4; k++) {
                EXPECT(next_entry(queues[i], &entry, NULL));
                seen += (entry.flags & FI_RECV) != 0;
            }
            EQUAL("endpoints", seen, 2);
            for (int kind = 0; kind < 2; kind++)
                SAME_BYTES("endpoints", to[2 * i + kind], from + 2 * (COUNT - 1 - i) + kind, lengths[l]);
        }
        barrier();
    }
    for (int i = 0; i < COUNT; i++) {
        EQUAL("close", eps[i]->fid.ops->close(&eps[i]->fid), 0);
        EQUAL("close", queues[i]->fid.ops->close(&queues[i]->fid), 0);
    }
}

/* An endpoint with unclaimed receives, messages and searches can be closed. */
static void close_in_use(void) {
    struct fid_cq *queue = open_cq(FI_CQ_FORMAT_TAGGED);
    struct fid_ep *ep = open_ep(queue, queue, &(struct wish){0});
    char name[NAME_SIZE], all[RANKS * NAME_SIZE];
    fi_addr_t peers[RANKS];
    size_t length = name_of(ep, name);
    exchange(name, length, all);
    EXPECT(ON(net.av, ops, insert, all, (size_t)ranks, peers, 0, NULL) == ranks);
    for (enum kind kind = MSG; kind <= TAGGED; kind++) {
        for (enum receive_form form = RECV; form < RECEIVE_FORMS; form++)
            EQUAL("close", post_receive(ep, kind, form, to[form], LONG, FI_ADDR_UNSPEC, 100, 0, NULL), 0);
        barrier();
        EQUAL("close", post_send(net.ep, kind, SEND, from, SHORT, peers[next_rank()], 100, 0, NULL), 0);
        if (kind == TAGGED)
            EQUAL("close", post_send(net.ep, kind, SEND, from, SHORT, peers[next_rank()], 101, 0, NULL), 0);
    }
    settle();
    EQUAL("close in use", ep->fid.ops->close(&ep->fid), 0);
    EQUAL("close in use", queue->fid.ops->close(&queue->fid), 0);
    drain(net.tx, 3);
    barrier();
    /* The other endpoint continues to work. */
    EQUAL("after close", receive_tagged(to[0], LONG, FI_ADDR_UNSPEC, 5, 0, NULL), 0);
    barrier();
    EQUAL("after close", send_tagged(from, LONG, 5, NULL), 0);
    drain(net.rx, 1);
    drain(net.tx, 1);
}

GROUP(matching) {
    open_net(&(struct wish){.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV});
    fill(from, sizeof from, 1);
    for (enum kind kind = MSG; kind <= TAGGED; kind++) {
        order(kind);
        sources(kind);
        cancel(kind);
    }
    tags();
    searches();
    discard_among_receives();
    shared_memory();
    several_endpoints();
    close_in_use();
    close_net();
}
