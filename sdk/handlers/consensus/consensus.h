/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus: a replicated log on the cards, and a table of numbers maintained by the leader's card (talk, use case 9).
 *
 * The protocol is Multi-Paxos. A term belongs to one replica (term modulo the number of replicas) and is used for one
 * leadership. The leader's card assigns a slot of the log to a client's command and sends it to the other replicas'
 * cards; each writes it to its host's memory, unless it promised a later term, and acknowledges. When a majority has
 * it, the command is chosen: the leader's card executes the commands in slot order, answers the clients and notifies
 * its host. CPUs handle only rare events: they detect that the leader is silent, have a majority promise a new term,
 * read the logs of this majority, and have their card propose the logged commands again. After the promise, the card of
 * the old leader gets no majority: it is fenced.
 *
 * The log is a ring. A host that takes a snapshot of the numbers, which covers only chosen commands, notifies its card:
 * the slots of these commands are reused. So a card accepts a command for a slot only if its own host's snapshot covers
 * the old contents. In any majority some replica has a chosen command in its log or snapshot, and a new leader takes
 * the latest snapshot of its majority, and then the logs.
 *
 * Every message is one packet, and causes no event at a host. One handler at a time works on the state of a card: the
 * others queue their messages for it, so that no HPU waits for another. */
#ifndef HANDLERS_CONSENSUS_H
#define HANDLERS_CONSENSUS_H

#include <handlers/common/lock.h>
#include <handlers/common/reply.h>
#include <spin.h>
#include <string.h>

enum consensus_kind {
    CONSENSUS_REQUEST = 1, /* client to leader: a command */
    CONSENSUS_APPEND,      /* leader to replica: a command for a slot */
    CONSENSUS_ACCEPTED,    /* replica to leader: it is in the log */
    CONSENSUS_REFUSED,     /* replica to leader: a later term was promised */
    CONSENSUS_PREPARE,     /* host of a candidate to all cards: promise this term */
    CONSENSUS_LEAD,        /* host to its own card: a majority promised; start from the snapshot in host memory, and
                              propose again the slots before `slot` */
    CONSENSUS_PROPOSE,     /* host to its own card: a command for a slot, as in the logs of the majority */
    CONSENSUS_HEARTBEAT,   /* host of the leader to all other cards */
    CONSENSUS_TRUNCATE,    /* host to its own card: its snapshot covers the commands before `slot` */
    CONSENSUS_GO_ON        /* card to itself: messages are queued */
};

enum consensus_operation { CONSENSUS_NOTHING, CONSENSUS_READ, CONSENSUS_WRITE, CONSENSUS_ADD, CONSENSUS_SWAP };

struct consensus_command {
    uint32_t client, request; /* client process, and its number of the command, from 1 */
    uint32_t operation, key;
    uint64_t value, expected; /* SWAP writes `value` if the number is `expected` */
};

struct consensus_message {
    uint32_t kind, term, slot, from;
    struct consensus_command command;
};

enum { CONSENSUS_REPLICAS = 8, CONSENSUS_CLIENTS = 64, CONSENSUS_KEYS = 64 }; /* limits */
enum { CONSENSUS_WINDOW = 128 }; /* commands proposed and not chosen, a power of two */
enum {
    CONSENSUS_INBOX = 256,
    CONSENSUS_TURN = 64
}; /* queued messages, a power of two; limit of messages per handler */

/* Status for a client; the value of DONE is the number before the command, of NOT_LEADER the replica to ask. */
enum consensus_status { CONSENSUS_DONE = 1, CONSENSUS_NOT_LEADER, CONSENSUS_BUSY, CONSENSUS_FULL };

