/* SPDX-License-Identifier: Apache-2.0 */
/* Storage traces in the format of the Storage Performance Council, with one request in each line:
 *
 *     ASU,LBA,size,opcode,timestamp
 *
 * These are the application storage unit, logical block of 512 bytes, bytes, r or w (either case), and seconds; further
 * fields are ignored.
 *
 * The five traces that the paper replays (§5.3; UMass trace repository: Financial1 and 2, WebSearch1 to 3) may not be
 * redistributed. spc_generate generates requests like theirs:
 *
 *     trace          writes    mean size
 *     1 Financial1   76.8 %    3.4 KiB
 *     2 Financial2   17.6 %    2.4 KiB
 *     3 WebSearch1    0.02 %  15.1 KiB
 *     4 WebSearch2    0.02 %  15.1 KiB
 *     5 WebSearch3    0.03 %  15.4 KiB
 *
 * Sources: an analysis of the original WebSearch2 (https://gist.github.com/prtitrz/2706994) counts 4,579,809 requests,
 * all reads, 99.95 % of them evenly to ASUs 0, 1 and 2, and shows sizes of 8 and 24 KiB, as here. For the other numbers
 * we found no source that can be cited: they are the usual ones of the literature, from memory. `raid5 --file` reads
 * the originals.
 *
 * Sizes are drawn from those typical of such traces (OLTP: 512 B to 8 KiB; search: 8 to 32 KiB), addresses evenly.
 * Order, locality and arrival times are not modelled: a replay makes one request after the other. */
#ifndef EXPERIMENTS_SPC_H
#define EXPERIMENTS_SPC_H

#include <ctype.h>
#include <errno.h>
#include <handlers/common/random.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPC_BLOCK = 512, SPC_TRACES = 5 };

struct spc_request {
    uint64_t lba;
    uint32_t asu;
    uint32_t bytes;
    bool write;
};

/* The caller frees `requests`. */
struct spc_trace {
    struct spc_request *requests;
    size_t count;
};

/* Ends the program with a message about a mistake in a trace and its place. */
__attribute__((noreturn)) static inline void spc_error(const char *file, size_t line, const char *what) {
    fprintf(stderr, "%s:%zu: %s\n", file, line, what);
    exit(1);
}

static inline void spc_append(struct spc_trace *trace, struct spc_request request) {
    if ((trace->count & (trace->count + 1)) == 0) { /* full at 2^n - 1 */
        trace->requests = realloc(trace->requests, (2 * trace->count + 1) * sizeof request);
        if (trace->requests == NULL) {
            fprintf(stderr, "no memory for a trace of %zu requests\n", trace->count);
            exit(1);
        }
    }
    trace->requests[trace->count++] = request;
}

/* Removes a number and the separator after it from a line. */
static inline uint64_t spc_number(const char **at, uint64_t most, const char *file, size_t line, const char *error) {
    char *end;
    errno = 0;
    unsigned long long number = isdigit((unsigned char)**at) ? strtoull(*at, &end, 10) : (errno = EINVAL, 0);
    if (errno != 0 || number > most || *end != ',')
        spc_error(file, line, error);
    *at = end + 1;
    return number;
}

/* Reads a trace; a mistake in it ends the program with its line. */
static inline struct spc_trace spc_read(const char *file) {
    struct spc_trace trace = {NULL, 0};
    char text[256];
    FILE *input = fopen(file, "r");
    if (input == NULL) {
        fprintf(stderr, "%s: %s\n", file, strerror(errno));
        exit(1);
    }
    for (size_t line = 1; fgets(text, sizeof text, input) != NULL; line++) {
        const char *at = text;
        char *end;
        if (strchr(text, '\n') == NULL && !feof(input))
            spc_error(file, line, "this line is too long");
        if (text[strspn(text, " \t\r\n")] == '\0')
            continue;
        struct spc_request request = {0};
        request.asu = (uint32_t)spc_number(&at, UINT32_MAX, file, line, "expected an ASU (a number), then a comma");
        request.lba = spc_number(&at, UINT64_MAX / SPC_BLOCK, file, line, "expected an LBA (a number), then a comma");
        request.bytes = (uint32_t)spc_number(&at, UINT32_MAX, file, line, "expected a size in bytes, then a comma");
        if (request.bytes == 0)
            spc_error(file, line, "a request of 0 bytes");
        if (*at == '\0' || strchr("rRwW", *at) == NULL || at[1] != ',')
            spc_error(file, line, "expected r or w, then a comma");
        request.write = tolower((unsigned char)*at) == 'w';
        at += 2;
        if (strtod(at, &end) < 0 || end == at || strchr(",\r\n", *end) == NULL)
            spc_error(file, line, "expected a timestamp in seconds");
        spc_append(&trace, request);
    }
    if (ferror(input)) {
        fprintf(stderr, "%s: %s\n", file, strerror(errno));
        exit(1);
    }
    fclose(input);
    return trace;
}

/* A share of requests, in parts of a thousand, and their size. */
struct spc_size {
    unsigned share, bytes;
};

/* Generates trace `number`, 1 to 5; the same arguments always give the same requests. */
static inline struct spc_trace spc_generate(unsigned number, size_t count) {
    static const struct spc_size oltp_writes[] = {{220, 512},  {50, 1024},  {100, 2048}, {100, 3072},
                                                  {400, 4096}, {130, 8192}, {0, 0}},
                                 oltp_reads[] = {{380, 512},  {80, 1024}, {170, 2048}, {50, 3072},
                                                 {260, 4096}, {60, 8192}, {0, 0}},
                                 search[] = {{620, 8192}, {110, 16384}, {50, 24576}, {220, 32768}, {0, 0}};
    static const struct {
        const struct spc_size *sizes;
        unsigned writes; /* writes in 10,000 requests */
        unsigned units;
    } traces[SPC_TRACES] = {
        {oltp_writes, 7680, 24}, {oltp_reads, 1760, 19}, {search, 2, 3}, {search, 2, 3}, {search, 3, 3}};
    struct spc_trace trace = {NULL, 0};
    if (number < 1 || number > SPC_TRACES) {
        fprintf(stderr, "trace %u: there are 1 to %d\n", number, SPC_TRACES);
        exit(2);
    }
    uint64_t state = number; /* the seed */
    for (size_t i = 0; i < count; i++) {
        uint64_t random[4];
        for (int j = 0; j < 4; j++)
            random[j] = random_next(&state);
        const struct spc_size *size = traces[number - 1].sizes;
        for (unsigned draw = random[0] % 1000; draw >= size->share; size++)
            draw -= size->share;
        spc_append(&trace, (struct spc_request){.asu = (uint32_t)(random[1] % traces[number - 1].units),
                                                .lba = random[2] % (1u << 24),
                                                .bytes = size->bytes,
                                                .write = random[3] % 10000 < traces[number - 1].writes});
    }
    return trace;
}

#endif
