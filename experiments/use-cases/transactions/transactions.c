/* SPDX-License-Identifier: Apache-2.0 */
/* Distributed transactions (sPIN §5.4): ranks 0 to 3 keep the accounts, every other rank is a client.
 *
 *   --mode rdma       optimistic, one-sided: reads by gets, then locks by compare-and-swap, validates versions and writes by puts
 *   --mode served     the CPUs of the hosts answer reads and log them, validate and write
 *   --mode spin       clients read by gets, which header handlers log; the CPUs of the hosts validate and write
 *   --mode gets       no transactions: clients post gets to one host, 16 at a time, and the card answers
 *   --mode logged     the same, but header handlers log them
 *   --clients N,N,…   runs with N clients each
 * and perhaps
 *   --count N         transactions of each client, or gets (default: 40)
 *   --accounts N      accounts of each host (default: 256)
 *   --cores N         cores of each host that serve, 1 to 8 (default: 4). The accounts of a host are divided among them: each has its
 *                     own portal table entry, log and versions, so that cores share nothing
 *   --log N           accesses for which the log of a core has room, a power of two (default: 4,096)
 *   --mix M           smallbank (default), or tatp: the shares of TATP's accesses, 80 % of which read, on the same accounts
 *
 * An account, savings and checking, is a record of 64 bytes. A client makes one transaction after the other, and repeats one that
 * is aborted. Prints one JSON object a line: {"mode", "clients", "committed", "aborted", "log_full", "cpu_ps", "time_ps", "data_ok"}.
 * The time is that of the run divided by the number of committed transactions; cpu_ps is the CPU time of all hosts for each. At the
 * end the first client reads the histories of all clients and the records of all hosts, and checks them (history.h). */
#include "../../common/common.h"
#include "history.h"
#include <handlers/common/random.h>
#include <handlers/common/reply.h>
#include <handlers/transactions/transactions.h>
#include <pthread.h>

enum { PT = 3, HOSTS = 4, JUDGE = HOSTS, MOST_CLIENTS = 64, MOST_CORES = 8 }; /* core c of a host serves entry PT + c */
enum { REQUEST = 1, ANSWER = 2, TABLE = 3, HISTORY = 4 };                     /* match bits */
enum { INITIAL = 1000 };
enum { PATIENCE_MS = 10 }; /* time without an answer after which a rank counts as dead */
enum { MOST_TRIES = 64, SHORT_PAUSES = 16, PAUSE_NS = 1000, MOST_PAUSE_NS = 64 * PAUSE_NS };
enum { AT_ONCE = 16 }; /* gets of a client without transactions */

enum mode { RDMA, SERVED, SPIN, GETS, LOGGED, MODES };
static const char *const modes[MODES] = {"rdma", "served", "spin", "gets", "logged"};
static const char usage[] =
    "transactions --mode rdma|served|spin|gets|logged --clients N,N,... [--count N] [--accounts N] [--cores N] "
    "[--log N] [--mix smallbank|tatp]";

struct record {
    uint64_t lock; /* RDMA: the version, odd while it is locked */
    struct value value;
    uint64_t unused[4];
};

enum kind { READ, COMMIT, PREPARE, DECIDE_COMMIT, DECIDE_ABORT, FORGET, STOP };

/* A request to a core of a host. A client has SLOTS places for its requests at each core. */
struct request {
    uint32_t kind, transaction, place, writes; /* the answer's place, of ACCESSES */
    uint64_t name;
    struct {
        uint64_t record; /* record of this core; the first one for READ */
        int64_t balance[BALANCES];
    } write[ACCESSES];
};
enum { SLOTS = 4 };
enum { YES = 1, NO }; /* status of an answer */

/* The answer; that of READ has a record. */
struct answer {
    struct reply reply;
    struct record record;
};

static enum mode mode;
static int rank;
enum mix { SMALLBANK, TATP, MIXES };
static const char *const mixes[MIXES] = {"smallbank", "tatp"};

static enum mix mix;
static size_t clients, count = 40, accounts = 256, cores = 4, capacity = 4096;
static size_t share; /* records of a core; the last of some are not accounts */
static ptl_handle_eq_t eq;
static uint64_t random_state;