/* In host memory: the log, and the card's reports. */
struct consensus_record {
    uint32_t term, slot; /* term 0: empty */
    struct consensus_command command;
};
struct consensus_chosen {
    uint32_t term, slot, client, request;
};
struct consensus_session {
    uint32_t request, unused; /* the last executed one, so that none is executed twice */
    uint64_t result;
};
/* State of the numbers after the commands before a slot. */
struct consensus_snapshot {
    uint32_t slot;
    uint32_t check; /* consensus_check of the rest, because hosts copy snapshots while others read them */
    struct consensus_session sessions[CONSENSUS_CLIENTS];
    uint64_t numbers[CONSENSUS_KEYS];
};
struct consensus_host {
    uint32_t promised; /* latest term promised by the card */
    uint32_t end;      /* slots from here on are empty */
    uint32_t heard;    /* messages of leaders */
    uint32_t chosen;   /* on the leader: slots before this one are chosen and executed */
    uint32_t told;     /* records of choices, stored after the log; they wrap around */
    uint32_t base;     /* slots before this one are in the host's snapshot, and may be reused */
};
struct consensus_memory {
    struct consensus_host host;         /* written by the card */
    struct consensus_snapshot snapshot; /* written by the host */
    struct consensus_record log[];      /* slot s is at index s modulo the number of slots; then the choices */
};

/* In host memory of a candidate, one per replica: its answer to PREPARE. */
struct consensus_promise {
    uint32_t term;     /* requested term */
    uint32_t promised; /* the same, or a later one promised before */
    uint32_t end;
    uint32_t base;
};

struct consensus_proposal {
    uint32_t votes; /* a bit for each replica */
    uint32_t unused;
    struct consensus_command command;
};

struct consensus_waiting {
    uint32_t is_there, unused;
    struct consensus_message message;
};

/* HPU memory of the entry; the host sets the first part, up to `lock`. */
struct consensus {
    ptl_match_bits_t bits, replies,
        promises;            /* match bits of this entry, of clients' replies, of candidates' promises */
    uint32_t rank, replicas; /* this process; replicas are processes 0 to replicas - 1 */
    uint32_t slots, choices; /* slots of the log, and records of choices after it: powers of two */
    uint32_t quorum;         /* more than half of the replicas */
    uint32_t lock;
    struct consensus_host host; /* as last written to host memory */
    uint32_t leading;           /* term led by this card, or 0 */
    uint32_t next;              /* the first free slot */
    uint32_t recovered;         /* requests wait until the slots before this one are chosen */
    struct consensus_proposal proposals[CONSENSUS_WINDOW];
    struct consensus_snapshot now; /* numbers after all chosen commands */
    uint32_t arrived, processed;   /* messages; they wrap around */
    struct consensus_waiting inbox[CONSENSUS_INBOX];
};

/* Bytes set by the host. */
enum { CONSENSUS_INITIAL_BYTES = offsetof(struct consensus, lock) };

/* Bytes of host memory for a log and the records of choices. */
static inline size_t consensus_host_bytes(uint32_t slots, uint32_t choices) {
    return sizeof(struct consensus_memory) + slots * sizeof(struct consensus_record) +
           choices * sizeof(struct consensus_chosen);
}

/* Executes a command. Returns true if its client must be answered, with the result in its session. */
static inline bool consensus_execute(struct consensus_snapshot *now, const struct consensus_command *command) {
    struct consensus_session *session = &now->sessions[command->client % CONSENSUS_CLIENTS];
    if (command->operation == CONSENSUS_NOTHING || command->request < session->request)
        return false;
    if (command->request > session->request) {
        uint64_t *number = &now->numbers[command->key % CONSENSUS_KEYS], before = *number;
        if (command->operation == CONSENSUS_WRITE ||
            (command->operation == CONSENSUS_SWAP && before == command->expected))
            *number = command->value;
        else if (command->operation == CONSENSUS_ADD)
            *number = before + command->value;
        *session = (struct consensus_session){.request = command->request, .result = before};
    }
    return true;
}

/* Checksum of a snapshot (FNV-1a by words). */
static inline uint32_t consensus_check(const struct consensus_snapshot *snapshot) {
    const uint64_t *words = (const uint64_t *)snapshot->sessions;
    uint64_t sum = 0xcbf29ce484222325 ^ snapshot->slot;
    for (size_t i = 0; i < (sizeof *snapshot - offsetof(struct consensus_snapshot, sessions)) / sizeof *words; i++)
        sum = (sum ^ words[i]) * 0x100000001b3;
    return (uint32_t)(sum ^ sum >> 32);
}

