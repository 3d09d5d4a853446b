/* SPDX-License-Identifier: Apache-2.0 */
/* A full event queue of the card lets calls return -FI_EOVERRUN, and does not end the program. */
#include "transfers.h"

/* The card's event queue has 65,536 places, and a write makes one event. */
enum { PLACES = 1 << 16, BEFORE = 10, WRITES = PLACES + 100, MS = 1000 * 1000 };

static unsigned char from, to;

static ssize_t write_one(const struct fid_mr *mr) {
    const bool is_virtual = net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    return ON(net.ep, rma, write, &from, 1, NULL, net.peers[rank], is_virtual ? (uint64_t)(uintptr_t)&to : 0, mr->key,
              NULL);
}

/* Posts writes, and waits until they are acknowledged. Returns the number posted. */
static size_t write_all(const struct fid_mr *mr, size_t count) {
    size_t posted = 0;
    while (posted < count && write_one(mr) == 0)
        posted++;
    spin_host_compute(MS);
    return posted;
}

static struct fid_cntr *count_writes(void) {
    struct fid_cntr *writes;
    EQUAL("fi_cntr_open", ON(net.domain, ops, cntr_open, &(struct fi_cntr_attr){0}, &writes, NULL), 0);
    return writes;
}

GROUP(overflow) {
    struct fi_cq_tagged_entry entry;
    struct fid_mr *mr;
    open_net(&(struct wish){0});
    struct fid_cntr *writes = count_writes();
    EQUAL("fi_mr_reg", net.domain->mr->reg(&net.domain->fid, &to, 1, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
    EQUAL("writes", write_all(mr, BEFORE), BEFORE);
    EQUAL("a completion, the first", ON(net.tx, ops, read, &entry, 1), 1);
    EQUAL("writes", write_all(mr, WRITES), WRITES);
    for (size_t i = 1; i < BEFORE; i++)
        EQUAL("completion before the loss", ON(net.tx, ops, read, &entry, 1), 1);
    EQUAL("completions are lost", ON(net.tx, ops, read, &entry, 1), -FI_EOVERRUN);
    EQUAL("the queue stays failed", ON(net.tx, ops, sread, &entry, 1, NULL, 1), -FI_EOVERRUN);
    EQUAL("the other queue fails", ON(net.rx, ops, read, &entry, 1), -FI_EOVERRUN);
    EQUAL("the loss is no completion with an error", ON(net.tx, ops, readerr, &(struct fi_cq_err_entry){0}, 0),
          -EAGAIN);
    EQUAL("a write", write_one(mr), -FI_EOVERRUN);
    EQUAL("a send", post_send(net.ep, TAGGED, SEND, &from, 1, net.peers[rank], 0, 0, NULL), -FI_EOVERRUN);
    EQUAL("a receive", post_receive(net.ep, TAGGED, RECV, &to, 1, net.peers[rank], 0, 0, NULL), -FI_EOVERRUN);
    EQUAL("a wait for a counter", ON(writes, ops, wait, 1, -1), -FI_EOVERRUN);
    EQUAL("fi_close of the counter", writes->fid.ops->close(&writes->fid), 0);
    EQUAL("fi_close of the region", mr->fid.ops->close(&mr->fid), 0);
    close_net();
}
