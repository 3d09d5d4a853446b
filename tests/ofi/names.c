/* SPDX-License-Identifier: Apache-2.0 */
/* Address vectors. */
#include "ofi.h"

enum { MANY = 1000 };

static struct fid_av *open_av(enum fi_av_type type) {
    struct fi_av_attr attr = {.type = type, .count = 4};
    struct fid_av *av;
    EXPECT(ON(net.domain, ops, av_open, &attr, &av, NULL) == 0);
    EQUAL("type", attr.type, type ? type : FI_AV_TABLE);
    return av;
}

/* Names are returned unchanged; removed ones are gone. */
static void vectors(enum fi_av_type type) {
    static char names[MANY][NAME_SIZE];
    char own[NAME_SIZE], back[NAME_SIZE];
    fi_addr_t addresses[MANY], more[3];
    struct fid_av *av = open_av(type);
    const size_t length = name_of(net.ep, own);
    for (size_t i = 0; i < MANY; i++) {
        memcpy((char *)names + i * length, own, length);
        ((char *)names)[i * length] = (char)i; /* the number of a node */
    }
    EQUAL("insert", ON(av, ops, insert, names, MANY, addresses, 0, NULL), MANY);
    for (size_t i = 0; i < MANY; i++) {
        size_t room = sizeof back;
        if (type != FI_AV_MAP)
            EQUAL("addresses of a table are numbers", addresses[i], i);
        EQUAL("lookup", ON(av, ops, lookup, addresses[i], back, &room), 0);
        EQUAL("lookup", room, length);
        SAME_BYTES("lookup", back, (char *)names + i * length, length);
    }
    EQUAL("insert more", ON(av, ops, insert, names, 3, more, 0, NULL), 3);
    int errors[] = {7, 7, 7, 7};
    EQUAL("insert with errors", ON(av, ops, insert, names, 3, more, FI_SYNC_ERR, errors), 3);
    TRUE("insert with errors", errors[0] == 0 && errors[1] == 0 && errors[2] == 0 && errors[3] == 7);
    EQUAL("insert none", ON(av, ops, insert, names, 0, NULL, 0, NULL), 0);
    EQUAL("insert without addresses", ON(av, ops, insert, names, 1, NULL, 0, NULL), 1);
    size_t room = 3;
    memset(back, UNTOUCHED, sizeof back);
    EQUAL("lookup in a short buffer", ON(av, ops, lookup, addresses[1], back, &room), 0);
    EQUAL("lookup in a short buffer", room, length);
    TRUE("lookup in a short buffer", is_untouched(back + 3, sizeof back - 3));
    EQUAL("remove", ON(av, ops, remove, &addresses[5], 2, 0), 0);
    room = sizeof back;
    for (size_t i = 5; i < 7; i++)
        EQUAL("removed", ON(av, ops, lookup, addresses[i], back, &room), -EINVAL);
    EQUAL("remove twice", ON(av, ops, remove, &addresses[5], 1, 0), -EINVAL);
    EQUAL("its neighbour", ON(av, ops, lookup, addresses[7], back, &room), 0);
    fi_addr_t none = MANY + 100;
    EQUAL("never inserted", ON(av, ops, lookup, none, back, &room), -EINVAL);
    EQUAL("never inserted", ON(av, ops, lookup, FI_ADDR_NOTAVAIL, back, &room), -EINVAL);
    EQUAL("never inserted", ON(av, ops, remove, &none, 1, 0), -EINVAL);
    EQUAL("a domain with a vector", net.domain->fid.ops->close(&net.domain->fid), -EBUSY);
    EQUAL("close", av->fid.ops->close(&av->fid), 0);
}