static uint64_t draw(uint64_t below) { return random_next(&random_state) % below; }

/* Appends an entry that any rank may access, with the given options. */
static void expect(ptl_pt_index_t pt, ptl_match_bits_t bits, void *start, size_t bytes, unsigned options) {
    append_plain(pt, bits, PTL_RANK_ANY, start, bytes, options, PTL_CT_NONE);
}

/* ---- Host -------------------------------------------------------------------------------------------------------- */

static struct record *table; /* the records of this host: those of core 0, then those of core 1 … */

/* State of a core of this host. */
struct core {
    ptl_handle_eq_t eq;
    struct record *records;
    struct request *requests;
    struct answer *answers; /* ACCESSES for each client */
    ptl_handle_md_t answer_md;
    struct transaction_host host;
};
static struct core core[MOST_CORES];
static uint64_t busy_ps[MOST_CORES];

static void answer(struct core *c, uint32_t client, size_t bytes, const struct request *r, int32_t said) {
    size_t at = client * ACCESSES + r->place, server = (size_t)rank * cores + (size_t)(c - core);
    c->answers[at].reply = (struct reply){.request = r->transaction, .status = said};
    CHECK(PtlPut(c->answer_md, at * sizeof *c->answers, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = HOSTS + client},
                 PT, ANSWER, (server * ACCESSES + r->place) * sizeof *c->answers, NULL, 0));
}

/* Charges for records of the log that the card has written; those that the CPU writes itself are in its cache. */
static void charge_log(uint64_t bytes) {
    if (mode == SPIN && bytes > 0)
        spin_host_memory(bytes, 0);
}

/* Writes the records of a prepared transaction, then ends it. */
static void write_records(struct core *c, uint32_t client, const struct request *r) {
    for (uint32_t i = 0; i < r->writes; i++)
        c->records[r->write[i].record].value =
            (struct value){{r->write[i].balance[0], r->write[i].balance[1]}, r->name};
    if (r->writes > 0)
        spin_host_memory(r->writes * sizeof *table, r->writes * sizeof *table);
    charge_log(transaction_finish(&c->host, client, true));
}

/* Serves one request of a client. */
static void serve(struct core *c, uint32_t client, const struct request *r) {
    uint32_t write[ACCESSES];
    bool may_commit;
    switch (r->kind) {
    case READ: {
        struct transaction_access access = {.client = client + HOSTS,
                                            .transaction = r->transaction,
                                            .offset = (uint32_t)(r->write[0].record * sizeof *table),
                                            .length = sizeof *table,
                                            .type = PTL_REQUEST_GET};
        c->answers[client * ACCESSES + r->place].record = c->records[r->write[0].record];
        spin_host_memory(sizeof *table, sizeof *table);
        transaction_note(&c->host, &access);
        answer(c, client, sizeof *c->answers, r, YES);
        return;
    }
    case COMMIT:
    case PREPARE:
        charge_log(transaction_drain(&c->host));
        for (uint32_t i = 0; i < r->writes; i++)
            write[i] = (uint32_t)r->write[i].record;
        may_commit = transaction_prepare(&c->host, client + HOSTS, r->transaction, write, r->writes);
        if (may_commit && r->kind == COMMIT)
            write_records(c, client + HOSTS, r);
        answer(c, client, sizeof(struct reply), r, may_commit ? YES : NO);
        return;
    case DECIDE_COMMIT: write_records(c, client + HOSTS, r); return;
    case DECIDE_ABORT: transaction_finish(&c->host, client + HOSTS, false); return;
    default: /* FORGET: the log was full */
        charge_log(transaction_drain(&c->host));
        answer(c, client, sizeof(struct reply), r, YES);
        return;
    }
}

/* A core serves its requests until all clients have stopped. */
static void *be_core(void *own) {
    struct core *c = own;
    size_t stopped = 0;
    while (stopped < clients) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&c->eq, 1, 4 * PATIENCE_MS, &event, &which);
        if (rc == PTL_EQ_EMPTY) {
            fprintf(stderr, "host %d, core %td: %zu clients are dead\n", rank, c - core, clients - stopped);
            __atomic_store_n(&exit_status, 1, __ATOMIC_RELAXED);
            break;
        }
        CHECK(rc);
        if (event.type != PTL_EVENT_PUT)
            continue;
        const struct request *r = &c->requests[event.remote_offset / sizeof *c->requests];
        uint64_t start = spin_time_ps();
        stopped += r->kind == STOP;
        if (r->kind != STOP)
            serve(c, event.initiator.rank - HOSTS, r);
        busy_ps[c - core] += spin_time_ps() - start;
    }
    return NULL;
}

