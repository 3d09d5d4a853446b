/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus (the talk's use case 9): clients change and read numbers that replicas keep by a replicated log.
 *
 *   --mode spin   the cards of the replicas keep the log, count votes and answer; hosts only replace a leader
 *   --mode rdma   the leader's CPU takes the waiting commands, writes them into the logs of the others by one put to each,
 *                 whose acknowledgements are the votes, and answers. The others' CPUs are idle
 *   --mode cpu    the same, but the others' CPUs take the commands and acknowledge, and refuse a deposed leader
 *
 *   --replicas R --requests N   ranks 0 to R-1 are replicas; the others are clients, each with N commands one after the other
 *   --clients C,C,…             measures with C of the clients. Rank R prints a line with a JSON object for each:
 *                               {"mode", "clients", "time_ps", "span_ps", "commands", "data_ok"}: the mean time of a command, and
 *                               from the first to the last answer to rank R. At the end it compares the logs of the replicas,
 *                               which must be equal and contain each command in a majority, and asks a leader without followers,
 *                               which must not answer
 *   --slots N                   commands in the log, a power of two (default: 4,096). A full log refuses commands; with --until
 *                               hosts take snapshots, so that slots are reused
 *   --until MS [--seed S]       all ranks continue until that simulated time, in spite of failures (spin only). Clients work in
 *                               bursts, pause at random, and then give up unanswered commands. Each client prints
 *                               {"client", "history": [[operation, key, value, expected, result, start_ps, end_ps], …]}, where
 *                               result and end are null without an answer, and each replica {"replica", "terms", "lives",
 *                               "chosen": [[term, slot, client, request], …], "snapshots": [[slot, check], …]}: the commands
 *                               reported to its host while its card led, and the snapshots that it made or received.
 *   --pauses US                 with --until: sometimes the host of a replica, not its card, stops for at most this time */
#include "../../common/common.h"
#include <handlers/common/random.h>
#include <handlers/consensus/consensus.h>
#include <inttypes.h>

enum { RESULT = 3, LOG = 4 };                                                         /* portal table indices */
enum { REPLICA = 1, READ_LOG, PROMISES, SNAPSHOTS, REPLIES, APPENDED, ACKNOWLEDGED }; /* match bits */
enum { MOST_SLOTS = 4096, CHOICES = 16384, MAX_REQUESTS = 1000, KEYS = 3 };
enum { HEARTBEAT_MS = 1, PATIENCE_MS = 1 };
enum { MOST_TRIES = 20, WARM_UP = 2 };
enum { GROUPS = 8 }; /* most numbers of clients that are measured */
enum { BURST = 8 };  /* commands between two pauses of a client, and steps between two of a host, on average */

enum mode { SPIN, RDMA, CPU, MODES };
static const char *const modes[MODES] = {"spin", "rdma", "cpu"};
static const char usage[] = "consensus --mode spin|rdma|cpu --replicas R --requests N (--clients C[,C...] | --until MS "
                            "[--seed S] [--pauses US]) [--slots N]";

static uint32_t rank, replicas, requests, slots = MOST_SLOTS;
static enum mode mode;
static uint64_t deadline;  /* end of all ranks */
static uint64_t pauses_ns; /* longest pause of hosts */
static bool lives = true;

/* Returns whether a call that needs the card has worked; such calls fail once the card is dead. */
static bool works(int rc) {
    if (rc != PTL_OK && rc != PTL_CT_NONE_REACHED && rc != PTL_FAIL)
        fail("a call returned %d", rc);
    lives &= rc != PTL_FAIL;
    return rc == PTL_OK;
}

static uint64_t random_state;

/* Waits up to `ms` milliseconds until a counter reaches `number`; `*counted` is its value. */
static bool wait_for(ptl_handle_ct_t ct, ptl_size_t number, ptl_time_t ms, ptl_size_t *counted) {
    ptl_ct_event_t event;
    unsigned which;
    bool reached = works(PtlCTPoll(&ct, &number, 1, ms, &event, &which));
    if (lives && !reached)
        works(PtlCTGet(ct, &event));
    *counted = lives ? event.success : 0;
    return reached;
}

/* ---- Replicas whose cards keep the log --------------------------------------------------------------------------- */

static struct consensus_memory *memory; /* memory of this rank's card, this host's snapshot, the choices */
static struct consensus_host *host;
static struct consensus_promise promises[CONSENSUS_REPLICAS];
static ptl_handle_md_t log_md;
static ptl_handle_ct_t woken, promised, fetched;
static struct consensus_memory *logs; /* fetched logs of all replicas */
static size_t log_bytes;
static uint32_t terms;                                        /* number of terms led by this rank */
static struct consensus_snapshot arrived[CONSENSUS_REPLICAS]; /* received snapshots, by the leader's rank */
static ptl_handle_md_t snapshot_md;
static uint32_t snapshots[CHOICES][2], snapshots_taken; /* slot and check of each that this host has had */

/* A value that the card writes meanwhile. */
static uint32_t told(const uint32_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }

/* Sends a message to a card. The CPU has a ring of them, so that none changes before it has left. */
static void send(uint32_t to, struct consensus_message message) {
    static struct consensus_message outbox[1024];
    static uint32_t next;
    static ptl_handle_md_t md;
    if (next == 0)
        md = bind_memory(outbox, sizeof outbox, 0, PTL_CT_NONE);
    uint32_t place = next++ % 1024;
    message.from = rank;
    outbox[place] = message;
    works(PtlPut(md, place * sizeof message, sizeof message, PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, LOG, REPLICA,
                 0, NULL, 0));
}

/* Appends an entry for other ranks' messages. */
static ptl_handle_me_t open_entry(ptl_match_bits_t bits, void *memory, size_t bytes, unsigned options,
                                  ptl_handle_ct_t ct) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory, .length = bytes, .ct_handle = ct, .uid = PTL_UID_ANY, .match_bits = bits};
    me.match_id.rank = PTL_RANK_ANY;
    me.options = options | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE;
    if (ct != PTL_CT_NONE)
        me.options |= PTL_ME_EVENT_COMM_DISABLE;
    me.hpu_memory = PTL_INVALID_HANDLE;
    CHECK(PtlMEAppend(ni, LOG, &me, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

static ptl_handle_me_t appended; /* the entry by which this replica takes part: it changes the log */

static void open_replica(void) {
    struct consensus state = {
        .bits = REPLICA, .replies = REPLIES, .promises = PROMISES, .rank = rank, .replicas = replicas};
    state.slots = slots;
    state.choices = CHOICES;
    state.quorum = replicas / 2 + 1;
#ifdef QUORUM_OF_ONE /* for the test of the checker */
    state.quorum = 1;
#endif
    size_t bytes = consensus_host_bytes(slots, CHOICES);
    memory = allocate(bytes);
    host = &memory->host;
    logs = allocate(log_bytes * replicas);
    ptl_me_t me = {
        .start = memory, .length = bytes, .uid = PTL_UID_ANY, .match_id.rank = PTL_RANK_ANY, .match_bits = REPLICA};
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
    me.payload_handler = consensus_payload;
    me.completion_handler = consensus_completion;
    me.hpu_initial_state = &state;
    me.hpu_initial_state_length = CONSENSUS_INITIAL_BYTES;
    CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
    CHECK(PtlCTAlloc(ni, &woken));
    CHECK(PtlCTAlloc(ni, &promised));
    CHECK(PtlCTAlloc(ni, &fetched));
    me.ct_handle = woken;
    CHECK(PtlMEAppend(ni, LOG, &me, PTL_PRIORITY_LIST, NULL, &appended));
    open_entry(READ_LOG, memory, log_bytes, PTL_ME_OP_GET, PTL_CT_NONE);
    open_entry(PROMISES, promises, sizeof promises, PTL_ME_OP_PUT, promised);
    open_entry(SNAPSHOTS, arrived, sizeof arrived, PTL_ME_OP_PUT, PTL_CT_NONE);
    snapshot_md = bind_memory(&memory->snapshot, sizeof memory->snapshot, 0, PTL_CT_NONE);
    log_md = bind_memory(logs, log_bytes * replicas, PTL_MD_EVENT_CT_REPLY, fetched);
}

static bool time_left(void) { return lives && spin_time_ps() < deadline; }

/* Collects a majority's promises of a term. Returns the set of these replicas, or 0. */
static uint32_t prepare(uint32_t term) {
    uint32_t quorum = replicas / 2 + 1;
#ifdef QUORUM_OF_ONE
    quorum = 1;
#endif
    ptl_size_t counted;
    memset(promises, 0, sizeof promises);
    wait_for(promised, 0, 0, &counted);
    for (uint32_t to = 0; to < replicas; to++)
        send(to, (struct consensus_message){.kind = CONSENSUS_PREPARE, .term = term});
    for (uint32_t i = 0; i < quorum + 3 && time_left(); i++) {
        uint32_t set = 0, count = 0;
        wait_for(promised, counted + 1, PATIENCE_MS, &counted);
        for (uint32_t from = 0; from < replicas; from++)
            if (promises[from].term == term && promises[from].promised == term) {
                set |= 1u << from;
                count++;
            }
        if (count >= quorum && (set & 1u << rank) != 0)
            return set;
    }
    return 0;
}

/* Fetches the snapshots and logs of a set of replicas. Returns true if all arrive. */
static bool fetch(uint32_t set) {
    ptl_ct_event_t before, after = {0, 0};
    ptl_size_t expected;
    unsigned which;
    if (!works(PtlCTGet(fetched, &before)))
        return false;
    expected = before.success;
    for (uint32_t from = 0; from < replicas; from++)
        if (set >> from & 1) {
            size_t bytes = consensus_host_bytes(promises[from].end < slots ? promises[from].end : slots, 0);
            works(PtlGet(log_md, from * log_bytes, bytes, (ptl_process_t){.rank = from}, LOG, READ_LOG, 0, NULL));
            expected++;
        }
    if (!lives || !works(PtlCTPoll(&fetched, &expected, 1, PATIENCE_MS, &after, &which)) || after.failure != 0) {
        if (lives && after.failure != 0) /* the next try starts counting at 0 */
            works(PtlCTSet(fetched, (ptl_ct_event_t){.success = after.success}));
        return false;
    }
    return true;
}

static const struct consensus_memory *log_of(uint32_t from) {
    return (const struct consensus_memory *)((const char *)logs + from * log_bytes);
}

static const struct consensus_record *record_of(const struct consensus_memory *log, uint32_t slot) {
    return &log->log[slot & (slots - 1)];
}

/* Makes a snapshot that of this host, and lets the card use the slots before it again. */
static void keep(const struct consensus_snapshot *snapshot) {
    spin_host_memory(0, sizeof *snapshot);
    memory->snapshot = *snapshot;
    snapshots[snapshots_taken % CHOICES][0] = snapshot->slot;
    snapshots[snapshots_taken++ % CHOICES][1] = snapshot->check;
    send(rank, (struct consensus_message){.kind = CONSENSUS_TRUNCATE, .slot = snapshot->slot});
}

/* Keeps a snapshot of another host if it is later than the own one and complete. */
static void keep_later(const struct consensus_snapshot *from) {
    struct consensus_snapshot snapshot;
    if (from->slot <= memory->snapshot.slot)
        return;
    spin_host_memory(sizeof *from, 0);
    snapshot = *from;
    if (snapshot.check != consensus_check(&snapshot))
        return;
#ifdef SNAPSHOT_WITHOUT_NUMBERS /* for the test of the checker: the host loses the effects of commands */
    snapshot = memory->snapshot;
    snapshot.slot = from->slot;
    snapshot.check = consensus_check(&snapshot);
#endif
    keep(&snapshot);
}

/* Stops once in `times` calls, like a host with other work; its card continues. */
static void pause_once_in(unsigned times) {
    if (pauses_ns > 0 && random_next(&random_state) % times == 0)
        spin_host_compute(random_next(&random_state) % pauses_ns);
}

/* The leader's host executes chosen commands when they fill a quarter of its log, and sends all replicas the
 * snapshot. It repeats this with every heartbeat, because messages may be lost. */
static void spread_snapshot(uint32_t chosen) {
    struct consensus_snapshot next = memory->snapshot;
    if (chosen >= next.slot + (slots + 3) / 4) {
        spin_host_memory((chosen - next.slot) * sizeof *memory->log, 0);
        for (; next.slot < chosen; next.slot++)
            consensus_execute(&next, &record_of(memory, next.slot)->command);
        next.check = consensus_check(&next);
        keep(&next);
        pause_once_in(BURST); /* its card reuses slots that the other hosts' snapshots do not cover yet */
    }
    for (uint32_t to = 0; to < replicas && next.slot > 0; to++)
        if (to != rank)
            works(PtlPut(snapshot_md, 0, sizeof next, PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, LOG, SNAPSHOTS,
                         rank * sizeof next, NULL, 0));
}

/* Keeps the latest snapshot of the majority, and merges the logs behind it: for each slot the command of the latest term, or
 * none. Returns the end of the slots; the first is that of the snapshot. */
static uint32_t merge(uint32_t set, struct consensus_command *merged) {
    uint32_t end = 0, first;
    for (uint32_t from = 0; from < replicas; from++)
        if (set >> from & 1) {
            end = promises[from].end > end ? promises[from].end : end;
            keep_later(&log_of(from)->snapshot);
        }
    first = memory->snapshot.slot;
    for (uint32_t slot = first; slot < end; slot++) {
        uint32_t latest = 0;
        merged[slot - first] = (struct consensus_command){.operation = CONSENSUS_NOTHING};
        for (uint32_t from = 0; from < replicas; from++) {
            const struct consensus_record *record = record_of(log_of(from), slot);
            if ((set >> from & 1) && slot < promises[from].end && record->slot == slot && record->term > latest) {
                latest = record->term;
                merged[slot - first] = record->command;
            }
        }
    }
    return end > first ? end : first;
}

/* Returns whether the fetched snapshots are consistent: a host may have changed its own meanwhile. */
static bool are_whole(uint32_t set) {
    for (uint32_t from = 0; from < replicas; from++)
        if ((set >> from & 1) && log_of(from)->snapshot.slot > 0 &&
            log_of(from)->snapshot.check != consensus_check(&log_of(from)->snapshot))
            return false;
    return true;
}

/* Makes the own card the leader, which proposes the commands of the majority's logs again. Then sends heartbeats
 * until a later term begins. */
static void lead(uint32_t term, uint32_t set) {
    static struct consensus_command merged[MOST_SLOTS];
    ptl_size_t counted = 0;
    uint32_t end = merge(set, merged), first = memory->snapshot.slot, proposed = first, last = first;
    terms++;
    __atomic_store_n(&host->chosen, first, __ATOMIC_RELEASE);
    send(rank, (struct consensus_message){.kind = CONSENSUS_LEAD, .term = term, .slot = end});
    while (time_left() && told(&host->promised) == term) {
        uint32_t chosen = told(&host->chosen), until = told(&host->end);
        for (uint32_t to = 0; to < replicas; to++)
            if (to != rank)
                send(to, (struct consensus_message){.kind = CONSENSUS_HEARTBEAT, .term = term, .slot = chosen});
        if (chosen == last && chosen < until) /* messages may be lost for good */
            proposed = chosen > first ? chosen : first;
        last = chosen;
        for (; proposed < (end > until ? end : until) && proposed < chosen + CONSENSUS_WINDOW; proposed++) {
            struct consensus_message message = {.kind = CONSENSUS_PROPOSE, .term = term, .slot = proposed};
            const struct consensus_record *own = record_of(memory, proposed);
            message.command = proposed < end ? merged[proposed - first] : own->command;
            if (proposed < end || (own->term == term && own->slot == proposed))
                send(rank, message);
        }
        spread_snapshot(chosen);
        wait_for(woken, counted + (slots + 3) / 4, HEARTBEAT_MS, &counted);
        pause_once_in(BURST);
    }
}

/* A replica's host: follows until the leader is silent, then tries to lead. */
static void replicate(void) {
    uint32_t heard = 0;
    ptl_size_t counted = 0;
    uint64_t silent_since = spin_time_ps(), patience_ps = rank == 0 ? 0 : 3000000000;
    while (time_left()) {
        for (uint32_t from = 0; from < replicas; from++)
            keep_later(&arrived[from]);
        if (told(&host->heard) != heard) {
            heard = told(&host->heard);
            silent_since = spin_time_ps();
            patience_ps = 3000000000 + random_next(&random_state) % 3000000000;
        }
        if (spin_time_ps() - silent_since >= patience_ps) {
            uint32_t term = (told(&host->promised) / replicas + 1) * replicas + rank;
            uint32_t set = prepare(term);
            pause_once_in(2); /* between promises and logs an old leader may still be at work */
            if (set != 0 && fetch(set) && are_whole(set)) {
                pause_once_in(2);
                lead(term, set);
            }
            silent_since = spin_time_ps();
            patience_ps = 3000000000 + random_next(&random_state) % 3000000000;
        } else {
            wait_for(woken, counted + 1, 1, &counted);
            pause_once_in(BURST);
        }
    }
}

static void print_chosen(void) {
    const struct consensus_chosen *chosen = (const void *)&memory->log[slots];
    if (told(&host->told) > CHOICES || snapshots_taken > CHOICES)
        fail("more than %d commands were chosen: use fewer requests", CHOICES);
    printf("{\"replica\":%u,\"terms\":%u,\"lives\":%s,\"chosen\":[", rank, terms, lives ? "true" : "false");
    for (uint32_t i = 0; i < told(&host->told); i++)
        printf("%s[%u,%u,%u,%u]", i > 0 ? "," : "", chosen[i].term, chosen[i].slot, chosen[i].client,
               chosen[i].request);
    printf("],\"snapshots\":[");
    for (uint32_t i = 0; i < snapshots_taken; i++)
        printf("%s[%u,%u]", i > 0 ? "," : "", snapshots[i][0], snapshots[i][1]);
    printf("]}\n");
}

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

struct outcome {
    struct consensus_command command;
    uint64_t result, start, end; /* end 0: no answer */
};
static struct reply *replies;
static ptl_handle_ct_t answered;
static ptl_size_t answers;
static uint32_t leader; /* as assumed by this client */
static struct consensus_message *asked;
static ptl_handle_md_t asked_md;

static void open_client(void) {
    size_t bytes = ((requests + WARM_UP) * GROUPS + 2) * sizeof *replies;
    replies = allocate(bytes);
    asked = allocate(sizeof *asked);
    asked_md = bind_memory(asked, sizeof *asked, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &answered));
    open_entry(REPLIES, replies, bytes, PTL_ME_OP_PUT, answered);
}

/* Executes a command: asks replicas until one answers with the result, or until the deadline. */
static struct outcome ask(struct consensus_command command) {
    struct outcome outcome = {.command = command, .start = spin_time_ps()};
    const volatile struct reply *reply = &replies[command.request];
    *asked = (struct consensus_message){.kind = CONSENSUS_REQUEST, .from = rank, .command = command};
    for (int tries = 0; deadline == 0 ? tries < MOST_TRIES : time_left(); tries++) {
        replies[command.request].status = 0;
        works(PtlPut(asked_md, 0, sizeof *asked, PTL_NO_ACK_REQ, (ptl_process_t){.rank = leader}, LOG, REPLICA,
                     rank * sizeof *asked, NULL, 0));
        bool has_answer = wait_for(answered, answers + 1, PATIENCE_MS, &answers);
        if (reply->status == CONSENSUS_DONE) {
            outcome.end = spin_time_ps();
            outcome.result = reply->value;
            return outcome;
        }
        if (reply->status == CONSENSUS_FULL && deadline == 0)
            fail("the log is full after %u commands: command %u is refused", slots, command.request);
        if (reply->status == CONSENSUS_NOT_LEADER && reply->value != leader)
            leader = (uint32_t)reply->value;
        else if (!has_answer || reply->status == CONSENSUS_NOT_LEADER)
            leader = (leader + 1) % replicas;
        if (has_answer && deadline != 0)
            spin_host_compute(20000);
    }
    return outcome;
}

/* Executes commands at random times until the deadline, and prints their results. */
static void use(void) {
    printf("{\"client\":%u,\"history\":[", rank);
    for (uint32_t i = 1; i <= requests && time_left(); i++) {
        struct consensus_command command = {
            .client = rank, .request = i, .key = (uint32_t)(random_next(&random_state) % KEYS)};
        command.operation = CONSENSUS_READ + (uint32_t)(random_next(&random_state) % 4);
        command.value = random_next(&random_state) % 4;
        command.expected = random_next(&random_state) % 4;
        if (random_next(&random_state) % BURST == 0) /* 150 us for each command on average */
            spin_host_compute(random_next(&random_state) % (300000 * BURST));
        struct outcome outcome = ask(command);
        printf("%s[%u,%u,%" PRIu64 ",%" PRIu64 ",", i > 1 ? "," : "", command.operation, command.key, command.value,
               command.expected);
        if (outcome.end == 0)
            printf("null,%" PRIu64 ",null]", outcome.start);
        else
            printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", outcome.result, outcome.start, outcome.end);
    }
    printf("]}\n");
}

/* ---- Leaders that are CPUs --------------------------------------------------------------------------------------- */

/* A message of the leader's CPU: commands that follow each other in the log. */
enum { BATCH = 64 };
static struct consensus_record *records; /* the log: by slot */
static struct consensus_message inbox[CONSENSUS_CLIENTS];
static ptl_handle_eq_t events;
static ptl_handle_md_t
    records_md[CONSENSUS_REPLICAS]; /* the log, with a counter of acknowledgements for each follower */
static ptl_handle_ct_t acknowledged[CONSENSUS_REPLICAS];

static void open_cpu_replica(void) {
    records = allocate(slots * sizeof *records);
    open_entry(READ_LOG, records, slots * sizeof *records, PTL_ME_OP_GET, PTL_CT_NONE);
    if (rank > 0) {
        if (mode == CPU)
            CHECK(PtlCTAlloc(ni, &woken));
        appended =
            open_entry(APPENDED, records, slots * sizeof *records, PTL_ME_OP_PUT, mode == CPU ? woken : PTL_CT_NONE);
        return;
    }
    for (uint32_t from = 1; from < replicas; from++) {
        CHECK(PtlCTAlloc(ni, &acknowledged[from]));
        records_md[from] = bind_memory(records, slots * sizeof *records, mode == RDMA ? PTL_MD_EVENT_CT_ACK : 0,
                                       mode == RDMA ? acknowledged[from] : PTL_CT_NONE);
        if (mode == CPU)
            open_entry(ACKNOWLEDGED + from, NULL, 0, PTL_ME_OP_PUT, acknowledged[from]);
    }
    open_entry(REPLICA, inbox, sizeof inbox, PTL_ME_OP_PUT, PTL_CT_NONE);
}

/* Carries out a command and answers the client, as consensus_apply does. */
static void carry_out(const struct consensus_command *command) {
    static uint64_t numbers[CONSENSUS_KEYS];
    static struct reply outbox[BATCH];
    static ptl_handle_md_t outbox_md;
    static uint32_t place;
    if (place == 0)
        outbox_md = bind_memory(outbox, sizeof outbox, 0, PTL_CT_NONE);
    struct reply *reply = &outbox[place++ % BATCH];
    *reply = (struct reply){command->request, CONSENSUS_DONE, numbers[command->key]};
    numbers[command->key] += command->value;
    works(PtlPut(outbox_md, (size_t)(reply - outbox) * sizeof *reply, sizeof *reply, PTL_NO_ACK_REQ,
                 (ptl_process_t){.rank = command->client}, LOG, REPLIES, command->request * sizeof *reply, NULL, 0));
}

/* Waits until enough followers have acknowledged to be a majority with the leader. */
static bool has_majority(ptl_size_t batches) {
    ptl_handle_ct_t waiting[CONSENSUS_REPLICAS];
    ptl_size_t tests[CONSENSUS_REPLICAS];
    uint32_t count = replicas - 1, votes = 0;
    for (uint32_t i = 0; i < count; i++) {
        waiting[i] = acknowledged[i + 1];
        tests[i] = batches;
    }
    while (votes < replicas / 2) {
        ptl_ct_event_t event;
        unsigned which;
        if (count == 0 || !works(PtlCTPoll(waiting, tests, count, MOST_TRIES * PATIENCE_MS, &event, &which)))
            return false;
        votes += event.success >= batches;
        waiting[which] = waiting[--count]; /* it has voted, or failed */
    }
    return true;
}

/* The leader's CPU: takes all waiting commands, replicates them together, and answers when a majority has them. */
static void serve(uint32_t commands) {
    static uint32_t next; /* the first free slot */
    static ptl_size_t batches;
    uint32_t end = next + commands;
    unsigned which;
    if (end > slots)
        fail("%u commands do not fit into a log of %u slots", end, slots);
    while (next < end) {
        uint32_t first = next;
        ptl_event_t event;
        int rc = PtlEQPoll(&events, 1, MOST_TRIES * PATIENCE_MS, &event, &which);
        for (; rc == PTL_OK; rc = next - first < BATCH && next < end ? PtlEQGet(events, &event) : PTL_EQ_EMPTY)
            if (event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK && event.match_bits == REPLICA) {
                records[next] = (struct consensus_record){.term = 1, .slot = next};
                records[next++].command = inbox[event.remote_offset / sizeof *inbox].command;
            }
        if (rc != PTL_EQ_EMPTY)
            works(rc);
        if (next == first)
            break; /* no more requests */
        for (uint32_t to = 1; to < replicas; to++)
            works(PtlPut(records_md[to], first * sizeof *records, (next - first) * sizeof *records,
                         mode == RDMA ? PTL_CT_ACK_REQ : PTL_NO_ACK_REQ, (ptl_process_t){.rank = to}, LOG, APPENDED,
                         first * sizeof *records, NULL, next));
        if (!has_majority(++batches))
            break;
        for (uint32_t slot = first; slot < next; slot++)
            carry_out(&records[slot].command);
    }
}

/* A follower's CPU: looks at each batch, and acknowledges it if it has promised no later term. */
static void follow(uint32_t commands) {
    static ptl_size_t seen;
    static uint32_t slot; /* the first that is empty */
    ptl_handle_md_t md = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    uint32_t end = slot + commands, promised_term = 1;
    while (slot < end && wait_for(woken, seen + 1, MOST_TRIES * PATIENCE_MS, &(ptl_size_t){0})) {
        seen++;
        while (slot < end && records[slot].term >= promised_term)
            slot++;
        works(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, LOG, ACKNOWLEDGED + rank, 0, NULL, 0));
    }
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

/* Sums of the first client over all clients. */
static struct sums {
    uint64_t time, results, unanswered, end;
} sums;
static ptl_handle_md_t sums_md;
static ptl_handle_ct_t reported;

/* One client's part with `requests` commands; request numbers continue from group to group. */
static void measure_client(uint32_t group, uint64_t begun) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < requests + WARM_UP; i++) {
        struct consensus_command command = {
            .client = rank, .request = group * (requests + WARM_UP) + i + 1, .value = 1};
        command.operation = CONSENSUS_ADD;
        struct outcome outcome = ask(command);
        if (outcome.end == 0) {
            sums.unanswered += requests + WARM_UP - i;
            break;
        }
        if (i > 0 && outcome.result <= last)
            fail("command %u has the result %" PRIu64 " after %" PRIu64, i, outcome.result, last);
        last = outcome.result;
        sums.results += outcome.result;
        sums.time += i < WARM_UP ? 0 : outcome.end - outcome.start;
    }
    sums.end = spin_time_ps() - begun;
}