/* Writes the card's report to host memory, after all earlier writes, and wakes the host. */
static inline int consensus_tell(struct consensus *c) {
    return PtlHandlerDMAToHostB(&c->host, 0, sizeof c->host, PTL_ME_HOST_MEM) |
           PtlHandlerCTInc((ptl_ct_event_t){.success = 1});
}

/* Sends a message other than a command to another card. */
static inline int consensus_send(const struct consensus *c, uint32_t to, uint32_t kind, uint32_t term, uint32_t slot) {
    struct consensus_message message = {.kind = kind, .term = term, .slot = slot, .from = c->rank};
    return PtlHandlerPutFromDevice(&message, offsetof(struct consensus_message, command), 0, PTL_NO_ACK_REQ,
                                   (ptl_process_t){.rank = to}, c->bits, 0, NULL, 0);
}

static inline int consensus_answer(const struct consensus *c, const struct consensus_command *command, int32_t status,
                                   uint64_t value) {
    return reply_send((ptl_process_t){.rank = command->client}, c->replies,
                      (struct reply){.request = command->request, .status = status, .value = value});
}

/* Returns true if this card obeys a term: it promised no later one. The broken variants of the tests skip it. */
static inline bool consensus_obeys(const struct consensus *c, uint32_t term) {
#ifdef CONSENSUS_NO_TERM_CHECK
    (void)c, (void)term;
    return true;
#else
    return term >= c->host.promised;
#endif
}

/* Writes a command to the log in host memory; `*record` must not change until the handler ends. */
static inline int consensus_write(struct consensus *c, struct consensus_record *record) {
    if (record->slot >= c->host.end)
        c->host.end = record->slot + 1;
    return PtlHandlerDMAToHostB(record,
                                sizeof(struct consensus_memory) + (record->slot & (c->slots - 1)) * sizeof *record,
                                sizeof *record, PTL_ME_HOST_MEM);
}

/* Executes the command of the next slot and answers the client. */
static inline int consensus_apply(struct consensus *c, const struct consensus_command *command) {
    struct consensus_chosen chosen = {c->leading, c->host.chosen, command->client, command->request};
    int failures = PtlHandlerDMAToHostB(&chosen,
                                        sizeof(struct consensus_memory) + c->slots * sizeof(struct consensus_record) +
                                            (c->host.told & (c->choices - 1)) * sizeof chosen,
                                        sizeof chosen, PTL_ME_HOST_MEM);
    c->host.told++;
    c->host.chosen++;
    if (consensus_execute(&c->now, command))
        failures |=
            consensus_answer(c, command, CONSENSUS_DONE, c->now.sessions[command->client % CONSENSUS_CLIENTS].result);
    return failures;
}

/* Counts a vote for a slot, and executes chosen commands. */
static inline int consensus_count(struct consensus *c, uint32_t slot, uint32_t from) {
    int failures = 0;
    if (slot < c->host.chosen || slot >= c->host.chosen + CONSENSUS_WINDOW)
        return 0;
    c->proposals[slot % CONSENSUS_WINDOW].votes |= 1u << from;
    for (;;) {
        struct consensus_proposal *next = &c->proposals[c->host.chosen % CONSENSUS_WINDOW];
        uint32_t votes = 0;
        for (uint32_t bits = next->votes; bits != 0; bits &= bits - 1)
            votes++;
        if (votes < c->quorum)
            return failures;
        failures |= consensus_apply(c, &next->command);
        next->votes = 0;
        failures |= consensus_tell(c);
    }
}

/* Proposes a command for a slot: writes it to the own log, which is the first vote, and sends it to the other cards. */
static inline int consensus_propose(struct consensus *c, uint32_t slot, const struct consensus_command *command) {
    struct consensus_record record = {.term = c->leading, .slot = slot, .command = *command};
    struct consensus_message message = {.kind = CONSENSUS_APPEND, .term = c->leading, .slot = slot, .from = c->rank};
    int failures = consensus_write(c, &record);
    message.command = *command;
    c->proposals[slot % CONSENSUS_WINDOW].command = *command;
    for (uint32_t to = 0; to < c->replicas; to++)
        if (to != c->rank)
            failures |= PtlHandlerPutFromDevice(&message, sizeof message, 0, PTL_NO_ACK_REQ,
                                                (ptl_process_t){.rank = to}, c->bits, 0, NULL, 0);
    return failures | consensus_count(c, slot, c->rank);
}