static void be_host(void) {
    pthread_t thread[MOST_CORES];
    for (size_t i = 0; i < cores * share; i++)
        table[i] = (struct record){.value.balance = {INITIAL, INITIAL}};
    memset(busy_ps, 0, sizeof busy_ps);
    CHECK(spin_barrier());
    if (mode == SERVED || mode == SPIN) {
        for (size_t i = 1; i < cores; i++)
            if (pthread_create(&thread[i], NULL, be_core, &core[i]) != 0)
                fail("no thread for core %zu", i);
        be_core(&core[0]);
        for (size_t i = 1; i < cores; i++)
            pthread_join(thread[i], NULL);
    }
    CHECK(spin_barrier());
    CHECK(spin_barrier());
}

static void prepare_core(struct core *c) {
    ptl_pt_index_t pt = PT + (ptl_pt_index_t)(c - core);
    c->eq = eq;
    if (pt != PT) {
        CHECK(PtlEQAlloc(ni, 4096, &c->eq));
        CHECK(PtlPTAlloc(ni, 0, c->eq, pt, &(ptl_pt_index_t){0}));
    }
    c->records = table + (c - core) * (ptrdiff_t)share;
    c->requests = allocate(MOST_CLIENTS * SLOTS * sizeof *c->requests);
    c->answers = allocate(MOST_CLIENTS * ACCESSES * sizeof *c->answers);
    c->answer_md = bind_memory(c->answers, MOST_CLIENTS * ACCESSES * sizeof *c->answers, 0, PTL_CT_NONE);
    c->host = (struct transaction_host){
        .log = allocate(host_queue_bytes((uint32_t)capacity, sizeof(struct transaction_access))),
        .capacity = (uint32_t)capacity,
        .record_bytes = sizeof *table,
        .records = (uint32_t)share,
        .clients = HOSTS + MOST_CLIENTS};
    expect(pt, REQUEST, c->requests, MOST_CLIENTS * SLOTS * sizeof *c->requests, PTL_ME_OP_PUT);
    if (!transaction_begin(&c->host))
        fail("no memory for %zu records", share);
    if (mode == SPIN || mode == LOGGED)
        CHECK(transaction_serve(ni, pt, c->records, &c->host));
}

static void prepare_host(void) {
    table = allocate(cores * share * sizeof *table);
    expect(PT, TABLE, table, cores * share * sizeof *table, PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE);
    expect(PT, HISTORY, busy_ps, sizeof busy_ps, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
    for (size_t i = 0; i < cores; i++)
        prepare_core(&core[i]);
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

/* Outcomes of awaited operations, from good to bad. */
enum outcome { DONE, REFUSED, LOG_FULL, DEAD };

/* An account that a transaction uses. */
struct part {
    uint32_t account, host, core, record; /* the record is one of the core's */
    bool is_write;
    int64_t after[BALANCES];
};

/* An account is of one host after the other, and there of one core after the other. */
static struct part part_of(uint32_t account) {
    uint32_t number = account / HOSTS;
    return (struct part){.account = account,
                         .host = account % HOSTS,
                         .core = number % (uint32_t)cores,
                         .record = number / (uint32_t)cores};
}

static struct record *seen;          /* data read: a record for each part */
static struct answer *told;          /* answers: ACCESSES of each core of each host */
static struct request *request_slot; /* SLOTS of each core of each host */
static uint64_t *word;               /* RDMA: versions that were found, then those that are written */
static size_t slot_of[HOSTS * MOST_CORES];
static ptl_handle_md_t seen_md, request_md, word_md, write_md;
static uint32_t transaction;
static struct history history;
static struct {
    uint64_t committed, aborted, log_full, is_lost;
} result;

/* Waits for `wanted` replies and answers. */
static enum outcome await(size_t wanted) {
    enum outcome worst = DONE;
    while (wanted > 0) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which);
        if (rc == PTL_EQ_EMPTY)
            return DEAD;
        CHECK(rc);
        wanted -= event.type == PTL_EVENT_REPLY || event.type == PTL_EVENT_PUT;
        enum outcome outcome = event.ni_fail_type == PTL_NI_OK                        ? DONE
                               : event.ni_fail_type == PTL_NI_DROPPED && mode == SPIN ? LOG_FULL
                                                                                      : DEAD;
        worst = outcome > worst ? outcome : worst;
    }
    return worst;
}

