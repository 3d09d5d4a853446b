/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes of remote memory. */
#include "transfers.h"

enum { SIZE = 1 << 18, PIECE = 3000, SLOT = 4096 };
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
static unsigned char local[SIZE], exposed[SIZE], want[SIZE], got[SIZE];

/* Region of a rank: data for access by other ranks. */
struct place {
    uint64_t key, base;
};
static uint64_t next_key;

static int reg(struct iovec *iov, size_t count, uint64_t access, uint64_t key, struct fid_mr **mr) {
    struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = count, .access = access, .requested_key = key};
    struct fid *domain = &net.domain->fid;
    switch (key % 3) { /* each of the calls */
    case 0: return net.domain->mr->regattr(domain, &attr, 0, mr);
    case 1:
        if (count == 1)
            return net.domain->mr->reg(domain, iov->iov_base, iov->iov_len, access, 0, key, 0, mr, NULL);
        /* fallthrough */
    default: return net.domain->mr->regv(domain, iov, count, access, 0, key, 0, mr, NULL);
    }
}

static struct fid_mr *expose(struct iovec *iov, size_t count, uint64_t access, struct place *places) {
    struct fid_mr *mr;
    const int mode = net.info->domain_attr->mr_mode;
    const uint64_t key = ++next_key;
    EXPECT(reg(iov, count, access, key, &mr) == 0);
    if (!(mode & FI_MR_PROV_KEY) && mode != FI_MR_BASIC)
        EQUAL("the requested key", mr->key, key);
    struct place mine = {mr->key, mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)iov->iov_base : 0};
    exchange(&mine, sizeof mine, places);
    return mr;
}

static struct fid_mr *expose_memory(void *memory, size_t length, uint64_t access, struct place *places) {
    return expose(&(struct iovec){memory, length}, 1, access, places);
}

static void unexpose(struct fid_mr *mr) { EQUAL("fi_close of a region", mr->fid.ops->close(&mr->fid), 0); }

static void completes(const char *name, uint64_t flags, void *context) {
    struct fi_cq_tagged_entry entry = {0};
    EXPECT(next_entry(net.tx, &entry, NULL));
    EQUAL(name, entry.flags, FI_RMA | flags);
    EQUAL(name, entry.op_context, context);
}

static void fails(const char *name, int number, int card, void *context) {
    struct fi_cq_err_entry error;
    EXPECT(next_error(net.tx, &error));
    EQUAL(name, error.err, number);
    EQUAL(name, error.prov_errno, card);
    EQUAL(name, error.op_context, context);
    TRUE(name, strlen(ON(net.tx, ops, strerror, error.prov_errno, NULL, NULL, 0)) > 0);
}

enum write_form {
    WRITE,
    WRITEV,
    WRITEMSG,
    WRITEMSG_DATA,
    WRITEMSG_DELIVERED,
    WRITEMSG_INJECTED,
    WRITEDATA,
    INJECT_WRITE,
    INJECT_WRITEDATA,
    WRITE_FORMS
};

static bool writes_data(enum write_form form) {
    return form == WRITEMSG_DATA || form == WRITEDATA || form == INJECT_WRITEDATA;
}

static ssize_t start_write(enum write_form form, void *buffer, size_t length, uint64_t addr, uint64_t key,
                           uint64_t data, void *context) {
    static const uint64_t flags[WRITE_FORMS] = {[WRITEMSG] = FI_COMPLETION,
                                                [WRITEMSG_DATA] = FI_COMPLETION | FI_REMOTE_CQ_DATA,
                                                [WRITEMSG_DELIVERED] = FI_COMPLETION | FI_DELIVERY_COMPLETE,
                                                [WRITEMSG_INJECTED] = FI_COMPLETION | FI_INJECT};
    const fi_addr_t to = net.peers[next_rank()];
    struct iovec pieces[PIECES];
    cut(buffer, length, pieces);
    struct fi_rma_iov remote = {addr, length, key};
    struct fi_msg_rma message = {.msg_iov = pieces,
                                 .iov_count = PIECES,
                                 .addr = to,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .context = context,
                                 .data = data};
    switch (form) {
    case WRITE: return ON(net.ep, rma, write, buffer, length, NULL, to, addr, key, context);
    case WRITEV: return ON(net.ep, rma, writev, pieces, NULL, PIECES, to, addr, key, context);
    case WRITEDATA: return ON(net.ep, rma, writedata, buffer, length, NULL, data, to, addr, key, context);
    case INJECT_WRITE: return ON(net.ep, rma, inject, buffer, length, to, addr, key);
    case INJECT_WRITEDATA: return ON(net.ep, rma, injectdata, buffer, length, data, to, addr, key);
    default: return ON(net.ep, rma, writemsg, &message, flags[form]);
    }
}

