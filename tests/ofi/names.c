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

/* Names come back as they went in; removed ones are gone. */
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

/* A removed peer cannot be sent to; inserted again, it can. */
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

/* Two endpoints of a process have addresses of their own. */
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
    /* The second one's message comes first, and is for the receive that is posted last. */
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

GROUP(names) {
    open_net(&(struct wish){0});
    vectors(FI_AV_UNSPEC);
    vectors(FI_AV_TABLE);
    vectors(FI_AV_MAP);
    text();
    endpoints();
    peers();
    struct fi_av_attr attr = {.name = "shared"};
    struct fid_av *av;
    EQUAL("no shared vectors", ON(net.domain, ops, av_open, &attr, &av, NULL), -ENOSYS);
    close_net();
}