/* The number of the core that has a part, among those of all hosts. */
static size_t server_of(const struct part *part) { return part->host * cores + part->core; }

/* Sends a request to a core. */
static void request(size_t to, struct request r) {
    size_t slot = slot_of[to]++ % SLOTS, at = to * SLOTS + slot;
    request_slot[at] = r;
    size_t bytes = offsetof(struct request, write) + (r.kind == READ ? 1 : r.writes) * sizeof r.write[0];
    CHECK(PtlPut(request_md, at * sizeof r, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)(to / cores)},
                 PT + (ptl_pt_index_t)(to % cores), REQUEST, ((size_t)(rank - HOSTS) * SLOTS + slot) * sizeof r, NULL,
                 0));
}

/* Offset of a part's record in the table of its host, bytes. */
static size_t place_of(const struct part *part) { return (part->core * share + part->record) * sizeof *seen; }

/* Gets the record of a part by the entry of its core, which logs it, or the first bytes of it by that of the table. */
static void get_logged(size_t i, const struct part *part, ptl_handle_md_t md) {
    CHECK(PtlGet(md, i * sizeof *seen, sizeof *seen, (ptl_process_t){.rank = part->host},
                 PT + (ptl_pt_index_t)part->core, TRANSACTION_RECORDS | transaction, part->record * sizeof *seen,
                 NULL));
}

static void get_record(size_t i, const struct part *part, ptl_handle_md_t md, size_t bytes) {
    CHECK(PtlGet(md, i * (bytes == sizeof *seen ? sizeof *seen : sizeof *word), bytes,
                 (ptl_process_t){.rank = part->host}, PT, TABLE, place_of(part), NULL));
}

/* Reads the records of all parts. */
static enum outcome read_parts(const struct part *parts, size_t number) {
    for (size_t i = 0; i < number; i++)
        if (mode == SERVED)
            request(server_of(&parts[i]), (struct request){.kind = READ,
                                                           .transaction = transaction,
                                                           .place = (uint32_t)i,
                                                           .write[0].record = parts[i].record});
        else if (mode == SPIN)
            get_logged(i, &parts[i], seen_md);
        else
            get_record(i, &parts[i], seen_md, sizeof *seen);
    enum outcome outcome = await(number);
    for (size_t i = 0; i < number && mode == SERVED; i++)
        seen[i] = told[server_of(&parts[i]) * ACCESSES + i].record;
    return outcome;
}

/* A request to a core about those of the parts that it has. */
static struct request to_server(const struct part *parts, size_t number, size_t to, enum kind kind, uint64_t name) {
    struct request r = {.kind = kind, .transaction = transaction, .name = name};
    for (size_t i = 0; i < number; i++)
        if (server_of(&parts[i]) == to && parts[i].is_write) {
            r.write[r.writes].record = parts[i].record;
            memcpy(r.write[r.writes++].balance, parts[i].after, sizeof parts[i].after);
        }
    return r;
}

/* Commits by the cores of the hosts: at once when there is one, else in two phases. */
static enum outcome commit_by_hosts(const struct part *parts, size_t number, uint64_t name) {
    size_t server[ACCESSES] = {server_of(&parts[0]), number == 2 ? server_of(&parts[1]) : server_of(&parts[0])};
    bool two = server[0] != server[1];
    for (size_t i = 0; i < 1u + two; i++)
        request(server[i], to_server(parts, number, server[i], two ? PREPARE : COMMIT, name));
    enum outcome outcome = await(1u + two);
    if (outcome != DONE)
        return outcome;
    bool is_no[ACCESSES];
    for (size_t i = 0; i < 1u + two; i++)
        is_no[i] = told[server[i] * ACCESSES].reply.status == NO;
    outcome = is_no[0] || (two && is_no[1]) ? REFUSED : DONE;
    for (size_t i = 0; i < 2 && two; i++)
        if (!is_no[i])
            request(server[i],
                    to_server(parts, number, server[i], outcome == DONE ? DECIDE_COMMIT : DECIDE_ABORT, name));
    return outcome;
}