/* Assigns a slot to a client's command, on the leader's card. */
static inline int consensus_request(struct consensus *c, const struct consensus_command *command) {
    const struct consensus_session *session = &c->now.sessions[command->client % CONSENSUS_CLIENTS];
    if (c->leading == 0)
        return consensus_answer(c, command, CONSENSUS_NOT_LEADER, c->host.promised % c->replicas);
    if (session->request == command->request)
        return consensus_answer(c, command, CONSENSUS_DONE, session->result);
    if (c->next - c->host.base == c->slots)
        return consensus_answer(c, command, CONSENSUS_FULL, 0);
    if (c->host.chosen < c->recovered || c->next - c->host.chosen >= CONSENSUS_WINDOW)
        return consensus_answer(c, command, CONSENSUS_BUSY, 0);
    return consensus_propose(c, c->next++, command);
}

/* Updates the term of a card. A later term than its own ends its leadership. */
static inline void consensus_learn(struct consensus *c, uint32_t term) {
    if (term > c->host.promised) {
        c->host.promised = term;
        c->leading = 0;
    }
}

static inline int consensus_promise(struct consensus *c, uint32_t term, uint32_t candidate) {
    struct consensus_promise promise = {.term = term, .end = c->host.end, .base = c->host.base};
    consensus_learn(c, term);
    promise.promised = c->host.promised;
    ptl_dma_h written; /* once this is in host memory, so is everything accepted before */
    int failures = PtlHandlerDMAToHostNB(&c->host, 0, sizeof c->host, PTL_ME_HOST_MEM, &written);
    failures |= PtlHandlerDMAWait(written);
    return failures | PtlHandlerPutFromDevice(&promise, sizeof promise, 0, PTL_NO_ACK_REQ,
                                              (ptl_process_t){.rank = candidate}, c->promises, c->rank * sizeof promise,
                                              NULL, 0);
}

/* Records that the slots before this one are in the host's snapshot. */
static inline void consensus_truncate(struct consensus *c, uint32_t slot) {
    if (slot > c->host.base)
        c->host.base = slot;
    if (slot > c->host.end)
        c->host.end = slot;
}

static inline int consensus_lead(struct consensus *c, uint32_t term, uint32_t end) {
    if (term != c->host.promised || c->leading == term)
        return 0;
    if (PtlHandlerDMAFromHostB(offsetof(struct consensus_memory, snapshot), &c->now, sizeof c->now, PTL_ME_HOST_MEM))
        return -1;
    c->leading = term;
    c->next = c->recovered = end;
    c->host.chosen = c->now.slot;
    consensus_truncate(c, c->now.slot);
    for (uint32_t i = 0; i < CONSENSUS_WINDOW; i++)
        c->proposals[i].votes = 0;
    return 0;
}

/* Accepts a command for a slot. Commands covered by the snapshot are chosen: the slot's command was proposed before, or
 * can get no majority, and its place may belong to another slot. The host sends its snapshot again to replicas that it
 * does not cover yet. */
static inline int consensus_accept(struct consensus *c, const struct consensus_message *m) {
    struct consensus_record record = {.term = m->term, .slot = m->slot, .command = m->command};
    int failures = 0;
    consensus_learn(c, m->term);
    if (m->slot >= c->host.base + c->slots)
        return 0;
    if (m->slot >= c->host.base)
        failures = consensus_write(c, &record);
    return failures | consensus_send(c, m->from, CONSENSUS_ACCEPTED, m->term, m->slot);
}

