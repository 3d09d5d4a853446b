/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional reads of a table (sPIN §5.4): rank 0 is the client, and every other rank has a part of the table.
 *
 *   --mode rdma        the client reads the whole table by gets, all posted at once, and filters each on arrival
 *   --mode served      the CPUs of the servers filter, and send the rows that match
 *   --mode spin        handlers on the servers' cards filter: those of the library
 *   --discarded N,N,…  per cent of the rows that the filter discards
 * and perhaps
 *   --where TEXT       the filter; @ stands for the least salary of the rows that are not discarded (default: salary >= @)
 *   --rows N           rows of each server (default: 16,384)
 *   --piece N          rows of a request or of a get (default: those of eight packets)
 *   --room N           rows of a piece that the client has memory for (default: all)
 *   --save NAME        writes the table to NAME.table and the client's rows to NAME.rows, as CSV
 *
 * Prints one JSON object a line: {"mode", "discarded", "rows", "checksum", "wire_bytes", "cpu_ps", "time_ps", "data_ok"}. The time runs from
 * the client's first post until its CPU has all rows. cpu_ps is the CPU time of client and servers for filters and posts.
 * The client compares the rows with a serial computation; without an answer of a server it names the missing rows. */
#include "../../common/common.h"
#include <handlers/conditional-read/conditional_read.h>
#include <handlers/conditional-read/expression.h>

enum { PT = 3, TABLE = 1, BUSY = 2, STOP = 3 }; /* portal table entry, match bits */
enum { CLIENT = 0, FIRST_SERVER = 1 };
enum { ROUNDS = 2 };       /* the branch predictors of the HPUs have settled in the last one */
enum { PATIENCE_MS = 10 }; /* time limit for a server; four times as long for a client */
enum { FILTER_MOST = 1024 };

enum mode { RDMA, SERVED, SPIN, MODES };
static const char *const modes[MODES] = {"rdma", "served", "spin"};
static const char usage[] =
    "conditional-read --mode rdma|served|spin --discarded N,N,... [--where TEXT] [--rows N] [--piece N] "
    "[--room N] [--save NAME]";

struct employee {
    int32_t id, department, salary, year;
    int64_t account;
    char name[40];
};
static const struct filter_column columns[] = {
    {"id", FILTER_INT32, offsetof(struct employee, id), 4},
    {"department", FILTER_INT32, offsetof(struct employee, department), 4},
    {"salary", FILTER_INT32, offsetof(struct employee, salary), 4},
    {"year", FILTER_INT32, offsetof(struct employee, year), 4},
    {"account", FILTER_INT64, offsetof(struct employee, account), 8},
    {"name", FILTER_TEXT, offsetof(struct employee, name), 40},
};
enum { COLUMNS = sizeof columns / sizeof *columns, ROW = sizeof(struct employee), SALARIES = 10000 };

/* A request on the wire. */
struct message {
    struct conditional_read request;
    uint8_t filter[FILTER_MOST] __attribute__((aligned(8)));
};

static enum mode mode;
static int rank;
static size_t servers, rows = 16384, piece, room = SIZE_MAX, pieces; /* rows of a server; pieces of all servers */
static const char *where = "salary >= @", *save;
static bool is_plain = true; /* the filter is the default */
static ptl_handle_eq_t eq;
static uint64_t busy_ps; /* busy time of this CPU */

/* Row `id` of the table; judge.py makes the same. */
static struct employee employee(uint32_t id) {
    struct employee e = {.id = (int32_t)id,
                         .department = (int32_t)(id * 7 % 101),
                         .salary = (int32_t)(id * 7919ull % SALARIES),
                         .year = (int32_t)(1980 + id * 13 % 45),
                         .account = (int64_t)(id * 1000003ull % 2000000011ull * 1000) - 1000000000000};
    for (uint32_t i = 0, rest = id * 2654435761u; i < 8; i++, rest /= 26)
        e.name[i] = (char)('A' + rest % 26);
    return e;
}

