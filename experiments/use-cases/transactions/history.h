/* SPDX-License-Identifier: Apache-2.0 */
/* Checker of histories: committed transactions must be serializable.
 *
 * Each written value contains the name of its transaction. A history therefore identifies the writer of each value read, and the
 * value replaced by each write, because transactions read every record that they write. The precedence graph has edges from the
 * writer of a value to its readers, and from these readers to the transaction that replaces it. The history is serializable
 * if the graph has no cycle. A serial execution in an order of the graph must then read and leave the same values. */
#ifndef EXPERIMENTS_TRANSACTIONS_HISTORY_H
#define EXPERIMENTS_TRANSACTIONS_HISTORY_H

#include "../../common/common.h"

enum { ACCESSES = 2, BALANCES = 2 };

struct access {
    uint64_t writer;                           /* writer of the value that was read; 0 for none */
    int64_t before[BALANCES], after[BALANCES]; /* value read, and value written */
    uint32_t record;                           /* among those of all hosts */
    uint32_t is_write;
};

/* A transaction that committed. */
struct transaction {
    uint64_t name; /* not 0 */
    uint64_t accesses;
    struct access access[ACCESSES];
};

struct value {
    int64_t balance[BALANCES];
    uint64_t writer;
};

struct history {
    struct transaction *transactions;
    size_t count, most;
};

/* A value of a record: (record, writer). `by` is the index of the transaction that replaced or read it. */
struct use {
    uint64_t record, writer;
    size_t by;
};

static int compare_names(const void *a, const void *b) {
    uint64_t x = ((const struct transaction *)a)->name, y = ((const struct transaction *)b)->name;
    return x < y ? -1 : x > y;
}

static int compare_uses(const void *a, const void *b) {
    const struct use *x = a, *y = b;
    return x->record != y->record  ? (x->record < y->record ? -1 : 1)
           : x->writer < y->writer ? -1
                                   : x->writer > y->writer;
}

static struct transaction *named(const struct history *history, uint64_t name) {
    struct transaction wanted = {.name = name};
    return bsearch(&wanted, history->transactions, history->count, sizeof wanted, compare_names);
}

struct edge {
    size_t from, to;
};

static int compare_edges(const void *a, const void *b) {
    size_t x = ((const struct edge *)a)->from, y = ((const struct edge *)b)->from;
    return x < y ? -1 : x > y;
}

/* Returns NULL when the history is serializable and leads from values `initial` to `final`; else the violation.
 * `records` is the number of records. When the histories of some clients are missing (`is_partial`), values of
 * unknown transactions are no errors, and the history is not executed. Sorts the transactions. */
static inline const char *judge(struct history *history, int64_t initial, const struct value *final, size_t records,
                                bool is_partial) {
    static char problem[256];
    size_t count = history->count, replaced = 0, edges = 0, done = 0, ready = 0;
    struct use *replacing = allocate((count * ACCESSES + 1) * sizeof *replacing);
    struct edge *edge = allocate((2 * count * ACCESSES + 1) * sizeof *edge);
    size_t *first = allocate((count + 2) * sizeof *first), *before = allocate((count + 1) * sizeof *before);
    size_t *order = allocate((count + 1) * sizeof *order);
    qsort(history->transactions, count, sizeof *history->transactions, compare_names);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < history->transactions[i].accesses; j++) {
            const struct access *a = &history->transactions[i].access[j];
            if (a->is_write)
                replacing[replaced++] = (struct use){a->record, a->writer, i};
        }
    qsort(replacing, replaced, sizeof *replacing, compare_uses);
    for (size_t i = 1; i < replaced; i++)
        if (compare_uses(&replacing[i - 1], &replacing[i]) == 0) {
            snprintf(problem, sizeof problem,
                     "transactions %llx and %llx replace the same value of record %llu: an update is lost",
                     (unsigned long long)history->transactions[replacing[i - 1].by].name,
                     (unsigned long long)history->transactions[replacing[i].by].name,
                     (unsigned long long)replacing[i].record);
            return problem;
        }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < history->transactions[i].accesses; j++) {
            const struct access *a = &history->transactions[i].access[j];
            const struct transaction *writer = a->writer == 0 ? NULL : named(history, a->writer);
            struct use wanted = {a->record, a->writer, 0};
            const struct use *next = bsearch(&wanted, replacing, replaced, sizeof wanted, compare_uses);
            if (a->writer != 0 && writer == NULL && !is_partial) {
                snprintf(problem, sizeof problem, "transaction %llx has read record %u from %llx, which did not commit",
                         (unsigned long long)history->transactions[i].name, a->record, (unsigned long long)a->writer);
                return problem;
            }
            if (writer != NULL)
                edge[edges++] = (struct edge){(size_t)(writer - history->transactions), i};
            if (next != NULL && next->by != i)
                edge[edges++] = (struct edge){i, next->by};
        }
    qsort(edge, edges, sizeof *edge, compare_edges);
    for (size_t i = 0; i < edges; i++) {
        first[edge[i].from + 1] = i + 1;
        before[edge[i].to]++;
    }
    for (size_t i = 1; i <= count; i++)
        first[i] = first[i] > first[i - 1] ? first[i] : first[i - 1];
    for (size_t i = 0; i < count; i++)
        if (before[i] == 0)
            order[ready++] = i;
    for (; done < ready; done++)
        for (size_t e = first[order[done]]; e < first[order[done] + 1]; e++)
            if (--before[edge[e].to] == 0)
                order[ready++] = edge[e].to;
    if (done < count) {
        for (size_t i = 0; i < count; i++)
            if (before[i] > 0) {
                snprintf(problem, sizeof problem, "%zu transactions precede themselves, or others that do; one is %llx",
                         count - done, (unsigned long long)history->transactions[i].name);
                return problem;
            }
    }
    struct value *values = allocate(records * sizeof *values);
    for (size_t i = 0; i < records; i++)
        values[i].balance[0] = values[i].balance[1] = initial;
    for (size_t i = 0; i < count && !is_partial; i++) {
        const struct transaction *t = &history->transactions[order[i]];
        for (size_t j = 0; j < t->accesses; j++) {
            const struct access *a = &t->access[j];
            struct value *value = &values[a->record];
            if (memcmp(value->balance, a->before, sizeof a->before) != 0 || value->writer != a->writer) {
                snprintf(problem, sizeof problem,
                         "transaction %llx has read other values in record %u than one after the other",
                         (unsigned long long)t->name, a->record);
                return problem;
            }
            if (a->is_write) {
                memcpy(value->balance, a->after, sizeof a->after);
                value->writer = t->name;
            }
        }
    }
    for (size_t i = 0; i < records && !is_partial; i++)
        if (memcmp(&values[i], &final[i], sizeof values[i]) != 0) {
            snprintf(problem, sizeof problem, "record %zu has other values in the end than one after the other", i);
            return problem;
        }
    free(replacing);
    free(edge);
    free(first);
    free(before);
    free(order);
    free(values);
    return NULL;
}

#endif