/* Fetches the log of a replica; a dead one leaves it empty. */
static void fetch_log(uint32_t from, struct consensus_record *log) {
    ptl_handle_ct_t come;
    CHECK(PtlCTAlloc(ni, &come));
    ptl_handle_md_t md = bind_memory(log, slots * sizeof *log, PTL_MD_EVENT_CT_REPLY, come);
    works(PtlGet(md, 0, slots * sizeof *log, (ptl_process_t){.rank = from}, LOG, READ_LOG,
                 mode == SPIN ? offsetof(struct consensus_memory, log) : 0, NULL));
    wait_for(come, 1, MOST_TRIES * PATIENCE_MS, &(ptl_size_t){0});
}

/* Returns true if the logs of the replicas agree in each slot, and a majority of them has each of this many commands. */
static bool logs_agree(uint64_t commands) {
    static bool is_chosen[CONSENSUS_CLIENTS][(MAX_REQUESTS + WARM_UP) * GROUPS + 1];
    struct consensus_record *fetched_logs = allocate(replicas * slots * sizeof *fetched_logs);
    uint64_t chosen = 0;
    for (uint32_t from = 0; from < replicas; from++)
        fetch_log(from, fetched_logs + (size_t)from * slots);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const struct consensus_command *command = NULL;
        uint32_t count = 0, first = 0;
        for (uint32_t from = 0; from < replicas; from++) {
            const struct consensus_record *record = &fetched_logs[(size_t)from * slots + slot];
            if (record->term == 0)
                continue;
            if (count++ == 0) {
                command = &record->command;
                first = from;
            } else if (memcmp(command, &record->command, sizeof *command) != 0) {
                fprintf(stderr, "slot %u: replicas %u and %u have different commands\n", slot, first, from);
                return false;
            }
        }
        if (count > replicas / 2 && command->operation != CONSENSUS_NOTHING) {
            bool *is_known = &is_chosen[command->client][command->request];
            chosen += !*is_known;
            *is_known = true;
        }
    }
    if (chosen < commands)
        fprintf(stderr, "a majority of the replicas has %" PRIu64 " of the %" PRIu64 " commands that were answered\n",
                chosen, commands);
    free(fetched_logs);
    return chosen == commands;
}