/* Translates the filter for a share of discarded rows. Returns its bytes. */
static uint32_t translate(size_t discarded, uint8_t *filter) {
    char text[4096];
    size_t length = 0, place;
    const char *problem;
    for (const char *at = where; *at != '\0' && length < sizeof text - 16; at++)
        if (*at == '@')
            length += (size_t)snprintf(text + length, 16, "%zu", discarded * SALARIES / 100);
        else
            text[length++] = *at;
    text[length] = '\0';
    uint32_t bytes = filter_translate(text, columns, COLUMNS, filter, FILTER_MOST, &problem, &place);
    if (bytes == 0) {
        fprintf(stderr, "--where: %s, at \"%s\"\n", problem, text + place);
        exit(2);
    }
    return bytes;
}

/* Packs the rows of a piece that match, at its beginning. Returns their number. */
static uint32_t filter_piece(const struct message *message, uint8_t *at, uint32_t count) {
    struct filter_mask masks[FILTER_DEPTH];
    uint32_t kept = 0;
    for (uint32_t first = 0; first < count; first += FILTER_ROWS) {
        uint32_t block = count - first < FILTER_ROWS ? count - first : FILTER_ROWS;
        filter_rows(message->filter, message->request.filter_bytes, at + first * ROW, block, ROW, masks);
        block = filter_pack(at + first * ROW, block, ROW, &masks[0]);
        memmove(at + kept * ROW, at + first * ROW, block * ROW);
        kept += block;
    }
    return kept;
}

/* Charges one core of this rank for the bytes that it reads and writes while it filters. */
static void charge_filter(uint64_t read_bytes, uint64_t written_bytes) {
    uint64_t start = spin_time_ps();
    spin_host_memory(read_bytes, written_bytes);
    busy_ps += spin_time_ps() - start;
}

/* Posts a put, whose time is work. */
static void post(ptl_handle_md_t md, size_t at, size_t bytes, ptl_rank_t to, ptl_match_bits_t bits, size_t offset) {
    uint64_t start = spin_time_ps();
    CHECK(PtlPut(md, at, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, PT, bits, offset, NULL, 0));
    busy_ps += spin_time_ps() - start;
}

/* Appends an entry that any rank may access, with the given options. */
static void expect(ptl_match_bits_t bits, void *start, size_t bytes, unsigned options, ptl_handle_ct_t ct) {
    append_plain(PT, bits, PTL_RANK_ANY, start, bytes, options, ct);
}

/* ---- Server ------------------------------------------------------------------------------------------------------ */

/* Serves requests by the CPU until the client sends a stop message, or is dead. */
static void serve(const struct employee *table, const struct message *requests) {
    uint8_t *found = allocate(rows * ROW);
    struct reply *answers = allocate(pieces * sizeof *answers);
    ptl_handle_md_t found_md = bind_memory(found, rows * ROW, 0, PTL_CT_NONE);
    ptl_handle_md_t answer_md = bind_memory(answers, pieces * sizeof *answers, 0, PTL_CT_NONE);
    for (;;) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&eq, 1, 4 * PATIENCE_MS, &event, &which);
        if (rc == PTL_EQ_EMPTY)
            fail("no request came for %d ms: the client is dead", 4 * PATIENCE_MS);
        CHECK(rc);
        if (event.type != PTL_EVENT_PUT)
            continue;
        if (event.match_bits == STOP)
            return;
        size_t number = event.remote_offset / sizeof *requests;
        const struct conditional_read *r = &requests[number].request;
        memcpy(found + r->offset, (const uint8_t *)table + r->offset, (size_t)r->rows * ROW);
        uint32_t kept = filter_piece(&requests[number], found + r->offset, r->rows);
        uint32_t sent = kept < r->room ? kept : r->room;
        charge_filter((uint64_t)r->rows * ROW, (uint64_t)sent * ROW);
        if (sent > 0)
            post(found_md, r->offset, (size_t)sent * ROW, CLIENT, CONDITIONAL_READ_ROWS, r->reply_offset);
        answers[number] = (struct reply){r->number, sent < kept ? CONDITIONAL_READ_NO_ROOM : CONDITIONAL_READ_OK, kept};
        post(answer_md, number * sizeof *answers, sizeof *answers, CLIENT, CONDITIONAL_READ_ANSWER,
             number * sizeof *answers);
    }
}

