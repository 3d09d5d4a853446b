/* SPDX-License-Identifier: Apache-2.0 */
/* Operations with rank 1, which has ended or has a stopped card. */
#include "transfers.h"

enum { SHORT = 100, MEDIUM = 4000, LONG = 20000, KEY = 1 };
static unsigned char buffer[LONG], other[LONG];
static _Alignas(8) uint64_t value = 1, result;

static void fails(const char *name, ssize_t rc, struct fid_cq *cq, int number, int card) {
    struct fi_cq_err_entry error;
    EQUAL(name, rc, 0);
    if (rc != 0)
        return;
    if (!next_error(cq, &error)) {
        TRUE(name, !"the failure is told");
        return;
    }
    EQUAL(name, error.err, number);
    EQUAL(name, error.prov_errno, card);
    EQUAL(name, error.op_context, other);
}

static void operations(int number, int card) {
    struct fid_mr *mr;
    open_net(&(struct wish){0});
    EXPECT(ranks >= 3);
    EXPECT(net.domain->mr->reg(&net.domain->fid, buffer, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
                               NULL) == 0);
    barrier();
    const fi_addr_t gone = net.peers[1];
    if (rank == 1) {
        for (enum kind kind = MSG; kind <= TAGGED; kind++)
            for (int r = 0; r < ranks; r += 2)
                EQUAL("send", post_send(net.ep, kind, SEND, buffer, LONG, net.peers[r], 50, 0, NULL), 0);
        spin_host_compute(1000 * 1000 * 1000);
        exit(0);
    }
    spin_host_compute(20 * 1000 * 1000); /* rank 1 ends within this time */
    for (enum kind kind = MSG; kind <= TAGGED; kind++)
        fails("receive of a long message", post_receive(net.ep, kind, RECV, other, LONG, gone, 50, 0, other), net.rx,
              number, card);
    for (enum kind kind = MSG; kind <= TAGGED; kind++) {
        fails("send, delivered", post_send(net.ep, kind, SENDMSG_DELIVERED, buffer, SHORT, gone, 1, 0, other), net.tx,
              number, card);
        fails("send, delivered", post_send(net.ep, kind, SENDMSG_DELIVERED, buffer, MEDIUM, gone, 1, 0, other), net.tx,
              number, card);
        fails("long send", post_send(net.ep, kind, SEND, buffer, LONG, gone, 1, 0, other), net.tx, number, card);
        fails("long send", post_send(net.ep, kind, SENDV, buffer, LONG, gone, 1, 0, other), net.tx, number, card);
    }
    fails("write", ON(net.ep, rma, write, buffer, SHORT, NULL, gone, 0, KEY, other), net.tx, number, card);
    fails("write", ON(net.ep, rma, write, buffer, LONG, NULL, gone, 0, KEY, other), net.tx, number, card);
    fails("read", ON(net.ep, rma, read, buffer, LONG, NULL, gone, 0, KEY, other), net.tx, number, card);
    fails("atomic", ON(net.ep, atomic, write, &value, 1, NULL, gone, 0, KEY, FI_UINT64, FI_SUM, other), net.tx, number,
          card);
    fails("fetch",
          ON(net.ep, atomic, readwrite, &value, 1, NULL, &result, NULL, gone, 0, KEY, FI_UINT64, FI_SUM, other), net.tx,
          number, card);
    TRUE("nothing is left", is_empty(net.tx) && is_empty(net.rx));
    /* The other ranks continue. */
    const int partner = rank == 0 ? 2 : 0;
    static const size_t lengths[] = {SHORT, MEDIUM, LONG};
    for (size_t l = 0; l < 3; l++) {
        struct fi_cq_tagged_entry entry;
        fill(buffer, LONG, (unsigned)rank);
        EQUAL("others", ON(net.ep, tagged, recv, other, LONG, NULL, net.peers[partner], 1, 0, NULL), 0);
        EQUAL("others", ON(net.ep, tagged, send, buffer, lengths[l], NULL, net.peers[partner], 1, NULL), 0);
        EXPECT(next_entry(net.tx, &entry, NULL));
        EXPECT(next_entry(net.rx, &entry, NULL));
        TRUE("others", is_filled(other, lengths[l], (unsigned)partner));
    }
    barrier();
    EQUAL("close", mr->fid.ops->close(&mr->fid), 0);
    close_net();
}

/* spinrun --fail 1@5ms: the card of an ended rank refuses messages. */
GROUP(ended_rank) { operations(FI_ENOKEY, PTL_NI_DROPPED); }

/* spinrun --kill-card 1@5ms: a stopped card does not answer. */
GROUP(stopped_card) { operations(EHOSTUNREACH, PTL_NI_UNDELIVERABLE); }
