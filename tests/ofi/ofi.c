/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's objects, and waiting for completions. */
#include "ofi.h"

#include <pmi.h>

struct net net;
int rank, ranks;

static void pmi(int code, const char *call) {
    if (code == PMI_SUCCESS)
        return;
    fprintf(stderr, "rank %d: %s returned %d\n", rank, call, code);
    exit(1);
}
#define PMI(call) pmi(call, #call)

void barrier(void) { EXPECT(spin_barrier() == PTL_OK); }

void exchange(const void *mine, size_t length, void *all) {
    static int turn;
    char space[256], key[64], text[2 * NAME_SIZE + 1];
    int spawned;
    EXPECT(length <= NAME_SIZE);
    if (turn == 0)
        PMI(PMI_Init(&spawned));
    PMI(PMI_KVS_Get_my_name(space, sizeof space));
    for (size_t i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)mine)[i]);
    snprintf(key, sizeof key, "%d-%d", turn, rank);
    PMI(PMI_KVS_Put(space, key, text));
    PMI(PMI_Barrier());
    for (int r = 0; r < ranks; r++) {
        snprintf(key, sizeof key, "%d-%d", turn, r);
        PMI(PMI_KVS_Get(space, key, text, sizeof text));
        for (size_t i = 0; i < length; i++) {
            unsigned byte;
            EXPECT(sscanf(text + 2 * i, "%2x", &byte) == 1);
            ((unsigned char *)all)[(size_t)r * length + i] = (unsigned char)byte;
        }
    }
    turn++;
}

struct fi_info *get_info(const struct wish *wish) {
    struct fi_info *hints = fi_dupinfo(NULL), *info = NULL;
    EXPECT(hints);
    hints->caps = wish->caps ? wish->caps
                             : FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = wish->mr_mode;
    hints->domain_attr->av_type = wish->av_type;
    hints->rx_attr->op_flags = wish->rx_op_flags;
    int rc = fi_getinfo(wish->version ? wish->version : FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
    fi_freeinfo(hints);
    if (rc != 0) {
        fprintf(stderr, "rank %d: fi_getinfo returned %d\n", rank, rc);
        exit(1);
    }
    return info;
}

struct fid_cq *open_cq(enum fi_cq_format format) {
    struct fi_cq_attr attr = {.format = format, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cq *cq;
    EXPECT(ON(net.domain, ops, cq_open, &attr, &cq, NULL) == 0);
    return cq;
}

struct fid_ep *open_ep(struct fid_cq *tx, struct fid_cq *rx, const struct wish *wish) {
    struct fid_ep *ep;
    EXPECT(ON(net.domain, ops, endpoint, net.info, &ep, NULL) == 0);
    EXPECT(ep->fid.ops->bind(&ep->fid, &net.av->fid, 0) == 0);
    if (tx)
        EXPECT(ep->fid.ops->bind(&ep->fid, &tx->fid, FI_TRANSMIT | wish->tx_selective) == 0);
    if (rx)
        EXPECT(ep->fid.ops->bind(&ep->fid, &rx->fid, FI_RECV | wish->rx_selective) == 0);
    EXPECT(ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL) == 0);
    return ep;
}

size_t name_of(struct fid_ep *ep, void *name) {
    size_t length = NAME_SIZE;
    EXPECT(ep->cm->getname(&ep->fid, name, &length) == 0);
    return length;
}

void open_net(const struct wish *wish) {
    char mine[NAME_SIZE], all[RANKS * NAME_SIZE];
    struct fi_av_attr attr = {.type = wish->av_type};
    net.info = get_info(wish);
    EXPECT(fi_fabric(net.info->fabric_attr, &net.fabric, NULL) == 0);
    EXPECT(ON(net.fabric, ops, domain, net.info, &net.domain, NULL) == 0);
    EXPECT(ON(net.domain, ops, av_open, &attr, &net.av, NULL) == 0);
    net.tx = open_cq(wish->format ? wish->format : FI_CQ_FORMAT_TAGGED);
    net.rx = open_cq(wish->format ? wish->format : FI_CQ_FORMAT_TAGGED);
    net.ep = open_ep(net.tx, net.rx, wish);
    size_t length = name_of(net.ep, mine);
    exchange(mine, length, all);
    EXPECT(ON(net.av, ops, insert, all, (size_t)ranks, net.peers, 0, NULL) == ranks);
    barrier();
}

void close_net(void) {
    struct fid *objects[] = {&net.ep->fid, &net.tx->fid,     &net.rx->fid,
                             &net.av->fid, &net.domain->fid, &net.fabric->fid};
    barrier();
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        EXPECT(objects[i]->ops->close(objects[i]) == 0);
    fi_freeinfo(net.info);
}

bool next_entry(struct fid_cq *cq, struct fi_cq_tagged_entry *entry, fi_addr_t *source) {
    fi_addr_t from;
    ssize_t count = ON(cq, ops, sreadfrom, entry, 1, source ? source : &from, NULL, PATIENCE);
    if (count == 1)
        return true;
    struct fi_cq_err_entry error = {0};
    if (count == -FI_EAVAIL && ON(cq, ops, readerr, &error, 0) == 1)
        printf("rank %d: an error instead of a completion: %s, provider's %d\n", rank, strerror(error.err),
               error.prov_errno);
    else
        printf("rank %d: no completion: fi_cq_sread returned %zd\n", rank, count);
    return false;
}

bool next_error(struct fid_cq *cq, struct fi_cq_err_entry *error) {
    struct fi_cq_tagged_entry entry = {0};
    memset(error, 0, sizeof *error);
    ssize_t count = ON(cq, ops, sread, &entry, 1, NULL, PATIENCE);
    if (count == -FI_EAVAIL && ON(cq, ops, readerr, error, 0) == 1)
        return true;
    printf("rank %d: no error: fi_cq_sread returned %zd, flags %#llx, %zu bytes\n", rank, count,
           (unsigned long long)entry.flags, entry.len);
    return false;
}

bool is_empty(struct fid_cq *cq) {
    struct fi_cq_tagged_entry entry;
    spin_time_ps(); /* After reading the time, an empty read does not make a program wait (spin_idle). */
    return ON(cq, ops, read, &entry, 1) == -EAGAIN;
}

void look(struct fid_cq *cq) {
    struct fi_cq_tagged_entry none;
    ON(cq, ops, read, &none, 0);
}

void settle(void) {
    spin_host_compute(500 * 1000);
    spin_time_ps();
    look(net.rx);
    barrier();
}