/* Writes `bytes` bytes of a part's record from `write_md`. */
static void put_record(size_t i, const struct part *part, size_t bytes) {
    CHECK(PtlPut(write_md, i * sizeof *seen, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = part->host}, PT, TABLE,
                 place_of(part), NULL, 0));
}

/* Commits by one-sided operations: locks written records, validates records that are only read, writes and unlocks. */
static enum outcome commit_by_words(const struct part *parts, size_t number, uint64_t name) {
    struct record *written = seen + ACCESSES;
    size_t locks = 0, reads = 0;
    enum outcome outcome = DONE;
    for (size_t i = 0; i < number; i++)
        if ((seen[i].lock & 1) != 0)
            return REFUSED;
    for (size_t i = 0; i < number; i++)
        if (parts[i].is_write) {
            uint64_t *locked = &word[ACCESSES + i];
            *locked = seen[i].lock + 1;
            CHECK(PtlSwap(word_md, i * sizeof *word, word_md, (ACCESSES + i) * sizeof *word, sizeof *word,
                          (ptl_process_t){.rank = parts[i].host}, PT, TABLE, place_of(&parts[i]), NULL, 0,
                          &seen[i].lock, PTL_CSWAP, PTL_UINT64_T));
            locks++;
        }
    if (locks > 0)
        outcome = await(locks);
    if (outcome != DONE)
        return outcome;
    for (size_t i = 0; i < number; i++)
        if (!parts[i].is_write) {
            get_record(i, &parts[i], word_md, sizeof *word);
            reads++;
        }
    if (reads > 0)
        outcome = await(reads);
    if (outcome != DONE)
        return outcome;
    for (size_t i = 0; i < number; i++)
        outcome = word[i] != seen[i].lock ? REFUSED : outcome;
    for (size_t i = 0; i < number; i++) {
        if (!parts[i].is_write || word[i] != seen[i].lock)
            continue;
        written[i].lock = seen[i].lock + (outcome == DONE ? 2 : 0);
        memcpy(written[i].value.balance, parts[i].after, sizeof parts[i].after);
        written[i].value.writer = name;
        put_record(i, &parts[i], outcome == DONE ? offsetof(struct record, unused) : sizeof written[i].lock);
    }
    return outcome;
}

/* A transaction. */
struct plan {
    unsigned kind;
    size_t number; /* number of parts */
    struct part parts[ACCESSES];
    int64_t amount;
};

/* Smallbank's transactions, and one that reads two records. */
enum { AMALGAMATE, BALANCE, DEPOSIT, PAYMENT, SAVINGS, CHECK_WRITTEN, BALANCES_OF_TWO, KINDS };

/* Per cent. TATP's: 70 read one row, 10 two; 18 change one, 2 two (its insertions and deletions, 4, are changes of one here). */
static const unsigned shares[MIXES][KINDS] = {[SMALLBANK] = {15, 15, 15, 25, 15, 15, 0},
                                              [TATP] = {0, 70, 4, 2, 14, 0, 10}};

static struct plan draw_plan(void) {
    struct plan plan = {.amount = (int64_t)draw(100) + 1};
    uint64_t account[ACCESSES] = {draw(HOSTS * accounts), draw(HOSTS * accounts - 1)};
    account[1] += account[1] >= account[0];
    for (uint64_t left_over = draw(100); left_over >= shares[mix][plan.kind]; plan.kind++)
        left_over -= shares[mix][plan.kind];
    plan.number = plan.kind == AMALGAMATE || plan.kind == PAYMENT || plan.kind == BALANCES_OF_TWO ? 2 : 1;
    for (size_t i = 0; i < plan.number; i++)
        plan.parts[i] = part_of((uint32_t)account[i]);
    return plan;
}

