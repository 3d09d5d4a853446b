/* SPDX-License-Identifier: Apache-2.0 */
/* Every atomic operation on every datatype, computed by the host's own arithmetic. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "ring.h"
#include <complex.h>

static const struct {
    const char *name;
    size_t size;
    int integer, is_complex;
} types[PTL_DATATYPE_LAST] = {{"INT8", 1, 1, 0},
                              {"UINT8", 1, 1, 0},
                              {"INT16", 2, 1, 0},
                              {"UINT16", 2, 1, 0},
                              {"INT32", 4, 1, 0},
                              {"UINT32", 4, 1, 0},
                              {"FLOAT", sizeof(float), 0, 0},
                              {"INT64", 8, 1, 0},
                              {"UINT64", 8, 1, 0},
                              {"DOUBLE", sizeof(double), 0, 0},
                              {"FLOAT_COMPLEX", sizeof(float complex), 0, 1},
                              {"DOUBLE_COMPLEX", sizeof(double complex), 0, 1},
                              {"LONG_DOUBLE", sizeof(long double), 0, 0},
                              {"LONG_DOUBLE_COMPLEX", sizeof(long double complex), 0, 1}};

static const char *const operations[PTL_OP_LAST] = {
    "MIN",  "MAX",  "SUM",   "PROD",     "LOR",      "LAND",     "BOR",      "BAND",     "LXOR",
    "BXOR", "SWAP", "CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP"};

/* Returns non-zero for a pair defined by the specification. */
static inline int defined(int op, int type) {
    switch (op) {
    case PTL_MIN:
    case PTL_MAX:
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT: return !types[type].is_complex;
    case PTL_SUM:
    case PTL_PROD:
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE: return 1;
    default: return types[type].integer;
    }
}

#define ARITHMETIC(T)                                                                                                  \
    {                                                                                                                  \
        T old, new, with;                                                                                              \
        memcpy(&old, target, sizeof old);                                                                              \
        memcpy(&new, data, sizeof new);                                                                                \
        memcpy(&with, operand, sizeof with);                                                                           \
        switch (op) {                                                                                                  \
        case PTL_SUM: old = (T)(old + new); break;                                                                     \
        case PTL_PROD: old = (T)(old * new); break;                                                                    \
        case PTL_SWAP: old = new; break;                                                                               \
        case PTL_CSWAP: old = with == old ? new : old; break;                                                          \
        case PTL_CSWAP_NE: old = with != old ? new : old; break;

#define ORDER                                                                                                          \
    case PTL_MIN: old = new < old ? new : old; break;                                                                  \
    case PTL_MAX: old = new > old ? new : old; break;                                                                  \
    case PTL_CSWAP_LE: old = with <= old ? new : old; break;                                                           \
    case PTL_CSWAP_LT: old = with < old ? new : old; break;                                                            \
    case PTL_CSWAP_GE: old = with >= old ? new : old; break;                                                           \
    case PTL_CSWAP_GT: old = with > old ? new : old; break;

#define BITS(T)                                                                                                        \
    case PTL_LOR: old = (T)(old || new); break;                                                                        \
    case PTL_LAND: old = (T)(old && new); break;                                                                       \
    case PTL_LXOR: old = (T)(!old != !new); break;                                                                     \
    case PTL_BOR: old = (T)(old | new); break;                                                                         \
    case PTL_BAND: old = (T)(old & new); break;                                                                        \
    case PTL_BXOR: old = (T)(old ^ new); break;                                                                        \
    case PTL_MSWAP: old = (T)((old & ~with) | (new &with)); break;

#define END                                                                                                            \
    }                                                                                                                  \
    memcpy(target, &old, sizeof old);                                                                                  \
    break;                                                                                                             \
    }

/* Combines one item of `target`. */
static inline void combine(int op, int type, void *target, const void *data, const void *operand) {
    switch (type) {
    case PTL_INT8_T:
        ARITHMETIC(int8_t) ORDER BITS(int8_t)
    END case PTL_UINT8_T:
        ARITHMETIC(uint8_t) ORDER BITS(uint8_t)
    END case PTL_INT16_T:
        ARITHMETIC(int16_t) ORDER BITS(int16_t)
    END case PTL_UINT16_T:
        ARITHMETIC(uint16_t) ORDER BITS(uint16_t)
    END case PTL_INT32_T:
        ARITHMETIC(int32_t) ORDER BITS(int32_t)
    END case PTL_UINT32_T:
        ARITHMETIC(uint32_t) ORDER BITS(uint32_t)
    END case PTL_INT64_T:
        ARITHMETIC(int64_t) ORDER BITS(int64_t)
    END case PTL_UINT64_T:
        ARITHMETIC(uint64_t) ORDER BITS(uint64_t)
    END case PTL_FLOAT:
    ARITHMETIC(float) ORDER END case PTL_DOUBLE:
    ARITHMETIC(double) ORDER END case PTL_LONG_DOUBLE:
    ARITHMETIC(long double) ORDER END case PTL_FLOAT_COMPLEX:
    ARITHMETIC(float complex) END case PTL_DOUBLE_COMPLEX:
    ARITHMETIC(double complex) END case PTL_LONG_DOUBLE_COMPLEX:
        ARITHMETIC(long double complex) END
    }
}

/* Item `i` of `items`: small values, so that results are exact, equal pairs and both signs occur. */
static inline void set_item(int type, void *items, size_t i, int value) {
    unsigned char *at = (unsigned char *)items + i * types[type].size;
    memset(at, 0, types[type].size);
#define STORE(T, v)                                                                                                    \
    {                                                                                                                  \
        T item = (T)(v);                                                                                               \
        memcpy(at, &item, sizeof item);                                                                                \
        break;                                                                                                         \
    }
    switch (type) {
    case PTL_INT8_T:
    case PTL_UINT8_T: STORE(int8_t, value)
    case PTL_INT16_T:
    case PTL_UINT16_T: STORE(int16_t, value * 301)
    case PTL_INT32_T:
    case PTL_UINT32_T: STORE(int32_t, value * 70001)
    case PTL_INT64_T:
    case PTL_UINT64_T: STORE(int64_t, value *INT64_C(5000000029))
    case PTL_FLOAT: STORE(float, (float)value / 4)
    case PTL_DOUBLE: STORE(double, value / 8.0)
    case PTL_LONG_DOUBLE: STORE(long double, value / 16.0L)
    case PTL_FLOAT_COMPLEX: STORE(float complex, (float)value / 4 - 2.5f * I)
    case PTL_DOUBLE_COMPLEX: STORE(double complex, value / 8.0 + 0.25 * I)
    case PTL_LONG_DOUBLE_COMPLEX: STORE(long double complex, value / 16.0L - 7.0L * I)
    }
#undef STORE
}

/* Returns non-zero for a significant byte of an item: long double has padding. */
static inline size_t significant(int type, size_t byte) {
    if (type != PTL_LONG_DOUBLE && type != PTL_LONG_DOUBLE_COMPLEX)
        return 1;
    return sizeof(long double) != 16 || byte % 16 < 10;
}

static inline int same_items(int type, const void *a, const void *b, size_t count) {
    for (size_t k = 0; k < count * types[type].size; k++)
        if (significant(type, k) && ((const unsigned char *)a)[k] != ((const unsigned char *)b)[k])
            return 0;
    return 1;
}

static inline const char *pair_name(const char *call, int op, int type) {
    static char name[64];
    snprintf(name, sizeof name, "%s %s %s", call, operations[op], types[type].name);
    return name;
}

#endif
