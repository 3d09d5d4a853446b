/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of filters as text, for the host: comparisons of columns with constants, AND, OR, NOT and parentheses, as in SQL.
 *
 *     salary >= 4000 AND (department = 7 OR NOT name < 'M')
 *
 * Comparisons are = <> != < <= > >=, with the column on the left. Constants are whole numbers, or text in '…' with '' for a quote. NOT
 * binds closer than AND, and AND closer than OR; keywords and names of columns are the same in upper and lower case. */
#ifndef HANDLERS_CONDITIONAL_READ_EXPRESSION_H
#define HANDLERS_CONDITIONAL_READ_EXPRESSION_H

#include <ctype.h>
#include <errno.h>
#include <handlers/conditional-read/filter.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

/* Column of a table: its name, and its position in a row. */
struct filter_column {
    const char *name;
    enum filter_type type;
    uint16_t offset, bytes;
};

struct expression {
    const char *at; /* position in the text */
    const struct filter_column *columns;
    size_t count; /* number of columns */
    uint8_t *filter;
    uint32_t bytes, most; /* bytes of the filter: so far, and limit */
    const char *problem;  /* NULL without an error */
};

static inline void expression_disjunction(struct expression *e);

static inline void expression_fail(struct expression *e, const char *problem) {
    if (e->problem == NULL)
        e->problem = problem;
}

static inline void expression_skip(struct expression *e) {
    while (isspace((unsigned char)*e->at))
        e->at++;
}

/* Returns the number of letters, digits and underscores of the next word. */
static inline size_t expression_word(struct expression *e) {
    size_t length = 0;
    expression_skip(e);
    while (isalnum((unsigned char)e->at[length]) || e->at[length] == '_')
        length++;
    return length;
}

/* Skips a keyword, if it is next. */
static inline bool expression_keyword(struct expression *e, const char *keyword) {
    size_t length = expression_word(e);
    if (length != strlen(keyword) || strncasecmp(e->at, keyword, length) != 0)
        return false;
    e->at += length;
    return true;
}

static inline void expression_step(struct expression *e, struct filter_step step, const void *constant) {
    uint32_t padded = filter_padded(step.bytes), bytes = (uint32_t)sizeof step + padded;
    if (e->problem != NULL)
        return;
    if (e->most - e->bytes < bytes) {
        expression_fail(e, "the filter is too long");
        return;
    }
    memset(e->filter + e->bytes, 0, bytes);
    memcpy(e->filter + e->bytes, &step, sizeof step);
    memcpy(e->filter + e->bytes + sizeof step, constant, step.bytes);
    e->bytes += bytes;
}

static inline void expression_combine(struct expression *e, enum filter_operation operation) {
    expression_step(e, (struct filter_step){.operation = (uint8_t)operation}, "");
}

/* Reads a constant of a column's type to `constant`, which has 65,536 bytes of zeros. */
static inline void expression_constant(struct expression *e, const struct filter_column *column, uint8_t *constant) {
    expression_skip(e);
    if (column->type == FILTER_TEXT) {
        size_t length = 0;
        if (*e->at != '\'') {
            expression_fail(e, "expected a text in '…'");
            return;
        }
        for (e->at++; *e->at != '\0' && (*e->at != '\'' || e->at[1] == '\''); e->at++) {
            e->at += *e->at == '\'';
            if (length == column->bytes) {
                expression_fail(e, "the text is longer than its column");
                return;
            }
            constant[length++] = (uint8_t)*e->at;
        }
        if (*e->at++ != '\'') {
            e->at--;
            expression_fail(e, "the text has no end");
        }
        return;
    }
    char *end;
    errno = 0;
    int64_t number = strtoll(e->at, &end, 10);
    if (end == e->at)
        expression_fail(e, "expected a whole number");
    else if (errno != 0 || (column->type == FILTER_INT32 && number != (int32_t)number))
        expression_fail(e, "the number does not fit its column");
    else
        e->at = end;
    memcpy(constant, &number, column->bytes); /* little-endian, like the card */
}