static void server(const char *list) {
    struct employee *table = allocate(rows * sizeof *table);
    struct message *requests = allocate(pieces * sizeof *requests);
    for (size_t i = 0; i < rows; i++)
        table[i] = employee((uint32_t)((size_t)(rank - FIRST_SERVER) * rows + i));
    expect(BUSY, &busy_ps, sizeof busy_ps, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE);
    if (mode == RDMA) {
        expect(TABLE, table, rows * ROW, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE);
    } else if (mode == SPIN) {
        CHECK(conditional_read_serve(ni, PT, table, rows * ROW, limits.max_payload_size, CONDITIONAL_READ_LANES));
    } else {
        expect(STOP, NULL, 0, PTL_ME_OP_PUT, PTL_CT_NONE);
        expect(CONDITIONAL_READ, requests, pieces * sizeof *requests, PTL_ME_OP_PUT, PTL_CT_NONE);
    }
    for (size_t discarded; next_number(&list, &discarded);)
        for (int round = 0; round < ROUNDS; round++) {
            busy_ps = 0;
            CHECK(spin_barrier());
            if (mode == SERVED)
                serve(table, requests);
            CHECK(spin_barrier());
        }
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

static struct message *messages; /* requests of all pieces, server by server */
static struct reply *answers;
static uint8_t *received; /* rows, at the places of their pieces in the whole table */
static uint32_t *kept;    /* number of rows of each piece that are in `received` */
static bool *is_there;    /* whether the piece was read */
static ptl_handle_md_t message_md, received_md;
static ptl_handle_ct_t answered, came;
static struct {
    ptl_size_t answers, bytes;
} counted;

static ptl_rank_t server_of(size_t number) { return (ptl_rank_t)(FIRST_SERVER + number / (pieces / servers)); }

/* Waits until `ct` reaches this count, or no more messages arrive. */
static void await(ptl_handle_ct_t ct, ptl_size_t much) {
    ptl_ct_event_t event = {0, 0}, before;
    unsigned which;
    int rc;
    do {
        before = event;
        rc = PtlCTPoll(&ct, &much, 1, PATIENCE_MS, &event, &which);
        if (rc == PTL_CT_NONE_REACHED)
            CHECK(PtlCTGet(ct, &event));
        else
            CHECK(rc);
    } while (rc == PTL_CT_NONE_REACHED && event.success != before.success);
}

/* Sends requests and waits for all answers and their rows. */
static void request_rows(void) {
    ptl_size_t bytes = 0, number_of_answers = 0;
    memset(answers, 0, pieces * sizeof *answers);
    for (size_t i = 0; i < pieces; i++) {
        size_t place = i % servers * (pieces / servers) + i / servers; /* the servers take turns */
        ptl_match_bits_t lane = mode == SPIN ? i / servers % CONDITIONAL_READ_LANES : 0;
        post(message_md, place * sizeof *messages, sizeof messages->request + messages[place].request.filter_bytes,
             server_of(place), CONDITIONAL_READ + lane, place * sizeof *messages);
    }
    await(answered, counted.answers + pieces);
    for (size_t i = 0; i < pieces; i++) {
        const struct conditional_read *r = &messages[i].request;
        is_there[i] = answers[i].status != 0;
        if (!is_there[i])
            continue;
        if (answers[i].status == CONDITIONAL_READ_NO_ROOM)
            fail("%u rows match in piece %zu; the request has room for %u", (unsigned)answers[i].value, i, r->room);
        if (answers[i].status != CONDITIONAL_READ_OK)
            fail("server %u refuses piece %zu: status %d", server_of(i), i, answers[i].status);
        kept[i] = (uint32_t)answers[i].value;
        bytes += (ptl_size_t)kept[i] * ROW;
        number_of_answers++;
    }
    await(came, counted.bytes + bytes);
    counted.answers += number_of_answers;
    counted.bytes += bytes;
}

/* Reads the whole table, and filters each piece when it has arrived. */
static void read_rows(void) {
    for (size_t i = 0; i < pieces; i++) {
        size_t place = i % servers * (pieces / servers) + i / servers;
        const struct conditional_read *r = &messages[place].request;
        uint64_t start = spin_time_ps();
        CHECK(PtlGet(received_md, r->reply_offset, (size_t)r->rows * ROW, (ptl_process_t){.rank = server_of(place)}, PT,
                     TABLE, r->offset, (void *)place));
        busy_ps += spin_time_ps() - start;
        is_there[place] = false;
    }
    for (size_t i = 0; i < pieces; i++) {
        ptl_event_t event;
        unsigned which;
        CHECK(PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which));
        size_t place = (size_t)event.user_ptr;
        const struct conditional_read *r = &messages[place].request;
        is_there[place] = event.ni_fail_type == PTL_NI_OK;
        if (!is_there[place])
            continue;
        charge_filter((uint64_t)r->rows * ROW, 0);
        kept[place] = filter_piece(&messages[place], received + r->reply_offset, r->rows);
    }
}

