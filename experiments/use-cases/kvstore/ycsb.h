/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the clients: the mixes of YCSB (Cooper et al., SoCC 2010), with Zipf's distribution over the records. */
#ifndef KVSTORE_YCSB_H
#define KVSTORE_YCSB_H

#include "../../common/common.h"
#include <handlers/common/random.h>
#include <handlers/kvstore/table.h>

enum ycsb_kind { YCSB_READ, YCSB_UPDATE, YCSB_INSERT, YCSB_DELETE, YCSB_SCAN, YCSB_MODIFY, YCSB_KINDS };
enum {
    YCSB_LONGEST = 8
}; /* records of a scan: a hash table has no order, so that the next ones are those with the next numbers */

/* Percentages; `latest`: the latest inserts are the most frequent. The last mix is not YCSB's: it has all operations,
 * including inserts and deletes. */
static const struct ycsb_mix {
    uint8_t percent[YCSB_KINDS];
    bool latest;
} ycsb_mixes[] = {
    {{[YCSB_READ] = 50, [YCSB_UPDATE] = 50}, false},
    {{[YCSB_READ] = 95, [YCSB_UPDATE] = 5}, false},
    {{[YCSB_READ] = 100}, false},
    {{[YCSB_READ] = 95, [YCSB_INSERT] = 5}, true},
    {{[YCSB_SCAN] = 95, [YCSB_INSERT] = 5}, false},
    {{[YCSB_READ] = 50, [YCSB_MODIFY] = 50}, false},
    {{[YCSB_READ] = 25, [YCSB_UPDATE] = 25, [YCSB_INSERT] = 25, [YCSB_DELETE] = 25}, false},
};
enum { YCSB_MIXES = sizeof ycsb_mixes / sizeof *ycsb_mixes };

/* (1 - x)^theta for x up to 1/2, by the binomial series. */
static double ycsb_power(double x, double theta) {
    double sum = 1, term = 1;
    for (int k = 1; k < 64; k++)
        sum += term *= (k - 1 - theta) / k * x;
    return sum;
}

/* The probability of the ranks up to i, for each i; their weights are 1 / (i + 1)^theta. */
static double *ycsb_zipf(uint32_t count, double theta) {
    double sum = 0, weight = 1, *upto = allocate(count * sizeof *upto);
    for (uint32_t i = 0; i < count; i++, weight *= ycsb_power(1.0 / (i + 2), theta))
        upto[i] = sum += weight;
    for (uint32_t i = 0; i < count; i++)
        upto[i] /= sum;
    return upto;
}

/* A rank, from 0, the most frequent one. */
static uint32_t ycsb_rank(const double *upto, uint32_t count, uint64_t *state) {
    double at = (double)(random_next(state) >> 11) / 9007199254740992.0;
    uint32_t low = 0, high = count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (upto[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static enum ycsb_kind ycsb_kind(const struct ycsb_mix *mix, uint64_t *state) {
    int at = (int)(random_next(state) % 100), kind = 0;
    while ((at -= mix->percent[kind]) >= 0)
        kind++;
    return (enum ycsb_kind)kind;
}

#endif