/* Computes the transaction's writes from its reads. */
static void compute(struct plan *plan) {
    enum { IN_SAVINGS, IN_CHECKING };
    int64_t *a = plan->parts[0].after, *b = plan->parts[1].after, amount = plan->amount;
    for (size_t i = 0; i < plan->number; i++) {
        memcpy(plan->parts[i].after, seen[i].value.balance, sizeof plan->parts[i].after);
        plan->parts[i].is_write = plan->kind != BALANCE && plan->kind != BALANCES_OF_TWO;
    }
    switch (plan->kind) {
    case AMALGAMATE:
        b[IN_CHECKING] += a[IN_SAVINGS] + a[IN_CHECKING];
        a[IN_SAVINGS] = a[IN_CHECKING] = 0;
        break;
    case DEPOSIT: a[IN_CHECKING] += amount; break;
    case SAVINGS: a[IN_SAVINGS] += amount; break;
    case CHECK_WRITTEN: a[IN_CHECKING] -= amount + (a[IN_SAVINGS] + a[IN_CHECKING] < amount); break;
    case PAYMENT:
        if (a[IN_CHECKING] < amount) {
            plan->parts[0].is_write = plan->parts[1].is_write = false;
            break;
        }
        a[IN_CHECKING] -= amount;
        b[IN_CHECKING] += amount;
        break;
    default: break;
    }
}

/* So that clients that met do not meet again: a random time, whose bound doubles with each try after the first few. */
static void pause_after(int tries) {
    uint64_t most_ns = (uint64_t)PAUSE_NS << (tries > SHORT_PAUSES ? tries - SHORT_PAUSES : 0);
    spin_host_compute(draw(most_ns < MOST_PAUSE_NS ? most_ns : MOST_PAUSE_NS));
}

/* Makes one transaction, again until it commits. Returns false when a host is dead, or a record is held for ever. */
static bool transact(void) {
    struct plan plan = draw_plan();
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        uint64_t name = (uint64_t)rank << 32 | ++transaction;
        enum outcome outcome = read_parts(plan.parts, plan.number);
        if (outcome == DONE) {
            compute(&plan);
            /* A record is a cache line, which is read and written at one time: to read one needs no validation. */
            if (plan.number > 1 || plan.parts[0].is_write)
                outcome = mode == RDMA ? commit_by_words(plan.parts, plan.number, name)
                                       : commit_by_hosts(plan.parts, plan.number, name);
        }
        if (outcome == LOG_FULL) {
            for (size_t i = 0; i < plan.number; i++)
                request(server_of(&plan.parts[i]),
                        (struct request){.kind = FORGET, .transaction = transaction, .place = (uint32_t)i});
            outcome = await(plan.number) == DONE ? REFUSED : DEAD;
            result.log_full += outcome == REFUSED;
        }
        if (outcome == DEAD)
            return false;
        if (outcome == REFUSED) {
            result.aborted++;
            pause_after(tries);
            continue;
        }
        struct transaction *t = &history.transactions[history.count++];
        *t = (struct transaction){.name = name, .accesses = plan.number};
        for (size_t i = 0; i < plan.number; i++) {
            t->access[i] = (struct access){
                .writer = seen[i].value.writer, .record = plan.parts[i].account, .is_write = plan.parts[i].is_write};
            memcpy(t->access[i].before, seen[i].value.balance, sizeof t->access[i].before);
            memcpy(t->access[i].after, plan.parts[i].after, sizeof t->access[i].after);
        }
        result.committed++;
        return true;
    }
    fprintf(stderr, "client %d gives up a transaction after %d tries: the dead may hold its records\n", rank,
            MOST_TRIES);
    return false;
}