static inline void expression_comparison(struct expression *e) {
    static const struct {
        const char *text;
        enum filter_operation operation;
        bool inverse;
    } comparisons[] = {{"<=", FILTER_MORE, true},  {">=", FILTER_LESS, true}, {"<>", FILTER_EQUAL, true},
                       {"!=", FILTER_EQUAL, true}, {"<", FILTER_LESS, false}, {">", FILTER_MORE, false},
                       {"=", FILTER_EQUAL, false}};
    static uint8_t constant[1 << 16];
    const struct filter_column *column = NULL;
    size_t length = expression_word(e), found = 0, all = sizeof comparisons / sizeof *comparisons;
    for (size_t i = 0; i < e->count; i++)
        if (strlen(e->columns[i].name) == length && strncasecmp(e->columns[i].name, e->at, length) == 0)
            column = &e->columns[i];
    if (column == NULL) {
        expression_fail(e, "expected a column");
        return;
    }
    e->at += length;
    expression_skip(e);
    while (found < all && strncmp(e->at, comparisons[found].text, strlen(comparisons[found].text)) != 0)
        found++;
    if (found == all) {
        expression_fail(e, "expected a comparison");
        return;
    }
    e->at += strlen(comparisons[found].text);
    memset(constant, 0, column->bytes);
    expression_constant(e, column, constant);
    expression_step(e,
                    (struct filter_step){.operation = (uint8_t)comparisons[found].operation,
                                         .type = (uint8_t)column->type,
                                         .offset = column->offset,
                                         .bytes = column->bytes},
                    constant);
    if (comparisons[found].inverse)
        expression_combine(e, FILTER_NOT);
}

static inline void expression_term(struct expression *e) {
    bool inverse = false;
    while (expression_keyword(e, "not"))
        inverse = !inverse;
    expression_skip(e);
    if (*e->at == '(') {
        e->at++;
        expression_disjunction(e);
        expression_skip(e);
        if (*e->at == ')')
            e->at++;
        else
            expression_fail(e, "expected )");
    } else {
        expression_comparison(e);
    }
    if (inverse)
        expression_combine(e, FILTER_NOT);
}

static inline void expression_conjunction(struct expression *e) {
    expression_term(e);
    while (e->problem == NULL && expression_keyword(e, "and")) {
        expression_term(e);
        expression_combine(e, FILTER_AND);
    }
}

static inline void expression_disjunction(struct expression *e) {
    expression_conjunction(e);
    while (e->problem == NULL && expression_keyword(e, "or")) {
        expression_conjunction(e);
        expression_combine(e, FILTER_OR);
    }
}

/* Translates `text` to a filter of at most `most` bytes at `filter`, for rows with these columns. Returns its bytes; or
 * 0, with the problem in words and, in `*place`, its position in the text. */
static inline uint32_t filter_translate(const char *text, const struct filter_column *columns, size_t count,
                                        uint8_t *filter, uint32_t most, const char **problem, size_t *place) {
    struct expression e = {.at = text, .columns = columns, .count = count, .filter = filter, .most = most};
    uint32_t row_bytes = 0;
    expression_disjunction(&e);
    expression_skip(&e);
    if (e.problem == NULL && *e.at != '\0')
        expression_fail(&e, "expected AND, OR or the end");
    for (size_t i = 0; i < count; i++)
        if (columns[i].offset + columns[i].bytes > row_bytes)
            row_bytes = columns[i].offset + columns[i].bytes;
    if (e.problem == NULL && !filter_is_valid(filter, e.bytes, row_bytes))
        expression_fail(&e, "too many results wait to be combined");
    *problem = e.problem;
    *place = (size_t)(e.at - text);
    return e.problem == NULL ? e.bytes : 0;
}

#endif
