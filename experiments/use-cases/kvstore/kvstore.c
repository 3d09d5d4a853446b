/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store (sPIN §5.4): the first ranks are servers, each other rank is a client.
 *
 *   --mode spin          handlers on the servers' cards serve the requests, and hand long ones to the CPU
 *   --mode cpu           --cores N cores of the server serve them (1)
 *   --mode rdma          one-sided: clients get and swap words of the index, get and put items
 *   --ranks N,N,…        numbers of participating ranks, servers included (all)
 *   --mixes N,N,…        mixes of operations: 1 to 6 are A to F of YCSB (1), 7 has all operations (ycsb.h)
 *   --thetas N,N,…       exponents of Zipf's distribution, in hundredths (99)
 *   --operations N       operations of each client (100)
 *   --records N          initial records, a power of two (1024)
 *   --value N            bytes of a value (64)
 *   --index host|card    place of the index (host)
 *   --levels N,N         the index begins with 2^N chains and has at most 2^N (6,12)
 *   --steps N            the most steps of a handler (8)
 *   --queued N           most requests in the queue to the CPU, a power of two (256)
 *   --slots N            of a server (16384)
 *   --servers N          (1)
 *   --history PREFIX     every client writes its operations to PREFIX.RANK, for linearizability.py
 *
 * The lists advance together: a round has the next number of each, or the last one again.
 *
 * A client without answers reports this, and its remaining operations count as lost. */
#include "client.h"
#include "server.h"
#include "ycsb.h"

enum { MOST_OPERATIONS = 4096 };
static const char usage[] =
    "kvstore --mode rdma|cpu|spin [--cores N] [--ranks N,N,...] [--mixes N,N,...] [--thetas N,N,...] [--operations N] "
    "[--records N] "
    "[--value N] [--index host|card] [--levels N,N] [--steps N] [--queued N] [--slots N] [--servers N] [--history "
    "PREFIX]";

/* Results of a client, sent to rank 0. */
struct report {
    uint64_t came, from_ps, to_ps, retries;
    uint32_t done, lost, missing;
    uint32_t took_ns[MOST_OPERATIONS]; /* in units of 1/16 ns */
};

static const struct ycsb_mix *mix;
static uint32_t operations = 100, records = 1024;
static double *zipf;
static FILE *history;
static uint64_t random_state, writes;
static uint32_t inserted, missing; /* records of this client; those that should be there and were not found */
static struct balance *balances;   /* on a server: of all clients */
static struct report *reports;     /* on rank 0: of all clients; on a client: its own */

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static void note(enum kv_operation operation, uint64_t record, uint64_t id, uint64_t from, int status) {
    static const char *const names[] = {"get", "insert", "update", "delete"};
    if (history != NULL &&
        fprintf(history, "%d %s %llu %llu %llu %llu %d\n", rank, names[operation], (unsigned long long)record,
                (unsigned long long)id, (unsigned long long)from, (unsigned long long)spin_time_ps(), status) < 0)
        fail("cannot write the history");
}

/* Does one operation, and writes it down: before, as if its answer were lost, and after it. */
static int perform(enum kv_operation operation, uint64_t record) {
    uint64_t id = (uint64_t)(rank + 1) << 32 | ++writes, from = spin_time_ps();
    note(operation, record, id, from, KV_LOST);
    int status = operate(operation, record, &id);
    note(operation, record, id, from, status);
    if (status == KV_TOO_LARGE || status == KV_FULL)
        fail(status == KV_FULL ? "the store is full: give it more --slots" : "the value is too large");
    return status;
}

/* Record number `i` of the clients' inserts is the one of client i modulo their number. */
static uint64_t next_insert(void) {
    return records + (uint64_t)inserted++ * (uint64_t)all_clients + (uint64_t)client.number;
}

static uint64_t choose(void) {
    uint32_t at = ycsb_rank(zipf, records, &random_state);
    if (mix->latest) {
        if (at < inserted)
            return records + (uint64_t)(inserted - 1 - at) * (uint64_t)all_clients + (uint64_t)client.number;
        return records - 1 - (at - inserted) % records;
    }
    return at * 2654435761u % records; /* frequent records are everywhere; `records` is a power of two */
}

/* One operation of the mix. Returns whether it is done; one that must succeed ends the program if it does not. */
static bool work(void) {
    enum ycsb_kind kind = ycsb_kind(mix, &random_state);
    bool is_mixed = mix->percent[YCSB_DELETE] > 0; /* records are inserted and deleted */
    uint64_t record = kind == YCSB_INSERT && !is_mixed ? next_insert() : choose();
    uint32_t length = kind == YCSB_SCAN ? 1 + (uint32_t)(random_next(&random_state) % YCSB_LONGEST) : 1;
    int status = KV_OK;
    switch (kind) {
    case YCSB_UPDATE: status = perform(KV_UPDATE, record); break;
    case YCSB_INSERT: status = perform(KV_INSERT, record); break;
    case YCSB_DELETE: status = perform(KV_DELETE, record); break;
    case YCSB_MODIFY:
        status = perform(KV_GET, record);
        if (status == KV_OK)
            status = perform(KV_UPDATE, record);
        break;
    default:
        for (uint32_t i = 0; i < length && status == KV_OK; i++)
            status = perform(KV_GET, (record + i) % records);
    }
    missing += status == KV_MISSING && !is_mixed;
    if (status != KV_OK && status != KV_MISSING && status != KV_LOST && !is_mixed)
        fail("record %llu: status %d", (unsigned long long)record, status);
    return status != KV_LOST;
}