/* Returns whether the filter, computed plainly, keeps a row; another filter than the default is interpreted for this row alone. */
static bool keeps(const struct message *message, const struct employee *row, size_t discarded) {
    struct filter_mask masks[FILTER_DEPTH];
    if (is_plain)
        return row->salary >= (int32_t)(discarded * SALARIES / 100);
    filter_rows(message->filter, message->request.filter_bytes, (const uint8_t *)row, 1, ROW, masks);
    return (masks[0].words[0] & 1) != 0;
}

static void print_row(FILE *file, const struct employee *e) {
    if (file != NULL)
        fprintf(file, "%d,%d,%d,%d,%lld,%s\n", e->id, e->department, e->salary, e->year, (long long)e->account,
                e->name);
}

static FILE *create(const char *suffix) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", save, suffix);
    FILE *file = fopen(name, "w");
    if (file == NULL)
        fail("%s cannot be written", name);
    return file;
}

/* Compares the received rows with a serial computation, and prints the result. */
static void check(size_t discarded, uint64_t time_ps, uint64_t cpu_ps) {
    uint64_t number = 0, checksum = 0, wire = 0;
    size_t missing = 0;
    FILE *table_file = save == NULL ? NULL : create(".table"), *rows_file = save == NULL ? NULL : create(".rows");
    for (size_t i = 0; i < pieces; i++) {
        const struct conditional_read *r = &messages[i].request;
        const struct employee *got = (const struct employee *)(received + r->reply_offset), *end = got + kept[i];
        missing += !is_there[i];
        for (uint32_t row = 0; row < r->rows; row++) {
            struct employee e = employee((uint32_t)(r->reply_offset / ROW) + row);
            print_row(table_file, &e);
            if (!is_there[i] || !keeps(&messages[i], &e, discarded))
                continue;
            if (got == end || memcmp(got, &e, ROW) != 0)
                fail("row %d is missing or wrong", e.id);
            print_row(rows_file, got++);
            number++;
            checksum += (uint64_t)e.id * (uint64_t)(e.salary + 1);
        }
        if (is_there[i] && got != end)
            fail("piece %zu has %zu rows that do not match", i, (size_t)(end - got));
        wire += !is_there[i] ? 0 : mode == RDMA ? (uint64_t)r->rows * ROW : kept[i] * ROW + sizeof(struct reply);
    }
    if (save != NULL && fclose(table_file) + fclose(rows_file) != 0)
        fail("%s.table or %s.rows cannot be written", save, save);
    for (size_t i = 0; i < pieces && missing > 0; i++)
        if (!is_there[i] && (i == 0 || is_there[i - 1] || server_of(i - 1) != server_of(i)))
            fprintf(stderr, "server %u does not answer: rows from %zu on are missing\n", server_of(i),
                    (size_t)messages[i].request.reply_offset / ROW);
    printf("{\"mode\":\"%s\",\"discarded\":%zu,\"rows\":%llu,\"checksum\":%llu,\"wire_bytes\":%llu,\"cpu_ps\":%llu,"
           "\"time_ps\":%llu,\"data_ok\":%s}\n",
           modes[mode], discarded, (unsigned long long)number, (unsigned long long)checksum, (unsigned long long)wire,
           (unsigned long long)cpu_ps, (unsigned long long)time_ps, verdict(missing == 0));
}