/* Excludes all replicas except the leader, and lets a client ask it. Returns true if it answers, which only a
 * majority may. */
static bool answers_alone(uint32_t request) {
    bool is_follower = rank > 0 && rank < replicas;
    if (is_follower && works(PtlMEUnlink(appended)))
        open_entry(mode == SPIN ? REPLICA : APPENDED, allocate(log_bytes), log_bytes,
                   PTL_ME_OP_PUT | PTL_ME_ACK_DISABLE | PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE);
    CHECK(spin_barrier());
    if (rank == 0 && mode != SPIN)
        serve(1);
    if (rank != replicas)
        return false;
    *asked = (struct consensus_message){.kind = CONSENSUS_REQUEST, .from = rank};
    asked->command =
        (struct consensus_command){.client = rank, .request = request, .operation = CONSENSUS_ADD, .value = 1};
    works(PtlPut(asked_md, 0, sizeof *asked, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, LOG, REPLICA,
                 rank * sizeof *asked, NULL, 0));
    wait_for(answered, answers + 1, PATIENCE_MS, &answers);
    bool is_done = replies[request].status == CONSENSUS_DONE;
    if (is_done)
        fprintf(stderr, "the leader answers without a majority of the replicas\n");
    return is_done;
}

static void measure(const char *list) {
    static struct point {
        size_t clients;
        uint64_t time, span;
        uint32_t commands;
        bool is_right;
    } points[GROUPS];
    size_t clients;
    uint64_t done = 0;
    uint32_t groups = 0;
    ptl_size_t reports = 0, counted;
    bool are_right = true;
    for (; next_number(&list, &clients); groups++) {
        if (clients < 1 || clients > (size_t)spin_size() - replicas || groups == GROUPS)
            fail("--clients: expected at most %d numbers of at most %d clients", GROUPS, spin_size() - (int)replicas);
        uint32_t commands = (uint32_t)clients * (requests + WARM_UP);
        bool takes_part = rank >= replicas && rank < replicas + clients;
        sums = (struct sums){0};
        CHECK(spin_barrier());
        if (rank == 0 && mode != SPIN)
            serve(commands);
        else if (rank < replicas && mode == CPU)
            follow(commands);
        else if (takes_part)
            measure_client(groups, spin_time_ps());
        CHECK(spin_barrier());
        if (takes_part && rank > replicas) {
            ptl_process_t to = {.rank = replicas};
            works(PtlAtomic(sums_md, 0, offsetof(struct sums, end), PTL_NO_ACK_REQ, to, RESULT, 0, 0, NULL, 0, PTL_SUM,
                            PTL_UINT64_T));
            works(PtlAtomic(sums_md, offsetof(struct sums, end), sizeof sums.end, PTL_NO_ACK_REQ, to, RESULT, 0,
                            offsetof(struct sums, end), NULL, 0, PTL_MAX, PTL_UINT64_T));
        }
        if (rank == replicas) {
            bool all = wait_for(reported, reports += 2 * (clients - 1), PATIENCE_MS, &counted) && sums.unanswered == 0;
            /* Each command adds 1, so all results are different, from `done` on. */
            bool right = all && sums.results == (2 * done + commands - 1) * commands / 2;
            if (all && !right)
                fail("the results of %u commands add up to %" PRIu64, commands, sums.results);
            points[groups] = (struct point){clients, sums.time / (clients * requests), sums.end, commands, right};
            are_right = are_right && right;
        }
        done += commands;
        CHECK(spin_barrier()); /* the sums have left */
    }
    if (rank == replicas && are_right)
        are_right = logs_agree(done);
    CHECK(spin_barrier());
    if (done < slots)
        are_right &= !answers_alone((requests + WARM_UP) * GROUPS + 1);
    for (uint32_t i = 0; i < groups && rank == replicas; i++)
        printf("{\"mode\":\"%s\",\"clients\":%zu,\"time_ps\":%" PRIu64 ",\"span_ps\":%" PRIu64
               ",\"commands\":%u,\"data_ok\":%s}\n",
               modes[mode], points[i].clients, points[i].time, points[i].span, points[i].commands,
               verdict(are_right && points[i].is_right));
}