static inline int consensus_handle(struct consensus *c, const struct consensus_message *m) {
    switch (m->kind) {
    case CONSENSUS_REQUEST: return consensus_request(c, &m->command);
    case CONSENSUS_APPEND:
        if (!consensus_obeys(c, m->term))
            return consensus_send(c, m->from, CONSENSUS_REFUSED, c->host.promised, 0);
        return consensus_accept(c, m);
    case CONSENSUS_ACCEPTED: return c->leading == m->term ? consensus_count(c, m->slot, m->from) : 0;
    case CONSENSUS_REFUSED: consensus_learn(c, m->term); return consensus_tell(c);
    case CONSENSUS_PREPARE: return consensus_promise(c, m->term, m->from);
    case CONSENSUS_LEAD: return consensus_lead(c, m->term, m->slot) | consensus_tell(c);
    case CONSENSUS_TRUNCATE: consensus_truncate(c, m->slot); return consensus_tell(c);
    case CONSENSUS_PROPOSE:
        if (c->leading != m->term || m->slot < c->host.chosen || m->slot >= c->host.chosen + CONSENSUS_WINDOW ||
            m->slot >= c->host.base + c->slots)
            return 0;
        return consensus_propose(c, m->slot, &m->command);
    case CONSENSUS_HEARTBEAT:
        if (!consensus_obeys(c, m->term))
            return consensus_send(c, m->from, CONSENSUS_REFUSED, c->host.promised, 0);
        consensus_learn(c, m->term);
        c->host.heard++;
        return consensus_tell(c);
    default: return -1;
    }
}

/* Processes queued messages in order, at most CONSENSUS_TURN. Returns true if it reached that limit. */
static inline bool consensus_process(struct consensus *c, int *failures) {
    for (uint32_t i = 0; i < CONSENSUS_TURN; i++) {
        struct consensus_waiting *first = &c->inbox[c->processed % CONSENSUS_INBOX];
        if (__atomic_load_n(&first->is_there, __ATOMIC_ACQUIRE) == 0)
            return false;
        *failures |= consensus_handle(c, &first->message);
        __atomic_store_n(&first->is_there, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&c->processed, c->processed + 1, __ATOMIC_RELEASE);
    }
    return true;
}

/* Queues a message for the handler that works on the state. */
static inline void consensus_leave(struct consensus *c, const struct consensus_message *message, uint32_t bytes) {
    uint32_t number = __atomic_fetch_add(&c->arrived, 1, __ATOMIC_RELAXED);
    struct consensus_waiting *place = &c->inbox[number % CONSENSUS_INBOX];
    while (number - __atomic_load_n(&c->processed, __ATOMIC_ACQUIRE) >= CONSENSUS_INBOX)
        PtlHandlerYield();
    memcpy(&place->message, message, bytes);
    __atomic_store_n(&place->is_there, 1, __ATOMIC_RELEASE);
}

/* Payload handler: processes a message of the protocol, or queues it for the handler at work. */
__handler int consensus_payload(const ptl_payload_t p, void *state) {
    struct consensus *c = state;
    const struct consensus_message *message = (const struct consensus_message *)p.base;
    int failures = 0;
    if (p.length < offsetof(struct consensus_message, command))
        return FAIL;
    bool is_mine = lock_try(&c->lock), is_message = message->kind != CONSENSUS_GO_ON;
    if (is_mine && is_message)
        failures |= consensus_handle(c, message);
    else if (is_message)
        consensus_leave(c, message, p.length < sizeof *message ? p.length : sizeof *message);
    do {
        bool is_long = is_mine && consensus_process(c, &failures);
        if (is_long) /* the watchdog ends long handlers: another continues */
            failures |= consensus_send(c, c->rank, CONSENSUS_GO_ON, 0, 0);
        if (is_mine)
            lock_give(&c->lock);
        if (is_long || __atomic_load_n(&c->inbox[c->processed % CONSENSUS_INBOX].is_there, __ATOMIC_ACQUIRE) == 0)
            break;
        is_mine = lock_try(&c->lock);
    } while (is_mine);
    return failures == 0 ? SUCCESS : FAIL;
}

/* Completion handler: hides the message from the host's counter, which counts reports of handlers. */
__handler int consensus_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)state;
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS_PENDING : FAIL;
}

#endif