static void text(void) {
    char own[NAME_SIZE], whole[100], part[8];
    name_of(net.ep, own);
    size_t length = sizeof whole;
    EQUAL("text", ON(net.av, ops, straddr, own, whole, &length), whole);
    EQUAL("text", length, strlen(whole) + 1);
    TRUE("text", strncmp(whole, "spin://", 7) == 0);
    length = sizeof part;
    memset(part, UNTOUCHED, sizeof part);
    ON(net.av, ops, straddr, own, part, &length);
    EQUAL("text in a short buffer", length, strlen(whole) + 1);
    EQUAL("text in a short buffer", strlen(part), sizeof part - 1);
}

/* Sends to a removed peer fail; after insertion they work again. */
static void peers(void) {
    const int next = (rank + 1) % ranks;
    char name[NAME_SIZE];
    unsigned char out[8], in[8] = {0};
    size_t room = sizeof name;
    fi_addr_t again, *peer = &net.peers[next];
    struct fi_cq_tagged_entry entry;
    fill(out, 8, 4);
    EQUAL("peer", ON(net.av, ops, lookup, *peer, name, &room), 0);
    EQUAL("peer", ON(net.av, ops, remove, peer, 1, 0), 0);
    EQUAL("a removed peer", ON(net.ep, tagged, send, out, 8, NULL, *peer, 1, NULL), -EINVAL);
    EQUAL("a removed peer", ON(net.ep, tagged, recv, in, 8, NULL, *peer, 1, 0, NULL), -EINVAL);
    EQUAL("a removed peer", ON(net.ep, rma, write, out, 8, NULL, *peer, 0, 1, NULL), -EINVAL);
    EQUAL("peer", ON(net.av, ops, insert, name, 1, &again, 0, NULL), 1);
    EQUAL("peer", ON(net.ep, tagged, recv, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
    barrier();
    EQUAL("peer", ON(net.ep, tagged, inject, out, 8, again, 1), 0);
    EXPECT(next_entry(net.rx, &entry, NULL));
    SAME_BYTES("peer", in, out, 8);
    char short_name[4];
    room = sizeof short_name;
    EQUAL("name in a short buffer", net.ep->cm->getname(&net.ep->fid, short_name, &room), -FI_ETOOSMALL);
    EQUAL("name in a short buffer", room, name_of(net.ep, name));
    barrier();
}

/* Two endpoints of a process have separate addresses. */
static void endpoints(void) {
    char mine[NAME_SIZE], all[RANKS * NAME_SIZE];
    fi_addr_t seconds[RANKS], sources[2];
    unsigned char bytes[2] = {1, 2}, in[2] = {0};
    struct fi_cq_tagged_entry entry;
    struct fid_ep *second = open_ep(net.tx, net.rx, &(struct wish){0});
    const size_t length = name_of(second, mine);
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    exchange(mine, length, all);
    EQUAL("insert", ON(net.av, ops, insert, all, (size_t)ranks, seconds, 0, NULL), ranks);
    /* The second one's message arrives first, and is for the receive posted last. */
    EQUAL("receive", ON(net.ep, msg, recv, &in[0], 1, NULL, net.peers[previous], &in[0]), 0);
    EQUAL("receive", ON(net.ep, msg, recv, &in[1], 1, NULL, seconds[previous], &in[1]), 0);
    barrier();
    EQUAL("send", ON(second, msg, inject, &bytes[1], 1, net.peers[next]), 0);
    EQUAL("send", ON(net.ep, msg, inject, &bytes[0], 1, net.peers[next]), 0);
    for (int i = 0; i < 2; i++)
        EXPECT(next_entry(net.rx, &entry, &sources[i]));
    SAME_BYTES("directed receives", in, bytes, sizeof in);
    EQUAL("source", sources[0], seconds[previous]);
    EQUAL("source", sources[1], net.peers[previous]);
    /* Both tagged messages match, in the order of the sends. */
    EQUAL("send", ON(second, tagged, inject, &bytes[0], 1, net.peers[next], 7), 0);
    EQUAL("send", ON(net.ep, tagged, inject, &bytes[1], 1, net.peers[next], 7), 0);
    for (int i = 0; i < 2; i++) {
        EQUAL("receive", ON(net.ep, tagged, recv, &in[i], 1, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
        EXPECT(next_entry(net.rx, &entry, &sources[i]));
    }
    SAME_BYTES("tagged", in, bytes, sizeof in);
    EQUAL("source", sources[0], seconds[previous]);
    EQUAL("source", sources[1], net.peers[previous]);
    barrier();
    EQUAL("close", second->fid.ops->close(&second->fid), 0);
}

/* A rank is found by the address of its host. Its name is that of its first endpoint. */
static void hosts(void) {
    char names[RANKS * NAME_SIZE], own[NAME_SIZE], host[32];
    const size_t length = name_of(net.ep, own);
    exchange(own, length, names);
    for (int r = 0; r < ranks; r++) {
        struct fi_info *info = NULL;
        snprintf(host, sizeof host, "127.1.0.%d", r);
        EXPECT(fi_getinfo(FI_VERSION(1, 17), host, "5000", 0, NULL, &info) == 0);
        EQUAL("destination", info->dest_addrlen, length);
        SAME_BYTES("destination", info->dest_addr, names + (size_t)r * length, length);
        SAME_BYTES("source", info->src_addr, own, length);
        fi_freeinfo(info);
        const int rc = fi_getinfo(FI_VERSION(1, 17), host, NULL, FI_SOURCE, NULL, &info);
        EQUAL("the source is this rank", rc, r == rank ? 0 : -ENODATA);
        if (rc == 0)
            fi_freeinfo(info);
    }
    fi_addr_t next;
    char back[NAME_SIZE];
    size_t room = sizeof back;
    snprintf(host, sizeof host, "127.1.0.%d", (rank + 1) % ranks);
    EQUAL("insert a host", ON(net.av, ops, insertsvc, host, "5000", &next, 0, NULL), 1);
    EQUAL("insert a host", ON(net.av, ops, lookup, next, back, &room), 0);
    SAME_BYTES("insert a host", back, names + (size_t)((rank + 1) % ranks) * length, length);
    EQUAL("insert an unknown host", ON(net.av, ops, insertsvc, "127.1.0.77", "5000", &next, 0, NULL), -EINVAL);
    barrier();
}

/* Without FI_DIRECTED_RECV a receive takes messages of all sources, whatever source it names. */
static void undirected(void) {
    open_net(&(struct wish){.caps = FI_MSG | FI_TAGGED | FI_SOURCE});
    const int previous = (rank + ranks - 1) % ranks, next = (rank + 1) % ranks;
    unsigned char byte = (unsigned char)rank, in[2] = {UNTOUCHED, UNTOUCHED};
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    EQUAL("receive", ON(net.ep, msg, recv, &in[0], 1, NULL, net.peers[rank], NULL), 0);
    EQUAL("receive", ON(net.ep, tagged, recv, &in[1], 1, NULL, net.peers[rank], 3, 0, NULL), 0);
    barrier();
    EQUAL("send", ON(net.ep, msg, inject, &byte, 1, net.peers[next]), 0);
    EXPECT(next_entry(net.rx, &entry, &source));
    EQUAL("source", source, net.peers[previous]);
    EQUAL("send", ON(net.ep, tagged, inject, &byte, 1, net.peers[next], 3), 0);
    EXPECT(next_entry(net.rx, &entry, &source));
    EQUAL("source", source, net.peers[previous]);
    EQUAL("message", in[0], previous);
    EQUAL("tagged message", in[1], previous);
    close_net();
}

GROUP(names) {
    open_net(&(struct wish){0});
    vectors(FI_AV_UNSPEC);
    vectors(FI_AV_TABLE);
    vectors(FI_AV_MAP);
    text();
    hosts();
    endpoints();
    peers();
    struct fi_av_attr attr = {.name = "shared"};
    struct fid_av *av;
    EQUAL("no shared vectors", ON(net.domain, ops, av_open, &attr, &av, NULL), -ENOSYS);
    close_net();
    undirected();
}