/* Posts gets to one host, AT_ONCE at a time, and waits for the records. */
static void post_gets(void) {
    ptl_handle_ct_t ct;
    ptl_ct_event_t event;
    ptl_size_t wanted;
    unsigned which;
    CHECK(PtlCTAlloc(ni, &ct));
    ptl_handle_md_t md = bind_memory(seen, sizeof *seen, PTL_MD_EVENT_CT_REPLY, ct);
    for (size_t i = 0; i < count; i++) {
        struct part part = part_of((uint32_t)draw(accounts) * HOSTS);
        transaction++;
        if (mode == LOGGED)
            get_logged(0, &part, md);
        else
            get_record(0, &part, md, sizeof *seen);
        wanted = i + 1;
        if (wanted % AT_ONCE != 0 && wanted < count)
            continue;
        int rc = PtlCTPoll(&ct, &wanted, 1, PATIENCE_MS, &event, &which);
        if (rc == PTL_CT_NONE_REACHED || event.failure > 0)
            break;
        CHECK(rc);
        result.committed = wanted;
    }
    result.is_lost = result.committed < count;
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(ct));
}

/* Fetches `bytes` bytes of a rank; returns false when it is dead. */
static bool fetch(void *to, size_t bytes, ptl_rank_t from, ptl_match_bits_t bits) {
    ptl_md_t md = {
        .start = to, .length = bytes, .options = PTL_MD_EVENT_SEND_DISABLE, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    CHECK(PtlGet(handle, 0, bytes, (ptl_process_t){.rank = from}, PT, bits, 0, NULL));
    bool is_there = await(1) == DONE;
    CHECK(PtlMDRelease(handle));
    return is_there;
}

/* Record of a client for the judge. */
static struct {
    uint64_t committed, aborted, log_full, is_lost, end_ps;
    struct transaction transactions[];
} *left;

/* Reads the histories of all clients and hosts, checks them, and prints the result of the run that began at `start`. */
static void conclude(uint64_t start) {
    size_t records = HOSTS * accounts, bytes = sizeof *left + count * sizeof(struct transaction);
    struct value *final = allocate(records * sizeof *final);
    struct record *of_host = allocate(cores * share * sizeof *of_host);
    struct history all = {.transactions = allocate(clients * count * sizeof(struct transaction))};
    uint64_t committed = 0, aborted = 0, log_full = 0, cpu_ps = 0, end_ps = start;
    const char *problem = NULL;
    size_t dead = 0;
    for (ptl_rank_t client = HOSTS; client < HOSTS + clients; client++) {
        typeof(left) from = client == JUDGE ? left : allocate(bytes);
        if (client != JUDGE && !fetch(from, bytes, client, HISTORY)) {
            fprintf(stderr, "client %u is dead: its transactions are not known\n", client);
            dead++;
            continue;
        }
        dead += from->is_lost != 0;
        if (from->is_lost)
            fprintf(stderr, "client %u met the dead: after %llu transactions, what became of one is not known\n",
                    client, (unsigned long long)from->committed);
        committed += from->committed;
        aborted += from->aborted;
        log_full += from->log_full;
        end_ps = from->end_ps > end_ps ? from->end_ps : end_ps;
        for (size_t i = 0; i < from->committed && (mode == RDMA || mode == SERVED || mode == SPIN); i++)
            all.transactions[all.count++] = from->transactions[i];
    }
    for (uint32_t of = 0; of < HOSTS; of++) {
        uint64_t busy[MOST_CORES];
        if (!fetch(of_host, cores * share * sizeof *of_host, of, TABLE) || !fetch(busy, sizeof busy, of, HISTORY)) {
            fprintf(stderr, "host %u is dead: its records are lost\n", of);
            dead++;
            continue;
        }
        for (size_t i = 0; i < cores; i++)
            cpu_ps += busy[i];
        for (uint32_t account = of; account < records; account += HOSTS) {
            struct part part = part_of(account);
            final[account] = of_host[part.core * share + part.record].value;
        }
    }
    if (mode == RDMA || mode == SERVED || mode == SPIN)
        problem = judge(&all, INITIAL, final, records, dead > 0);
    if (problem != NULL)
        fail("not serializable: %s", problem);
    if (dead == 0 && committed != clients * count)
        fail("%llu of %zu are done", (unsigned long long)committed, clients * count);
    committed += committed == 0;
    printf("{\"mode\":\"%s\",\"clients\":%zu,\"committed\":%llu,\"aborted\":%llu,\"log_full\":%llu,\"cpu_ps\":%llu,"
           "\"time_ps\":%llu,"
           "\"data_ok\":%s}\n",
           modes[mode], clients, (unsigned long long)committed, (unsigned long long)aborted,
           (unsigned long long)log_full, (unsigned long long)(cpu_ps / committed),
           (unsigned long long)((end_ps - start) / committed), verdict(dead == 0));
}

static void be_client(void) {
    bool is_active = (size_t)rank < HOSTS + clients;
    memset(left, 0, sizeof *left);
    memset(&result, 0, sizeof result);
    history.count = 0;
    random_state = (uint64_t)rank << 20 | clients;
    CHECK(spin_barrier());
    uint64_t start = spin_time_ps();
    if (is_active && (mode == GETS || mode == LOGGED))
        post_gets();
    for (size_t i = 0; i < count && is_active && mode != GETS && mode != LOGGED; i++)
        if (!transact()) {
            result.is_lost = 1;
            break;
        }
    left->end_ps = spin_time_ps();
    for (size_t to = 0; to < HOSTS * cores && is_active && (mode == SERVED || mode == SPIN); to++)
        request(to, (struct request){.kind = STOP});
    left->committed = result.committed;
    left->aborted = result.aborted;
    left->log_full = result.log_full;
    left->is_lost = result.is_lost;
    CHECK(spin_barrier());
    if (rank == JUDGE)
        conclude(start);
    CHECK(spin_barrier());
}

/* Binds memory whose replies are events. */
static ptl_handle_md_t bind_for_replies(void *memory, size_t bytes) {
    ptl_md_t md = {.start = memory,
                   .length = bytes,
                   .options = PTL_MD_EVENT_SEND_DISABLE,
                   .eq_handle = eq,
                   .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

static void prepare_client(void) {
    size_t bytes = sizeof *left + count * sizeof(struct transaction);
    left = allocate(bytes);
    history.transactions = left->transactions;
    seen = allocate(2 * ACCESSES * sizeof *seen);
    told = allocate(HOSTS * cores * ACCESSES * sizeof *told);
    request_slot = allocate(HOSTS * cores * SLOTS * sizeof *request_slot);
    word = allocate(2 * ACCESSES * sizeof *word);
    seen_md = bind_for_replies(seen, ACCESSES * sizeof *seen);
    word_md = bind_for_replies(word, 2 * ACCESSES * sizeof *word);
    write_md = bind_memory(seen + ACCESSES, ACCESSES * sizeof *seen, 0, PTL_CT_NONE);
    request_md = bind_memory(request_slot, HOSTS * cores * SLOTS * sizeof *request_slot, 0, PTL_CT_NONE);
    expect(PT, ANSWER, told, HOSTS * cores * ACCESSES * sizeof *told, PTL_ME_OP_PUT);
    expect(PT, HISTORY, left, bytes, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    mix = (enum mix)choice(option_or(argc, argv, "--mix", mixes[SMALLBANK]), mixes, MIXES, usage);
    const char *list = option(argc, argv, "--clients", usage), *number;
    const struct {
        const char *name;
        size_t *value;
    } numbers[] = {{"--count", &count}, {"--accounts", &accounts}, {"--cores", &cores}, {"--log", &capacity}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if ((number = argument(argc, argv, numbers[i].name)) != NULL && !next_number(&number, numbers[i].value))
            fail("%s: expected a number", numbers[i].name);
    if (count < 1 || accounts < 1 || accounts > 1 << 20 || capacity < 1 || capacity > 1 << 20 ||
        (capacity & (capacity - 1)) != 0)
        fail("--count and --accounts are at least 1, --accounts and --log at most 1,048,576, and --log is a power of "
             "two");
    if (cores < 1 || cores > MOST_CORES)
        fail("--cores: expected 1 to %d", MOST_CORES);
    share = (accounts + cores - 1) / cores;
    rank = spin_rank();
    start(PT, &eq);
    rank < HOSTS ? prepare_host() : prepare_client();
    while (next_number(&list, &clients)) {
        if (clients < 1 || clients > MOST_CLIENTS || HOSTS + clients > (size_t)spin_size())
            fail("--clients: %zu are not 1 to %d, or this needs more ranks", clients, MOST_CLIENTS);
        rank < HOSTS ? be_host() : be_client();
    }
    finish();
    return exit_status;
}