/* The time for which the servers' CPUs worked in this round. */
static uint64_t busy_of_servers(void) {
    uint64_t each[256] = {0}, sum = 0;
    ptl_handle_ct_t ct;
    ptl_ct_event_t event;
    CHECK(PtlCTAlloc(ni, &ct));
    ptl_handle_md_t md = bind_memory(each, sizeof each, PTL_MD_EVENT_CT_REPLY, ct);
    for (size_t i = 0; i < servers; i++)
        CHECK(PtlGet(md, i * sizeof *each, sizeof *each, (ptl_process_t){.rank = FIRST_SERVER + (ptl_rank_t)i}, PT,
                     BUSY, 0, NULL));
    do
        CHECK(PtlCTGet(ct, &event));
    while (event.success + event.failure < servers);
    for (size_t i = 0; i < servers; i++)
        sum += each[i];
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(ct));
    return sum;
}

static void client(const char *list) {
    size_t all = servers * rows * ROW;
    messages = allocate(pieces * sizeof *messages);
    answers = allocate(pieces * sizeof *answers);
    received = allocate(all);
    kept = allocate(pieces * sizeof *kept);
    is_there = allocate(pieces * sizeof *is_there);
    ptl_md_t md = {.start = received,
                   .length = all,
                   .options = PTL_MD_EVENT_SEND_DISABLE,
                   .eq_handle = eq,
                   .ct_handle = PTL_CT_NONE};
    CHECK(PtlMDBind(ni, &md, &received_md));
    CHECK(PtlCTAlloc(ni, &answered));
    CHECK(PtlCTAlloc(ni, &came));
    message_md = bind_memory(messages, pieces * sizeof *messages, 0, PTL_CT_NONE);
    const unsigned counts = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE;
    expect(CONDITIONAL_READ_ANSWER, answers, pieces * sizeof *answers, counts, answered);
    expect(CONDITIONAL_READ_ROWS, received, all, counts | PTL_ME_EVENT_CT_BYTES, came);
    for (size_t discarded; next_number(&list, &discarded);) {
        uint64_t time_ps = 0, cpu_ps = 0;
        for (size_t i = 0; i < pieces; i++) {
            size_t of_server = pieces / servers, first = i % of_server * piece;
            messages[i].request =
                (struct conditional_read){.number = (uint32_t)i,
                                          .client.rank = CLIENT,
                                          .row_bytes = ROW,
                                          .offset = first * ROW,
                                          .reply_offset = (i / of_server * rows + first) * ROW,
                                          .rows = (uint32_t)(rows - first < piece ? rows - first : piece),
                                          .filter_bytes = translate(discarded, messages[i].filter)};
            messages[i].request.room = (uint32_t)(room < messages[i].request.rows ? room : messages[i].request.rows);
        }
        for (int round = 0; round < ROUNDS; round++) {
            memset(received, 0, all);
            memset(kept, 0, pieces * sizeof *kept);
            CHECK(spin_barrier());
            busy_ps = 0;
            uint64_t start = spin_time_ps();
            mode == RDMA ? read_rows() : request_rows();
            time_ps = spin_time_ps() - start;
            for (size_t i = 0; i < servers && mode == SERVED; i++)
                CHECK(PtlPut(message_md, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = FIRST_SERVER + (ptl_rank_t)i},
                             PT, STOP, 0, NULL, 0));
            cpu_ps = busy_ps + busy_of_servers();
            CHECK(spin_barrier());
        }
        check(discarded, time_ps, cpu_ps);
    }
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *list = option(argc, argv, "--discarded", usage), *number;
    const struct {
        const char *name;
        size_t *value;
    } numbers[] = {{"--rows", &rows}, {"--piece", &piece}, {"--room", &room}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if ((number = argument(argc, argv, numbers[i].name)) != NULL && !next_number(&number, numbers[i].value))
            fail("%s: expected a number", numbers[i].name);
    is_plain = argument(argc, argv, "--where") == NULL;
    where = option_or(argc, argv, "--where", where);
    save = argument(argc, argv, "--save");
    servers = (size_t)spin_size() - FIRST_SERVER;
    if (servers < 1 || servers > 256 || rows < 1 || rows > 1 << 20)
        fail("this needs 2 to 257 ranks, and 1 to 1,048,576 rows");
    rank = spin_rank();
    start(PT, &eq);
    piece = piece > 0 ? piece : 8 * limits.max_payload_size / ROW;
    piece = piece < rows ? piece : rows;
    pieces = servers * ((rows + piece - 1) / piece);
    rank == CLIENT ? client(list) : server(list);
    finish();
    return exit_status;
}