static ssize_t start_read(int form, void *buffer, size_t length, uint64_t addr, uint64_t key, void *context) {
    const fi_addr_t from = net.peers[next_rank()];
    struct iovec pieces[PIECES];
    cut(buffer, length, pieces);
    struct fi_rma_iov remote = {addr, length, key};
    struct fi_msg_rma message = {.msg_iov = pieces,
                                 .iov_count = PIECES,
                                 .addr = from,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .context = context};
    switch (form) {
    case 0: return ON(net.ep, rma, read, buffer, length, NULL, from, addr, key, context);
    case 1: return ON(net.ep, rma, readv, pieces, NULL, PIECES, from, addr, key, context);
    default: return ON(net.ep, rma, readmsg, &message, FI_COMPLETION);
    }
}

static const size_t lengths[] = {0, 1, 7, 64, 256, 257, 4095, 4096, 4097, 20000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Each form and length of a write: the target has the data when its remote CQ data arrives, otherwise after a
 * barrier. */
static void writes(void) {
    struct place places[RANKS];
    struct fid_mr *mr = expose_memory(exposed, SIZE, REMOTE, places);
    const struct place *place = &places[next_rank()];
    for (enum write_form form = WRITE; form < WRITE_FORMS; form++) {
        const bool injected = form == INJECT_WRITE || form == INJECT_WRITEDATA || form == WRITEMSG_INJECTED;
        const bool told = form != INJECT_WRITE && form != INJECT_WRITEDATA;
        memset(exposed, UNTOUCHED, SIZE);
        memset(want, UNTOUCHED, SIZE);
        barrier();
        size_t at = 3, count = 0, ends[LENGTHS] = {0};
        for (size_t l = 0; l < LENGTHS; l++) {
            if (injected && lengths[l] > net.info->tx_attr->inject_size)
                continue;
            fill(local + at, lengths[l], 100 + (unsigned)rank);
            fill(want + at, lengths[l], 100 + (unsigned)previous_rank());
            EQUAL("write", start_write(form, local + at, lengths[l], place->base + at, place->key, count, &local[l]),
                  0);
            if (injected)
                memset(local + at, 0, lengths[l]);
            at += lengths[l] + 5;
            ends[count++] = at;
        }
        for (size_t k = 0; writes_data(form) && k < count; k++) {
            struct fi_cq_tagged_entry entry = {0};
            fi_addr_t source = FI_ADDR_NOTAVAIL;
            EXPECT(next_entry(net.rx, &entry, &source));
            EQUAL("remote CQ data", entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            EQUAL("remote CQ data", entry.data, k);
            EQUAL("length of the write", entry.len, ends[k] - (k > 0 ? ends[k - 1] : 3) - 5);
            EQUAL("remote CQ data", source, net.peers[previous_rank()]);
            SAME_BYTES("written before the remote CQ data", exposed, want, ends[k]);
        }
        for (size_t k = 0; told && k < count; k++) {
            struct fi_cq_tagged_entry entry = {0};
            EXPECT(next_entry(net.tx, &entry, NULL));
            EQUAL("write", entry.flags, FI_RMA | FI_WRITE);
        }
        if (!told) { /* a read follows the writes */
            EQUAL("read", start_read(0, got, at, place->base, place->key, got), 0);
            completes("read", FI_READ, got);
        }
        barrier();
        SAME_BYTES("write", exposed, want, SIZE);
        TRUE("write", is_empty(net.tx) && is_empty(net.rx));
        barrier();
    }
    unexpose(mr);
    barrier();
}

static void reads(void) {
    struct place places[RANKS];
    struct fid_mr *mr = expose_memory(exposed, SIZE, REMOTE, places);
    const struct place *place = &places[next_rank()];
    fill(exposed, SIZE, 7 + (unsigned)rank);
    fill(want, SIZE, 7 + (unsigned)next_rank());
    barrier();
    for (int form = 0; form < 3; form++) {
        memset(got, UNTOUCHED, SIZE);
        size_t at = 1;
        for (size_t l = 0; l < LENGTHS; l++) {
            EQUAL("read", start_read(form, got + at, lengths[l], place->base + at, place->key, &got[at]), 0);
            at += lengths[l] + 9;
        }
        for (size_t l = 0; l < LENGTHS; l++) {
            struct fi_cq_tagged_entry entry = {0};
            EXPECT(next_entry(net.tx, &entry, NULL));
            EQUAL("read", entry.flags, FI_RMA | FI_READ);
        }
        at = 1;
        for (size_t l = 0; l < LENGTHS; l++) {
            SAME_BYTES("read", got + at, want + at, lengths[l]);
            TRUE("read", is_untouched(got + at + lengths[l], 9));
            at += lengths[l] + 9;
        }
    }
    EQUAL("read all", start_read(0, got, SIZE, place->base, place->key, NULL), 0);
    completes("read all", FI_READ, NULL);
    SAME_BYTES("read all", got, want, SIZE);
    barrier();
    unexpose(mr);
    barrier();
}

/* A region of pieces is contiguous in its address space. */
static void pieces(void) {
    struct place places[RANKS];
    struct iovec iov[4];
    for (size_t i = 0; i < 4; i++)
        iov[i] = (struct iovec){exposed + (3 - i) * 2 * PIECE, PIECE};
    memset(exposed, UNTOUCHED, SIZE);
    memset(want, UNTOUCHED, SIZE);
    for (size_t k = 0; k < 4 * PIECE - 20; k++)
        want[(3 - (k + 10) / PIECE) * 2 * PIECE + (k + 10) % PIECE] = pattern(k, 50 + (unsigned)previous_rank());
    struct fid_mr *mr = expose(iov, 4, REMOTE, places);
    const struct place *place = &places[next_rank()];
    fill(local, 4 * PIECE, 50 + (unsigned)rank);
    memset(got, 0, SIZE);
    EQUAL("pieces", start_write(WRITEV, local, 4 * PIECE - 20, place->base + 10, place->key, 0, NULL), 0);
    completes("pieces", FI_WRITE, NULL);
    EQUAL("pieces", start_read(1, got, 4 * PIECE - 20, place->base + 10, place->key, NULL), 0);
    completes("pieces", FI_READ, NULL);
    SAME_BYTES("pieces read", got, local, 4 * PIECE - 20);
    barrier();
    SAME_BYTES("pieces written", exposed, want, SIZE);
    unexpose(mr);
    barrier();
}

/* Accesses to the same bytes, without waiting for each other. */
static void order(void) {
    struct place places[RANKS];
    struct fid_mr *mr = expose_memory(exposed, SIZE, REMOTE, places);
    const struct place *place = &places[next_rank()];
    const size_t limit = net.info->ep_attr->max_order_raw_size;
    const size_t sizes[] = {8, limit < SIZE / 8 ? limit : SIZE / 8};
    enum { TIMES = 8 };
    for (size_t s = 0; s < 2; s++) {
        const size_t size = sizes[s];
        for (unsigned i = 0; i < TIMES; i++) {
            fill(local + i * size, size, i + 10 * (unsigned)rank);
            EQUAL("order", start_write(WRITE, local + i * size, size, place->base, place->key, 0, NULL), 0);
            EQUAL("order", start_read(0, got + i * size, size, place->base, place->key, NULL), 0);
        }
        for (int i = 0; i < 2 * TIMES; i++) {
            struct fi_cq_tagged_entry entry;
            EXPECT(next_entry(net.tx, &entry, NULL));
        }
        SAME_BYTES("a read comes after the write before it, and before the next", got, local, TIMES * size);
        barrier();
    }
    unexpose(mr);
    barrier();
}

/* Refusals by the call or by the target. */
static void refusals(void) {
    enum { PART = 1000 };
    struct place all[RANKS], readable[RANKS], writable[RANKS];
    struct fid_mr *mr = expose_memory(exposed, PART, REMOTE, all);
    struct fid_mr *r = expose_memory(exposed, PART, FI_REMOTE_READ, readable);
    struct fid_mr *w = expose_memory(exposed, PART, FI_REMOTE_WRITE, writable);
    const struct place *place = &all[next_rank()];
    memset(exposed, UNTOUCHED, SIZE);
    memset(got, UNTOUCHED, SIZE);
    memset(local, 1, SIZE);
    barrier();
    int context;
    EQUAL("key", start_write(WRITE, local, 8, place->base, place->key + 1000, 0, &context), 0);
    fails("write with a wrong key", FI_ENOKEY, PTL_NI_DROPPED, &context);
    EQUAL("key", start_read(0, got, 8, place->base, place->key + 1000, &context), 0);
    fails("read with a wrong key", FI_ENOKEY, PTL_NI_DROPPED, &context);
    EQUAL("range", start_write(WRITE, local, 8, place->base + PART - 4, place->key, 0, &context), 0);
    fails("write beyond the end", FI_ENOKEY, PTL_NI_DROPPED, &context);
    EQUAL("range", start_read(0, got, 8, place->base + PART - 4, place->key, &context), 0);
    fails("read beyond the end", FI_ENOKEY, PTL_NI_DROPPED, &context);
    EQUAL("range", start_write(WRITE, local, 8, place->base - 4, place->key, 0, &context), 0);
    fails("write before the beginning", FI_ENOKEY, PTL_NI_DROPPED, &context);
    EQUAL("access", start_write(WRITE, local, 8, readable[next_rank()].base, readable[next_rank()].key, 0, &context),
          0);
    fails("write to what may be read", EACCES, PTL_NI_OP_VIOLATION, &context);
    EQUAL("access", start_read(0, got, 8, writable[next_rank()].base, writable[next_rank()].key, &context), 0);
    fails("read of what may be written", EACCES, PTL_NI_OP_VIOLATION, &context);
    TRUE("refused reads change nothing", is_untouched(got, SIZE));
    barrier();
    TRUE("refused writes change nothing", is_untouched(exposed, SIZE));
    EQUAL("the last bytes", start_write(WRITE, local, 8, place->base + PART - 8, place->key, 0, &context), 0);
    completes("the last bytes", FI_WRITE, &context);
    barrier();
    SAME_BYTES("the last bytes", exposed + PART - 8, local, 8);
    TRUE("the last bytes", is_untouched(exposed, PART - 8) && is_untouched(exposed + PART, SIZE - PART));

    struct iovec many[MOST_PIECES];
    for (size_t i = 0; i < MOST_PIECES; i++)
        many[i] = (struct iovec){local, 1};
    struct fi_rma_iov remote[2] = {{place->base, 8, place->key}, {place->base + 8, 8, place->key}};
    struct fi_msg_rma message = {
        .msg_iov = many, .iov_count = 8, .addr = net.peers[next_rank()], .rma_iov = remote, .rma_iov_count = 2};
    EQUAL("two remote pieces", ON(net.ep, rma, writemsg, &message, 0), -EINVAL);
    EQUAL("two remote pieces", ON(net.ep, rma, readmsg, &message, 0), -EINVAL);
    const size_t iov_limit = net.info->tx_attr->iov_limit, inject = net.info->tx_attr->inject_size;
    EQUAL("more pieces than iov_limit",
          ON(net.ep, rma, writev, many, NULL, iov_limit + 1, net.peers[0], place->base, place->key, NULL), -EINVAL);
    EQUAL("more pieces than iov_limit",
          ON(net.ep, rma, readv, many, NULL, iov_limit + 1, net.peers[0], place->base, place->key, NULL), -EINVAL);
    EQUAL("more than inject_size", start_write(INJECT_WRITE, local, inject + 1, place->base, place->key, 0, NULL),
          -EINVAL);
    EQUAL("more than max_msg_size",
          start_write(WRITE, local, net.info->ep_attr->max_msg_size + 1, place->base, place->key, 0, NULL), -EMSGSIZE);
    EQUAL("more than max_msg_size",
          start_read(0, got, net.info->ep_attr->max_msg_size + 1, place->base, place->key, NULL), -EMSGSIZE);
    EQUAL("to nobody", ON(net.ep, rma, write, local, 8, NULL, 12345, place->base, place->key, NULL), -EINVAL);
    TRUE("nothing is left", is_empty(net.tx) && is_empty(net.rx));

    struct fid_mr *other;
    const size_t mr_limit = net.info->domain_attr->mr_iov_limit;
    EXPECT(mr_limit < MOST_PIECES);
    if (!(net.info->domain_attr->mr_mode & FI_MR_PROV_KEY))
        EQUAL("a key that is in use",
              net.domain->mr->reg(&net.domain->fid, local, 8, REMOTE, 0, place->key, 0, &other, NULL), -FI_ENOKEY);
    EQUAL("more pieces than mr_iov_limit",
          net.domain->mr->regv(&net.domain->fid, many, mr_limit + 1, REMOTE, 0, 999, 0, &other, NULL), -EINVAL);
    EQUAL("all pieces", net.domain->mr->regv(&net.domain->fid, many, mr_limit, REMOTE, 0, 999, 0, &other, NULL), 0);
    unexpose(other);
    EQUAL("a domain with regions", net.domain->fid.ops->close(&net.domain->fid), -EBUSY);
    barrier();
    unexpose(mr);
    unexpose(r);
    unexpose(w);
    barrier();
    EQUAL("key", start_write(WRITE, local, 8, place->base, place->key, 0, &context), 0);
    fails("write to a closed region", FI_ENOKEY, PTL_NI_DROPPED, &context);
    barrier();
}

/* A region is closed during use by others: each access is complete, or refused. */
static void close_in_use(void) {
    struct place places[RANKS];
    fill(exposed, SIZE, 31);
    struct fid_mr *mr = expose_memory(exposed, SIZE, REMOTE, places);
    const struct place *place = &places[next_rank()];
    enum { TIMES = 8 };
    for (int i = 0; i < TIMES; i++)
        EQUAL("close in use", start_read(0, got, SIZE, place->base, place->key, NULL), 0);
    spin_host_compute(3000);
    unexpose(mr);
    int whole = 0, refused = 0;
    for (int i = 0; i < TIMES; i++) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry error = {0};
        ssize_t rc = ON(net.tx, ops, sread, &entry, 1, NULL, PATIENCE);
        if (rc == 1) {
            whole++;
            continue;
        }
        EXPECT(rc == -FI_EAVAIL && ON(net.tx, ops, readerr, &error, 0) == 1);
        EQUAL("close in use", error.err, FI_ENOKEY);
        refused++;
    }
    EQUAL("close in use", whole + refused, TIMES);
    barrier();
}

static void all_of_it(const struct wish *wish) {
    open_net(wish);
    writes();
    reads();
    pieces();
    order();
    refusals();
    close_in_use();
    close_net();
}

GROUP(rma) {
    const int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    struct fi_info *info = get_info(&(struct wish){.mr_mode = basic});
    EQUAL("virtual addresses are not asked for where they are not needed", info->domain_attr->mr_mode, 0);
    fi_freeinfo(info);
    all_of_it(&(struct wish){.mr_mode = 0});
    info = get_info(&(struct wish){.mr_mode = FI_MR_BASIC});
    EQUAL("basic registration", info->domain_attr->mr_mode, basic);
    fi_freeinfo(info);
    all_of_it(&(struct wish){.mr_mode = FI_MR_BASIC});
}