int main(int argc, char **argv) {
    const char *count = option(argc, argv, "--replicas", usage), *number = option(argc, argv, "--requests", usage);
    const char *until = argument(argc, argv, "--until"), *seed = option_or(argc, argv, "--seed", "1");
    const char *room = option_or(argc, argv, "--slots", "4096"), *pauses = option_or(argc, argv, "--pauses", "0");
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    size_t value;
    start(RESULT, NULL);
    rank = (uint32_t)spin_rank();
    if (!next_number(&count, &value) || value < 1 || value > CONSENSUS_REPLICAS || value >= (size_t)spin_size() ||
        spin_size() > CONSENSUS_CLIENTS)
        fail("--replicas: expected 1 to %d, of at most %d ranks that are not all replicas", CONSENSUS_REPLICAS,
             CONSENSUS_CLIENTS);
    replicas = (uint32_t)value;
    if (!next_number(&number, &value) || value < 1 || value > MAX_REQUESTS)
        fail("--requests: expected 1 to %d", MAX_REQUESTS);
    requests = (uint32_t)value;
    if (!next_number(&room, &value) || value < 1 || value > MOST_SLOTS || (value & (value - 1)) != 0)
        fail("--slots: expected a power of two, at most %d", MOST_SLOTS);
    slots = (uint32_t)value;
    log_bytes = consensus_host_bytes(slots, 0);
    if (next_number(&pauses, &value))
        pauses_ns = value * 1000;
    if (next_number(&seed, &value))
        random_state = value * 1000003 + rank;
    CHECK(PtlEQAlloc(ni, 4096, &events));
    CHECK(PtlPTAlloc(ni, 0, events, LOG, &(ptl_pt_index_t){0}));
    CHECK(PtlCTAlloc(ni, &reported));
    sums_md = bind_memory(&sums, sizeof sums, 0, PTL_CT_NONE);
    append_entry(RESULT, 0, &sums, sizeof sums, (ptl_me_t){.ct_handle = reported, .hpu_memory = PTL_INVALID_HANDLE});
    if (rank >= replicas)
        open_client();
    else if (mode == SPIN)
        open_replica();
    else
        open_cpu_replica();
    CHECK(spin_barrier());
    if (until != NULL) {
        if (mode != SPIN || !next_number(&until, &value) || value == 0)
            fail("--until: expected milliseconds, and --mode spin");
        deadline = value * 1000000000;
        if (rank < replicas)
            replicate();
        else
            use();
        CHECK(spin_barrier());
        spin_host_compute(1000000); /* messages in flight have arrived */
        if (rank < replicas)
            print_chosen();
    } else {
        if (mode == SPIN && rank == 0) {
            uint32_t set;
            deadline = ~0ull;
            if ((set = prepare(replicas)) == 0)
                fprintf(stderr, "no majority of the %u replicas answers\n", replicas);
            else
                send(rank, (struct consensus_message){.kind = CONSENSUS_LEAD, .term = replicas});
            deadline = 0;
        }
        CHECK(spin_barrier());
        measure(option(argc, argv, "--clients", usage));
    }
    fflush(stdout);
    CHECK(spin_barrier());
    return exit_status;
}