/* The clients insert the initial records. */
static void load(void) {
    for (uint32_t i = (uint32_t)client.number; i < records && !client.is_alone; i += (uint32_t)all_clients)
        if (perform(KV_INSERT, i) != KV_OK && !client.is_alone)
            fail("record %u cannot be inserted", i);
}

static void measure(struct report *report) {
    report->from_ps = spin_time_ps();
    report->done = report->lost = 0;
    for (uint32_t i = 0; i < operations; i++) {
        uint64_t from = spin_time_ps();
        if (client.is_alone || !work())
            report->lost++;
        else
            report->took_ns[report->done++] = (uint32_t)((spin_time_ps() - from) * 16 / 1000);
    }
    report->to_ps = spin_time_ps();
    if (report->lost > 0)
        fprintf(stderr, "rank %d: a server does not answer: %u of %u operations are lost\n", rank, report->lost,
                operations);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static void send_report(struct report *report) {
    report->came = 1;
    report->missing = missing;
    report->retries = client.retries;
    tell(0, REPORT, report, sizeof *report);
}

static void send_balance(void) {
    for (int i = 0; i < servers; i++) {
        client.servers[i].balance.is_known = !client.is_alone;
        tell(i, BALANCE, &client.servers[i].balance, sizeof(struct balance));
    }
}

/* Compares the records of this server with those reported by the clients. */
static void check_balance(void) {
    int64_t expected = 0, count = count_records();
    for (int i = 0; i < all_clients; i++) {
        if (!balances[i].is_known)
            return;
        expected += balances[i].records;
    }
    if (count >= 0 && count != expected)
        fail("the store has %lld records, not %lld", (long long)count, (long long)expected);
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Prints the reports of `count` clients. */
static void print(size_t count, size_t theta, uint64_t busy_ps, uint64_t served) {
    uint64_t from = UINT64_MAX, to = 0, done = 0, lost = 0, absent = 0, retries = 0;
    uint32_t *took = allocate(count * operations * sizeof *took);
    for (size_t i = 0; i < count; i++) {
        struct report *report = &reports[i];
        if (!report->came) {
            fprintf(stderr, "rank %zu does not report: its %u operations are lost\n", i + (size_t)servers, operations);
            lost += operations;
            continue;
        }
        from = report->from_ps < from ? report->from_ps : from;
        to = report->to_ps > to ? report->to_ps : to;
        memcpy(took + done, report->took_ns, report->done * sizeof *took);
        done += report->done;
        lost += report->lost;
        absent += report->missing;
        retries += report->retries;
        report->came = 0;
    }
    if (done == 0)
        fail("no operation is done");
    if (absent > 0 && lost == 0)
        fail("%llu operations found no record, which nobody has lost", (unsigned long long)absent);
    if (absent > 0)
        fprintf(stderr, "%llu operations found no record: a lost client has not inserted it\n",
                (unsigned long long)absent);
    qsort(took, done, sizeof *took, compare);
    printf("{\"ranks\":%zu,\"mix\":%d,\"theta\":%zu,\"time_ps\":%llu,\"p50_ps\":%llu,\"p99_ps\":%llu,\"cpu_ps\":%llu,"
           "\"served\":%llu,"
           "\"done\":%llu,\"lost\":%llu,\"retries\":%llu,\"data_ok\":%s}\n",
           count + (size_t)servers, (int)(mix - ycsb_mixes) + 1, theta, (unsigned long long)((to - from) / done),
           took[done / 2] * 1000ull / 16, took[done * 99 / 100] * 1000ull / 16, (unsigned long long)(busy_ps / done),
           (unsigned long long)served, (unsigned long long)done, (unsigned long long)lost, (unsigned long long)retries,
           verdict(lost == 0));
    free(took);
}

/* Counters of the cores of this server. */
static void cpu(uint64_t *busy_ps, uint64_t *served) {
    *busy_ps = *served = 0;
    for (uint32_t i = 0; i < core_count; i++) {
        *busy_ps += cores[i].busy_ps;
        *served += cores[i].host.served;
    }
}

static uint32_t number(int argc, char **argv, const char *name, uint32_t otherwise, uint32_t least, uint32_t most) {
    const char *text = argument(argc, argv, name);
    size_t value = otherwise;
    if (text != NULL && (!next_number(&text, &value) || *text != '\0' || value < least || value > most)) {
        fprintf(stderr, "%s: expected a number from %u to %u\n", name, least, most);
        exit(2);
    }
    return (uint32_t)value;
}

static void read_arguments(int argc, char **argv) {
    static const char *const places[] = {"host", "card"};
    const char *range = argument(argc, argv, "--levels");
    size_t first, last;
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    index_on_card = choice(option_or(argc, argv, "--index", "host"), places, 2, usage) == 1;
    operations = number(argc, argv, "--operations", operations, 1, MOST_OPERATIONS);
    records = number(argc, argv, "--records", records, 1, 1 << 20);
    value_bytes = number(argc, argv, "--value", value_bytes, 8, 1 << 20);
    steps = number(argc, argv, "--steps", steps, 1, 1000);
    queued = number(argc, argv, "--queued", queued, 1, 1 << 16);
    slots = number(argc, argv, "--slots", slots, 1, 1 << 20);
    core_count = number(argc, argv, "--cores", core_count, 1, MOST_CORES);
    servers = (int)number(argc, argv, "--servers", 1, 1, 64);
    all_clients = spin_size() - servers;
    slot_bytes = (uint32_t)((sizeof(struct kv_item) + value_bytes + KV_TAIL + 7) & ~(size_t)7);
    if (range != NULL) {
        if (!next_number(&range, &first) || !next_number(&range, &last) || *range != '\0' || first < 3 ||
            first > last || last > 20) {
            fprintf(stderr, "--levels: expected two numbers from 3 to 20\n");
            exit(2);
        }
        level = (uint32_t)first;
        levels = (uint32_t)last;
    }
    if ((records & (records - 1)) != 0 || (core_count & (core_count - 1)) != 0 || (queued & (queued - 1)) != 0) {
        fprintf(stderr, "--records, --cores and --queued: expected powers of two\n");
        exit(2);
    }
    if (all_clients < 1 || all_clients > KV_CLIENTS)
        fail("this needs 1 to %d ranks more than servers", KV_CLIENTS);
}

/* Measures one round. */
static void run(size_t ranks, size_t number, size_t theta) {
    uint64_t busy, busy_before, served, served_before;
    size_t count = ranks - (size_t)servers;
    bool serves = rank < servers;
    if (ranks <= (size_t)servers || count > (size_t)all_clients || number < 1 || number > YCSB_MIXES || theta > 1000) {
        fprintf(stderr, "expected --ranks from %d to %d, --mixes from 1 to %d, --thetas up to 1000\n", servers + 1,
                servers + all_clients, YCSB_MIXES);
        exit(2);
    }
    mix = &ycsb_mixes[number - 1];
    zipf = ycsb_zipf(records, (double)theta / 100);
    CHECK(spin_barrier());
    cpu(&busy_before, &served_before);
    if (serves) {
        serve_round(core_count);
    } else if ((size_t)client.number < count) {
        measure(reports);
        send_report(reports);
    }
    CHECK(spin_barrier());
    cpu(&busy, &served);
    if (rank == 0)
        print(count, theta, busy - busy_before, served - served_before);
    free(zipf);
}

int main(int argc, char **argv) {
    size_t ranks = (size_t)spin_size(), number = 1, theta = 99;
    const char *prefix = argument(argc, argv, "--history");
    read_arguments(argc, argv);
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    CHECK(spin_set_map(ni));
    rank = spin_rank();
    bool serves = rank < servers;
    random_state = (uint64_t)rank;
    reports = allocate((serves ? (size_t)all_clients : 1) * sizeof *reports);
    balances = allocate((size_t)all_clients * sizeof *balances);
    if (serves)
        start_server();
    else
        start_client();
    for (int i = 0; i < all_clients && serves; i++)
        accept(PT, BALANCE + (ptl_match_bits_t)i, &balances[i], sizeof *balances, PTL_ME_EVENT_COMM_DISABLE);
    for (int i = 0; i < all_clients && rank == 0; i++)
        accept(PT, REPORT + (ptl_match_bits_t)i, &reports[i], sizeof *reports, PTL_ME_EVENT_COMM_DISABLE);
    if (prefix != NULL && !serves) {
        char *name = allocate(strlen(prefix) + 16);
        sprintf(name, "%s.%d", prefix, rank);
        history = fopen(name, "w");
        if (history == NULL)
            fail("cannot write %s", name);
        setvbuf(history, NULL, _IOLBF, 0);
    }
    CHECK(spin_barrier());
    if (serves)
        serve_round(1);
    else
        load();
    client.cores = core_count;

    const char *of_ranks = argument(argc, argv, "--ranks"), *of_mixes = argument(argc, argv, "--mixes");
    const char *of_thetas = argument(argc, argv, "--thetas");
    for (bool is_first = true;; is_first = false) {
        bool more = of_ranks != NULL && next_number(&of_ranks, &ranks);
        more |= of_mixes != NULL && next_number(&of_mixes, &number);
        more |= of_thetas != NULL && next_number(&of_thetas, &theta);
        if (!more && !(is_first && of_ranks == NULL && of_mixes == NULL && of_thetas == NULL))
            break;
        run(ranks, number, theta);
    }

    if (history != NULL && fclose(history) != 0)
        fail("cannot write the history");
    if (!serves)
        send_balance();
    CHECK(spin_barrier());
    if (serves)
        check_balance();
    CHECK(spin_barrier());
    finish();
    return exit_status;
}
