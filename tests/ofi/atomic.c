/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations: each type, operation and form against the same computation in C. */
#include "transfers.h"

#include <complex.h>

enum form { PLAIN, FETCH, COMPARE, FORMS };
enum { OPS = FI_MSWAP + 1, ROOM = 1 << 17 };
static const size_t sizes[FI_DATATYPE_LAST] = {
    1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, sizeof(long double), 2 * sizeof(long double)};
static _Alignas(32) unsigned char exposed[ROOM], initial[ROOM], operand[ROOM], comparand[ROOM], fetched[ROOM],
    wanted[ROOM], got[ROOM];
static uint64_t key;

static bool is_integer(enum fi_datatype type) { return type <= FI_UINT64; }
static bool is_complex(enum fi_datatype type) {
    return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* Returns true if the provider promises the operation: fi_atomic(3), except for logic on non-integers. */
static bool is_valid(enum fi_datatype type, enum fi_op op, enum form form) {
    switch (op) {
    case FI_MIN:
    case FI_MAX: return form != COMPARE && !is_complex(type);
    case FI_SUM:
    case FI_PROD:
    case FI_ATOMIC_WRITE: return form != COMPARE;
    case FI_ATOMIC_READ: return form == FETCH;
    case FI_CSWAP:
    case FI_CSWAP_NE: return form == COMPARE;
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT: return form == COMPARE && !is_complex(type);
    case FI_MSWAP: return form == COMPARE && is_integer(type);
    default: return form != COMPARE && is_integer(type);
    }
}

/* ---- The computation in C ------------------------------------------------------------------------------------------------- */

#define COMPUTE(name, type, ordered, integer)                                                                          \
    static void name(enum fi_op op, void *target, const void *data, const void *other) {                               \
        type a, b, c;                                                                                                  \
        memcpy(&a, target, sizeof a);                                                                                  \
        memcpy(&b, data, sizeof b);                                                                                    \
        memcpy(&c, other, sizeof c);                                                                                   \
        switch (op) {                                                                                                  \
        case FI_SUM: a = (type)(a + b); break;                                                                         \
        case FI_PROD: a = (type)(a * b); break;                                                                        \
        case FI_ATOMIC_READ: break;                                                                                    \
        case FI_ATOMIC_WRITE: a = b; break;                                                                            \
        case FI_CSWAP: a = c == a ? b : a; break;                                                                      \
        case FI_CSWAP_NE:                                                                                              \
            a = c != a ? b : a;                                                                                        \
            break;                                                                                                     \
            ordered integer default : EXPECT(!"an operation of this type");                                            \
        }                                                                                                              \
        memcpy(target, &a, sizeof a);                                                                                  \
    }
#define ORDERED                                                                                                        \
    case FI_MIN: a = b < a ? b : a; break;                                                                             \
    case FI_MAX: a = b > a ? b : a; break;                                                                             \
    case FI_CSWAP_LE: a = c <= a ? b : a; break;                                                                       \
    case FI_CSWAP_LT: a = c < a ? b : a; break;                                                                        \
    case FI_CSWAP_GE: a = c >= a ? b : a; break;                                                                       \
    case FI_CSWAP_GT: a = c > a ? b : a; break;
#define INTEGER                                                                                                        \
    case FI_LOR: a = a || b; break;                                                                                    \
    case FI_LAND: a = a && b; break;                                                                                   \
    case FI_LXOR: a = !a != !b; break;                                                                                 \
    case FI_BOR: a = a | b; break;                                                                                     \
    case FI_BAND: a = a & b; break;                                                                                    \
    case FI_BXOR: a = a ^ b; break;                                                                                    \
    case FI_MSWAP: a = (b & c) | (a & ~c); break;

COMPUTE(int8, int8_t, ORDERED, INTEGER)
COMPUTE(uint8, uint8_t, ORDERED, INTEGER)
COMPUTE(int16, int16_t, ORDERED, INTEGER)
COMPUTE(uint16, uint16_t, ORDERED, INTEGER)
COMPUTE(int32, int32_t, ORDERED, INTEGER)
COMPUTE(uint32, uint32_t, ORDERED, INTEGER)
COMPUTE(int64, int64_t, ORDERED, INTEGER)
COMPUTE(uint64, uint64_t, ORDERED, INTEGER)
COMPUTE(real32, float, ORDERED, )
COMPUTE(real64, double, ORDERED, )
COMPUTE(real80, long double, ORDERED, )
COMPUTE(complex32, float _Complex, , )
COMPUTE(complex64, double _Complex, , )
COMPUTE(complex80, long double _Complex, , )
static void (*const compute[FI_DATATYPE_LAST])(enum fi_op, void *, const void *, const void *) = {
    int8, uint8, int16, uint16, int32, uint32, int64, uint64, real32, real64, complex32, complex64, real80, complex80};

/* Sets item i of a row: bits for integers (with some zeros), small numbers else. */
static void set_item(enum fi_datatype type, unsigned char *row, size_t i, unsigned seed) {
    unsigned char *item = row + i * sizes[type];
    const int number = (int)((i * 7 + seed * 5) % 13) - 6;
    memset(item, 0, sizes[type]);
    if (is_integer(type)) {
        for (size_t k = 0; (i + seed) % 4 && k < sizes[type]; k++)
            item[k] = pattern(i * 8 + k, seed);
        return;
    }
    const double re = number * 0.5, im = number % 3 * 1.5;
    const float _Complex f = (float)re + (float)im * I;
    const double _Complex d = re + im * I;
    const long double l = re;
    const long double parts[2] = {re, im};
    switch (type) {
    case FI_FLOAT: memcpy(item, &(float){(float)re}, 4); break;
    case FI_DOUBLE: memcpy(item, &re, 8); break;
    case FI_FLOAT_COMPLEX: memcpy(item, &f, 8); break;
    case FI_DOUBLE_COMPLEX: memcpy(item, &d, 16); break;
    case FI_LONG_DOUBLE: memcpy(item, &l, 10); break;
    default: memcpy(item, &parts[0], 10), memcpy(item + sizeof l, &parts[1], 10); break;
    }
}

/* Returns true if two rows are equal, except for padding bytes of a long double. */
static bool same(enum fi_datatype type, const void *a, const void *b, size_t count) {
    if (type != FI_LONG_DOUBLE && type != FI_LONG_DOUBLE_COMPLEX)
        return memcmp(a, b, count * sizes[type]) == 0;
    for (size_t at = 0; at < count * sizes[type]; at += sizeof(long double))
        if (memcmp((const char *)a + at, (const char *)b + at, 10) != 0)
            return false;
    return true;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------ */

/* Starts an operation through one of its calls. */
static ssize_t start(enum form form, int call, size_t count, enum fi_datatype type, enum fi_op op, int to,
                     void *context) {
    const fi_addr_t peer = net.peers[to];
    struct fi_ioc data = {operand, count}, other = {comparand, 1}, result = {fetched, count};
    struct fi_rma_ioc remote = {0, count, key};
    struct fi_msg_atomic message = {.msg_iov = &data,
                                    .iov_count = op == FI_ATOMIC_READ ? 0 : 1,
                                    .addr = peer,
                                    .rma_iov = &remote,
                                    .rma_iov_count = 1,
                                    .datatype = type,
                                    .op = op,
                                    .context = context};
    switch (form) {
    case PLAIN:
        switch (call % 4) {
        case 0: return ON(net.ep, atomic, write, operand, count, NULL, peer, 0, key, type, op, context);
        case 1: return ON(net.ep, atomic, writev, &data, NULL, 1, peer, 0, key, type, op, context);
        case 2: return ON(net.ep, atomic, writemsg, &message, FI_COMPLETION);
        default: return ON(net.ep, atomic, writemsg, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
        }
    case FETCH:
        switch (call % 3) {
        case 0:
            return ON(net.ep, atomic, readwrite, operand, count, NULL, fetched, NULL, peer, 0, key, type, op, context);
        case 1:
            return ON(net.ep, atomic, readwritev, &data, NULL, op == FI_ATOMIC_READ ? 0 : 1, &result, NULL, 1, peer, 0,
                      key, type, op, context);
        default: return ON(net.ep, atomic, readwritemsg, &message, &result, NULL, 1, FI_COMPLETION);
        }
    default:
        switch (call % 3) {
        case 0:
            return ON(net.ep, atomic, compwrite, operand, count, NULL, comparand, NULL, fetched, NULL, peer, 0, key,
                      type, op, context);
        case 1:
            return ON(net.ep, atomic, compwritev, &data, NULL, 1, &other, NULL, 1, &result, NULL, 1, peer, 0, key, type,
                      op, context);
        default: return ON(net.ep, atomic, compwritemsg, &message, &other, NULL, 1, &result, NULL, 1, FI_COMPLETION);
        }
    }
}

static int ask(enum form form, enum fi_datatype type, enum fi_op op, size_t *count) {
    return form == PLAIN   ? ON(net.ep, atomic, writevalid, type, op, count)
           : form == FETCH ? ON(net.ep, atomic, readwritevalid, type, op, count)
                           : ON(net.ep, atomic, compwritevalid, type, op, count);
}

static void completes(const char *name, uint64_t flags) {
    struct fi_cq_tagged_entry entry = {0};
    EXPECT(next_entry(net.tx, &entry, NULL));
    EQUAL(name, entry.flags, flags);
}

static void run(enum form form, size_t count, enum fi_datatype type, enum fi_op op, unsigned turn) {
    const size_t length = count * sizes[type];
    const fi_addr_t peer = net.peers[next_rank()];
    for (size_t i = 0; i < count; i++) {
        set_item(type, initial, i, turn);
        set_item(type, operand, i, turn + 7 * (unsigned)rank + 1);
    }
    /* A comparand that is the same, a smaller or larger one */
    set_item(type, comparand, 0, turn % 3 == 0 ? turn : turn + turn % 3);
    memcpy(wanted, initial, length);
    for (size_t i = 0; i < count; i++)
        compute[type](op, wanted + i * sizes[type], operand + i * sizes[type], comparand);
    memset(fetched, UNTOUCHED, length + 8);
    EQUAL("initial", ON(net.ep, rma, write, initial, length, NULL, peer, 0, key, NULL), 0);
    completes("initial", FI_RMA | FI_WRITE);
    ssize_t rc = start(form, (int)turn, count, type, op, next_rank(), NULL);
    judge(rc == 0, __FILE__, __LINE__, "atomic", "form %d, type %d, operation %d, %zu items: %zd", form, type, op,
          count, rc);
    if (rc != 0)
        return;
    completes("atomic", FI_ATOMIC | (form == PLAIN ? FI_WRITE : FI_READ));
    EQUAL("result", ON(net.ep, rma, read, got, length, NULL, peer, 0, key, NULL), 0);
    completes("result", FI_RMA | FI_READ);
    judge(same(type, got, wanted, count), __FILE__, __LINE__, "target", "form %d, type %d, operation %d, %zu items",
          form, type, op, count);
    if (form != PLAIN) {
        judge(same(type, fetched, initial, count), __FILE__, __LINE__, "fetched",
              "form %d, type %d, operation %d, %zu items", form, type, op, count);
        TRUE("bytes after the result", is_untouched(fetched + length, 8));
    }
}

static void every_operation(void) {
    unsigned turn = 0;
    for (enum form form = PLAIN; form < FORMS; form++) {
        static const uint64_t flags[FORMS] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
        for (enum fi_datatype type = FI_INT8; type < FI_DATATYPE_LAST; type++) {
            for (enum fi_op op = FI_MIN; op < (enum fi_op)OPS; op++) {
                size_t max = 0;
                struct fi_atomic_attr attr = {0};
                const int valid = ask(form, type, op, &max),
                          query = ON(net.domain, ops, query_atomic, type, op, &attr, flags[form]);
                judge((valid == 0) == is_valid(type, op, form), __FILE__, __LINE__, "valid",
                      "form %d, type %d, operation %d: %d", form, type, op, valid);
                EQUAL("query", query, valid);
                if (valid != 0) {
                    EQUAL("refused", valid, -EOPNOTSUPP);
                    EQUAL("refused", start(form, 0, 1, type, op, next_rank(), NULL), -EOPNOTSUPP);
                    continue;
                }
                EQUAL("query", attr.count, max);
                EQUAL("query", attr.size, sizes[type]);
                EXPECT(max >= 1 && max * sizes[type] + 8 <= ROOM);
                for (int i = 0; i < 3; i++)
                    run(form, 1, type, op, turn++);
                if (max >= 5)
                    run(form, 5, type, op, turn++);
                if (max > 1)
                    run(form, max, type, op, turn++);
                EQUAL("more than the maximum", start(form, (int)turn, max + 1, type, op, next_rank(), NULL), -EINVAL);
                EQUAL("nothing", start(form, (int)turn, 0, type, op, next_rank(), NULL), -EINVAL);
            }
        }
    }
    EQUAL("no such type", ask(PLAIN, FI_DATATYPE_LAST, FI_SUM, NULL), -EOPNOTSUPP);
    EQUAL("no such operation", ask(PLAIN, FI_INT32, (enum fi_op)OPS, NULL), -EOPNOTSUPP);
}

/* All ranks add to a number of rank 0: each gets a different value before its addition. */
static void contention(void) {
    enum { TIMES = 50 };
    static uint64_t seen[TIMES * RANKS], one = 1, zero;
    memset(exposed, 0, 8);
    barrier();
    for (int i = 0; i < TIMES; i++)
        EQUAL(
            "add",
            ON(net.ep, atomic, readwrite, &one, 1, NULL, &seen[i], NULL, net.peers[0], 0, key, FI_UINT64, FI_SUM, NULL),
            0);
    for (int i = 0; i < TIMES; i++)
        completes("add", FI_ATOMIC | FI_READ);
    for (int i = 1; i < TIMES; i++)
        TRUE("values grow", seen[i] > seen[i - 1]);
    TRUE("values of all", seen[TIMES - 1] < (uint64_t)(TIMES * ranks));
    uint64_t sum = 0, all[RANKS];
    for (int i = 0; i < TIMES; i++)
        sum += seen[i];
    exchange(&sum, sizeof sum, all);
    for (int r = 0; r < ranks; r++)
        zero += all[r];
    EQUAL("each value once", zero, (uint64_t)(TIMES * ranks) * (uint64_t)(TIMES * ranks - 1) / 2);
    if (rank == 0)
        EQUAL("sum", *(uint64_t *)exposed, TIMES * ranks);
    barrier();
}

/* Injected operations have no completion, and may use the operand again. */
static void inject(void) {
    uint64_t value = 40;
    memset(exposed, 0, 8);
    barrier();
    EQUAL("inject", ON(net.ep, atomic, inject, &value, 1, net.peers[next_rank()], 0, key, FI_UINT64, FI_SUM), 0);
    value = 2;
    EQUAL("inject", ON(net.ep, atomic, inject, &value, 1, net.peers[next_rank()], 0, key, FI_UINT64, FI_SUM), 0);
    value = 1000;
    spin_host_compute(100 * 1000);
    barrier();
    TRUE("inject", is_empty(net.tx));
    EQUAL("inject", *(uint64_t *)exposed, 42);
    const size_t limit = net.info->tx_attr->inject_size;
    EQUAL("more than inject_size",
          ON(net.ep, atomic, inject, operand, limit / 8 + 1, net.peers[0], 0, key, FI_UINT64, FI_SUM), -EINVAL);
    barrier();
}

static void fails(const char *name, int number) {
    struct fi_cq_err_entry error;
    EXPECT(next_error(net.tx, &error));
    EQUAL(name, error.err, number);
}

static void refusals(void) {
    struct fid_mr *readable;
    uint64_t value = 1, result;
    EXPECT(net.domain->mr->reg(&net.domain->fid, exposed, 16, FI_REMOTE_READ, 0, 8, 0, &readable, NULL) == 0);
    memset(exposed, 0, ROOM);
    barrier();
    const fi_addr_t peer = net.peers[next_rank()];
    EQUAL("access", ON(net.ep, atomic, write, &value, 1, NULL, peer, 0, 8, FI_UINT64, FI_SUM, NULL), 0);
    fails("sum in what may be read", EACCES);
    EQUAL("access", ON(net.ep, atomic, readwrite, &value, 1, NULL, &result, NULL, peer, 0, 8, FI_UINT64, FI_SUM, NULL),
          0);
    fails("fetch and sum in what may be read", EACCES);
    EQUAL("access",
          ON(net.ep, atomic, readwrite, NULL, 1, NULL, &result, NULL, peer, 0, 8, FI_UINT64, FI_ATOMIC_READ, NULL), 0);
    completes("atomic read of what may be read", FI_ATOMIC | FI_READ);
    EQUAL("key", ON(net.ep, atomic, write, &value, 1, NULL, peer, 0, 99, FI_UINT64, FI_SUM, NULL), 0);
    fails("wrong key", FI_ENOKEY);
    EQUAL("range", ON(net.ep, atomic, write, &value, 1, NULL, peer, ROOM - 4, key, FI_UINT64, FI_SUM, NULL), 0);
    fails("beyond the end", FI_ENOKEY);
    struct fi_ioc pieces[2] = {{&value, 1}, {&result, 1}};
    EQUAL("pieces", ON(net.ep, atomic, writev, pieces, NULL, 2, peer, 0, key, FI_UINT64, FI_SUM, NULL), -EINVAL);
    barrier();
    TRUE("refused operations change nothing", exposed[0] == 0 && memcmp(exposed, exposed + 1, ROOM - 1) == 0);
    EQUAL("close", readable->fid.ops->close(&readable->fid), 0);
    barrier();
}

GROUP(atomic) {
    struct fid_mr *mr;
    open_net(&(struct wish){0});
    EXPECT(net.domain->mr->reg(&net.domain->fid, exposed, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL) ==
           0);
    key = mr->key;
    barrier();
    every_operation();
    barrier();
    contention();
    inject();
    refusals();
    EQUAL("close", mr->fid.ops->close(&mr->fid), 0);
    close_net();
}
