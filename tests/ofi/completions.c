/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues and counters: formats, selective completion, time of completion, and waits with a time-out. */
#include "transfers.h"

enum { SHORT = 64, MEDIUM = 4000, LONG = 50000 };
static unsigned char from[LONG], to[LONG];

static struct fid_cntr *open_cntr(void) {
    struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *cntr;
    EXPECT(ON(net.domain, ops, cntr_open, &attr, &cntr, NULL) == 0);
    return cntr;
}

/* Reads a counter. After reading the time, reads that find the same value do not make a program wait (spin_idle). */
static uint64_t value_of(struct fid_cntr *cntr) {
    spin_time_ps();
    return cntr->ops->read(cntr);
}

static uint64_t errors_of(struct fid_cntr *cntr) {
    spin_time_ps();
    return cntr->ops->readerr(cntr);
}

static void close_object(struct fid *fid) { EQUAL("fi_close", fid->ops->close(fid), 0); }

/* Opens an endpoint to itself, without the group's queues. */
static fi_addr_t own_address(struct fid_ep *ep) {
    char name[NAME_SIZE];
    fi_addr_t address;
    name_of(ep, name);
    EXPECT(ON(net.av, ops, insert, name, 1, &address, 0, NULL) == 1);
    return address;
}

/* An entry of each format is a prefix of the longest one, and has the right length. */
static void formats(void) {
    static const size_t lengths[] = {[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_tagged_entry),
                                     [FI_CQ_FORMAT_CONTEXT] = 8,
                                     [FI_CQ_FORMAT_MSG] = 24,
                                     [FI_CQ_FORMAT_DATA] = 40,
                                     [FI_CQ_FORMAT_TAGGED] = 48};
    for (enum fi_cq_format format = FI_CQ_FORMAT_UNSPEC; format <= FI_CQ_FORMAT_TAGGED; format++) {
        enum { COUNT = 3 };
        struct fid_cq *cq = open_cq(format);
        struct fid_ep *ep = open_ep(cq, cq, &(struct wish){0});
        const fi_addr_t self = own_address(ep);
        union {
            unsigned char bytes[(COUNT + 1) * sizeof(struct fi_cq_tagged_entry)];
            struct fi_cq_tagged_entry entry;
        } got;
        int contexts[COUNT];
        for (int i = 0; i < COUNT; i++) {
            EQUAL("formats", ON(ep, tagged, recv, to + i * SHORT, SHORT, NULL, self, 5, 0, &contexts[i]), 0);
            EQUAL("formats", ON(ep, tagged, injectdata, from, SHORT, 99, self, 5), 0);
        }
        spin_host_compute(100 * 1000);
        memset(&got, UNTOUCHED, sizeof got);
        EQUAL("formats", ON(cq, ops, read, &got, COUNT), COUNT);
        TRUE("formats", is_untouched(got.bytes + COUNT * lengths[format], sizeof got.bytes - COUNT * lengths[format]));
        for (int i = 0; i < COUNT; i++) {
            struct fi_cq_tagged_entry entry;
            memcpy(&entry, got.bytes + (size_t)i * lengths[format], lengths[format]);
            EQUAL("context", entry.op_context, &contexts[i]);
            if (lengths[format] > 8) {
                EQUAL("flags", entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
                EQUAL("length", entry.len, SHORT);
            }
            if (lengths[format] > 24)
                EQUAL("data", entry.data, 99);
            if (lengths[format] > 40)
                EQUAL("tag", entry.tag, 5);
        }
        close_object(&ep->fid);
        close_object(&cq->fid);
    }
    struct fi_cq_attr attr = {.format = (enum fi_cq_format)77};
    struct fid_cq *cq;
    EQUAL("no such format", ON(net.domain, ops, cq_open, &attr, &cq, NULL), -EINVAL);
    attr = (struct fi_cq_attr){.wait_obj = FI_WAIT_FD};
    EQUAL("no file descriptors", ON(net.domain, ops, cq_open, &attr, &cq, NULL), -ENOSYS);
    attr = (struct fi_cq_attr){.wait_obj = FI_WAIT_NONE};
    EXPECT(ON(net.domain, ops, cq_open, &attr, &cq, NULL) == 0);
    struct fi_cq_tagged_entry entry;
    EQUAL("no waiting", ON(cq, ops, sread, &entry, 1, NULL, 1), -ENOSYS);
    close_object(&cq->fid);
}

/* With FI_SELECTIVE_COMPLETION only operations with FI_COMPLETION, and errors, are reported. */
static void selective(void) {
    const struct wish wish = {.tx_selective = FI_SELECTIVE_COMPLETION, .rx_selective = FI_SELECTIVE_COMPLETION};
    struct fid_cq *tx = open_cq(FI_CQ_FORMAT_TAGGED), *rx = open_cq(FI_CQ_FORMAT_TAGGED);
    struct fid_ep *ep = open_ep(tx, rx, &wish);
    const fi_addr_t self = own_address(ep);
    static const size_t lengths[] = {SHORT, MEDIUM, LONG};
    struct fi_cq_tagged_entry entry = {0};
    struct fi_cq_err_entry error;
    for (size_t l = 0; l < 3; l++) {
        for (enum kind kind = MSG; kind <= TAGGED; kind++) {
            EQUAL("selective", post_receive(ep, kind, RECV, to, LONG, self, 1, 0, NULL), 0);
            EQUAL("selective", post_send(ep, kind, SEND, from, lengths[l], self, 1, 0, NULL), 0);
            for (int i = 0; i < 20; i++) {
                spin_host_compute(100 * 1000);
                TRUE("selective", is_empty(tx) && is_empty(rx));
            }
            SAME_BYTES("selective", to, from, lengths[l]);
            EQUAL("selective", post_receive(ep, kind, RECVMSG, to, LONG, self, 1, 0, from), 0);
            EQUAL("selective", post_send(ep, kind, SENDMSG, from, lengths[l], self, 1, 0, to), 0);
            EXPECT(next_entry(rx, &entry, NULL));
            EQUAL("selected", entry.op_context, from);
            EXPECT(next_entry(tx, &entry, NULL));
            EQUAL("selected", entry.op_context, to);
            EQUAL("selective", post_receive(ep, kind, RECV, to, 8, self, 1, 0, NULL), 0);
            EQUAL("selective", post_send(ep, kind, SEND, from, lengths[l], self, 1, 0, NULL), 0);
            EXPECT(next_error(rx, &error));
            EQUAL("errors are told", error.err, FI_ETRUNC);
        }
    }
    spin_host_compute(100 * 1000);
    TRUE("selective", is_empty(tx) && is_empty(rx));
    close_object(&ep->fid);
    close_object(&tx->fid);
    close_object(&rx->fid);
}

/* An operation with FI_DELIVERY_COMPLETE completes later than one whose data has only left. */
static void delivery(void) {
    if (ranks < 2)
        return;
    uint64_t times[2];
    for (int delivered = 0; delivered < 2; delivered++) {
        struct fi_cq_tagged_entry entry = {0};
        memset(to, 0, sizeof to);
        EQUAL("delivery", post_receive(net.ep, TAGGED, RECV, to, LONG, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
        barrier();
        if (rank == 0) {
            const uint64_t before = spin_time_ps();
            EQUAL("delivery",
                  post_send(net.ep, TAGGED, delivered ? SENDMSG_DELIVERED : SENDMSG, from, MEDIUM, net.peers[1], 1, 0,
                            NULL),
                  0);
            EXPECT(next_entry(net.tx, &entry, NULL));
            times[delivered] = spin_time_ps() - before;
        }
        if (rank == 1) {
            EXPECT(next_entry(net.rx, &entry, NULL));
            SAME_BYTES("delivery", to, from, MEDIUM);
        } else {
            EQUAL("delivery", net.ep->ops->cancel(&net.ep->fid, NULL), 0);
            struct fi_cq_err_entry error;
            EXPECT(next_error(net.rx, &error));
        }
        barrier();
    }
    if (rank == 0)
        judge(times[1] > times[0] + 100 * 1000, __FILE__, __LINE__, "delivery",
              "%llu ps until a message has been delivered, %llu ps until it has left", (unsigned long long)times[1],
              (unsigned long long)times[0]);
}

/* Waits end after their time-out, in simulated time, and as soon as an entry arrives. */
static void waits(void) {
    struct fi_cq_tagged_entry entry;
    struct fid_cntr *cntr = open_cntr();
    static const int limits[] = {0, 1, 10};
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = spin_time_ps();
        EQUAL("fi_cq_sread without completions", ON(net.rx, ops, sread, &entry, 1, NULL, limits[i]), -EAGAIN);
        uint64_t passed = (spin_time_ps() - before) / 1000000;
        judge(passed >= (uint64_t)limits[i] * 1000 && passed <= (uint64_t)limits[i] * 1000 + 100, __FILE__, __LINE__,
              "fi_cq_sread", "%llu us passed, not %d ms", (unsigned long long)passed, limits[i]);
        before = spin_time_ps();
        EQUAL("fi_cntr_wait without events", ON(cntr, ops, wait, 1, limits[i]), -ETIMEDOUT);
        passed = (spin_time_ps() - before) / 1000000;
        judge(passed >= (uint64_t)limits[i] * 1000 && passed <= (uint64_t)limits[i] * 1000 + 100, __FILE__, __LINE__,
              "fi_cntr_wait", "%llu us passed, not %d ms", (unsigned long long)passed, limits[i]);
    }
    EQUAL("signal", net.rx->ops->signal(net.rx), 0);
    const uint64_t before = spin_time_ps();
    EQUAL("a signalled queue does not wait", ON(net.rx, ops, sread, &entry, 1, NULL, 100), -EAGAIN);
    TRUE("a signalled queue does not wait", spin_time_ps() - before < 1000000000);
    close_object(&cntr->fid);
    /* A message that arrives after 3 ms ends a wait of 100 ms, and one without a limit. */
    for (int turn = 0; turn < 2; turn++) {
        EQUAL("wait", post_receive(net.ep, TAGGED, RECV, to, LONG, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
        barrier();
        const uint64_t start = spin_time_ps();
        if (rank == 0) {
            spin_host_compute(3 * 1000 * 1000);
            for (int r = 0; r < ranks; r++)
                EQUAL("wait", post_send(net.ep, TAGGED, INJECT, from, SHORT, net.peers[r], 1, 0, NULL), 0);
        }
        EQUAL("wait", ON(net.rx, ops, sread, &entry, 1, NULL, turn ? -1 : 100), 1);
        const uint64_t passed = (spin_time_ps() - start) / 1000000;
        judge(passed >= 3000 && passed < 3100, __FILE__, __LINE__, "wait", "%llu us passed, not 3 ms",
              (unsigned long long)passed);
        barrier();
    }
    /* Polling finds the message as well. */
    EQUAL("poll", post_receive(net.ep, TAGGED, RECV, to, LONG, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
    barrier();
    if (rank == 0) {
        spin_host_compute(10 * 1000);
        for (int r = 0; r < ranks; r++)
            EQUAL("poll", post_send(net.ep, TAGGED, INJECT, from, SHORT, net.peers[r], 1, 0, NULL), 0);
    }
    ssize_t rc;
    while ((rc = ON(net.rx, ops, read, &entry, 1)) == -EAGAIN)
        ;
    EQUAL("poll", rc, 1);
    barrier();
}

/* Each counter counts its operations, and errors separately. */
static void counters(void) {
    enum { SENT, RECEIVED, READ, WRITTEN, COUNTERS, KEY = 3 };
    static const uint64_t flags[COUNTERS] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
    struct fid_cntr *cntrs[COUNTERS];
    struct fid_ep *ep;
    struct fid_mr *mr;
    EXPECT(ON(net.domain, ops, endpoint, net.info, &ep, NULL) == 0);
    EXPECT(ep->fid.ops->bind(&ep->fid, &net.av->fid, 0) == 0);
    for (int i = 0; i < COUNTERS; i++) {
        cntrs[i] = open_cntr();
        EQUAL("bind", ep->fid.ops->bind(&ep->fid, &cntrs[i]->fid, flags[i]), 0);
    }
    EQUAL("bind", ep->fid.ops->bind(&ep->fid, &cntrs[0]->fid, FI_REMOTE_WRITE), -ENOSYS);
    EXPECT(ep->fid.ops->bind(&ep->fid, &net.tx->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) == 0);
    EXPECT(ep->fid.ops->bind(&ep->fid, &net.rx->fid, FI_RECV | FI_SELECTIVE_COMPLETION) == 0);
    EXPECT(ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL) == 0);
    EXPECT(net.domain->mr->reg(&net.domain->fid, to, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL) ==
           0);
    const fi_addr_t self = own_address(ep);
    static const size_t lengths[] = {SHORT, MEDIUM, LONG};
    uint64_t value = 1;
    for (uint64_t l = 0; l < 3; l++) {
        EQUAL("count", post_receive(ep, TAGGED, RECV, to, LONG, self, 1, 0, NULL), 0);
        EQUAL("count", post_send(ep, TAGGED, SEND, from, lengths[l], self, 1, 0, NULL), 0);
        EQUAL("sent", ON(cntrs[SENT], ops, wait, l + 1, PATIENCE), 0);
        EQUAL("received", ON(cntrs[RECEIVED], ops, wait, l + 1, PATIENCE), 0);
        SAME_BYTES("received", to, from, lengths[l]);
        EQUAL("count", ON(ep, rma, write, from, lengths[l], NULL, self, 0, KEY, NULL), 0);
        EQUAL("count", ON(ep, rma, inject, from, 8, self, 0, KEY), 0);
        EQUAL("count", ON(ep, atomic, write, &value, 1, NULL, self, 0, KEY, FI_UINT64, FI_BXOR, NULL), 0);
        EQUAL("written", ON(cntrs[WRITTEN], ops, wait, 3 * (l + 1), PATIENCE), 0);
        EQUAL("count", ON(ep, rma, read, to + 8, 8, NULL, self, 0, KEY, NULL), 0);
        EQUAL("count", ON(ep, atomic, readwrite, &value, 1, NULL, to + 16, NULL, self, 0, KEY, FI_UINT64, FI_SUM, NULL),
              0);
        EQUAL("read", ON(cntrs[READ], ops, wait, 2 * (l + 1), PATIENCE), 0);
    }
    /* The second message does not fit into the memory of the first. The end of that memory is reported, and is not a
     * message. */
    struct fi_cq_tagged_entry entry;
    for (int i = 0; i < 2; i++) {
        struct iovec piece = {to + i * 1000, 1000};
        struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = piece.iov_base};
        EQUAL("memory for messages", ON(ep, msg, recvmsg, &message, FI_MULTI_RECV), 0);
    }
    EQUAL("count", ON(ep, msg, send, from, 500, NULL, self, NULL), 0);
    EQUAL("count", ON(ep, msg, send, from, 800, NULL, self, NULL), 0);
    EQUAL("received", ON(cntrs[RECEIVED], ops, wait, 5, PATIENCE), 0);
    EXPECT(next_entry(net.rx, &entry, NULL));
    EQUAL("end of a memory", entry.flags, FI_MULTI_RECV);
    EQUAL("end of a memory", entry.op_context, to);
    const uint64_t values[COUNTERS] = {5, 5, 6, 9};
    for (int i = 0; i < COUNTERS; i++) {
        EQUAL("count", value_of(cntrs[i]), values[i]);
        EQUAL("no errors", errors_of(cntrs[i]), 0);
    }
    EQUAL("error", ON(ep, rma, write, from, 8, NULL, self, 0, KEY + 1, NULL), 0);
    EQUAL("a wait ends with an error", ON(cntrs[WRITTEN], ops, wait, 10, PATIENCE), -FI_EAVAIL);
    EQUAL("errors", errors_of(cntrs[WRITTEN]), 1);
    EQUAL("errors do not count as successes", value_of(cntrs[WRITTEN]), 9);
    struct fi_cq_err_entry error;
    EXPECT(next_error(net.tx, &error));
    TRUE("successes are counted and not told", is_empty(net.tx) && is_empty(net.rx));
    EQUAL("add", ON(cntrs[0], ops, add, 5), 0);
    EQUAL("add", value_of(cntrs[0]), 10);
    EQUAL("set", ON(cntrs[0], ops, set, 2), 0);
    EQUAL("set", value_of(cntrs[0]), 2);
    EQUAL("seterr", ON(cntrs[0], ops, seterr, 7), 0);
    EQUAL("adderr", ON(cntrs[0], ops, adderr, 1), 0);
    EQUAL("adderr", errors_of(cntrs[0]), 8);
    EQUAL("wait for what is there", ON(cntrs[0], ops, wait, 2, 0), 0);
    close_object(&ep->fid);
    close_object(&mr->fid);
    for (int i = 0; i < COUNTERS; i++)
        close_object(&cntrs[i]->fid);
}

GROUP(completions) {
    open_net(&(struct wish){0});
    fill(from, sizeof from, 9);
    formats();
    selective();
    delivery();
    waits();
    counters();
    close_net();
}
