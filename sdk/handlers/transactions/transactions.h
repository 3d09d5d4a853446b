/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions by a log of accesses (sPIN §5.4): header handlers log all reads, and the host decides at commit time.
 *
 *     client ── gets of records ──▶ card: the header handler appends the access to a log, then the card replies
 *     client ── commit: values to write ──▶ host: reads the log, validates, writes, answers
 *
 * Records have no locks and no version words, and clients do not report their reads: the log has them. Concurrency
 * control is optimistic. A transaction commits if no record that it read was written meanwhile. One that spans several
 * hosts is prepared on each (its records are held) and then decided by its client.
 *
 * The log's order against writes: an access is in the log before its data is read, because DMA is executed in order,
 * and the card reads the data after the handler returns. The host writes records, then reads the log, and only then
 * counts the records' versions. Accesses in the log by then may have read the old values, and get the old version;
 * later ones read the new values. */
#ifndef HANDLERS_TRANSACTIONS_H
#define HANDLERS_TRANSACTIONS_H

#include <handlers/common/host_queue.h>
#include <spin.h>
#include <stdlib.h>

/* Match bits of an access: this, plus the number of the client's transaction in the lower half. */
#define TRANSACTION_RECORDS ((ptl_match_bits_t)1 << 32)
#define TRANSACTION_NUMBER ((ptl_match_bits_t)UINT32_MAX)

/* Log record of an access. */
struct transaction_access {
    uint32_t number; /* owned by the queue */
    uint32_t client, transaction;
    uint32_t offset, length; /* range in the records, bytes */
    uint32_t type;           /* PTL_REQUEST_… */
};

/* Header handler: appends the access to the log and lets the card perform it, or refuses it when the log is full. */
__handler int transaction_header(const ptl_header_t h, void *state) {
    struct transaction_access access = {.client = h.source_id.rank,
                                        .transaction = (uint32_t)h.match_bits,
                                        .offset = (uint32_t)h.offset,
                                        .length = (uint32_t)h.length,
                                        .type = h.type};
    ptl_dma_h written;
    if (!host_queue_append(state, &access, &written))
        return DROP; /* the reply fails with PTL_NI_DROPPED: the client must give up its transaction */
    return PtlHandlerDMAWait(written) == 0 ? PROCEED : FAIL;
}

/* ---- Host -------------------------------------------------------------------------------------------------------- */

/* Limits of a transaction on one host: records read, records written. */
enum { TRANSACTION_READS = 64, TRANSACTION_WRITES = 8 };

/* Host's state of a client: reads of its current transaction, and records held by its prepared one. */
struct transaction_client {
    uint32_t transaction, reads; /* more reads than TRANSACTION_READS: cannot commit */
    struct {
        uint32_t record, version;
    } read[TRANSACTION_READS];
    bool is_prepared;
    uint32_t held_reads, held_writes;
    uint32_t held_read[TRANSACTION_READS], held_write[TRANSACTION_WRITES];
};

/* State of a host; `clients` ranks may access it. */
struct transaction_host {
    struct host_queue_ring *log;
    uint32_t capacity, record_bytes, records, clients;
    uint32_t *version; /* version of each record */
    uint32_t *writer;  /* 0, or 1 + the client whose prepared transaction writes the record */
    uint32_t *readers; /* number of prepared transactions that read it */
    bool *is_taken;    /* for each place of the log: taken before an earlier one */
    struct transaction_client *client;
};

/* Limit of concurrently logged accesses: as many places without a record mark the end of the log. */
enum { TRANSACTION_GAP = PTL_MAX_HPUS };

/* Records a read of a client. */
static inline void transaction_note(struct transaction_host *host, const struct transaction_access *access) {
    if (access->client >= host->clients || access->type != PTL_REQUEST_GET || access->length == 0)
        return;
    struct transaction_client *client = &host->client[access->client];
    uint32_t record = access->offset / host->record_bytes;
    uint32_t last = (access->offset + access->length - 1) / host->record_bytes;
    if (client->transaction != access->transaction) {
        client->transaction = access->transaction;
        client->reads = 0;
    }
    for (; record <= last && record < host->records; record++, client->reads++)
        if (client->reads < TRANSACTION_READS) {
            client->read[client->reads].record = record;
            client->read[client->reads].version = host->version[record];
        }
}

/* Reads the log to its end, also past places whose record is still in flight. Returns the bytes of new records: all
 * other places examined are in the CPU's cache, because the card has not written them since. */
static inline uint64_t transaction_drain(struct transaction_host *host) {
    struct host_queue_ring *log = host->log;
    uint32_t taken = log->taken, looked = 0;
    uint64_t bytes = 0;
    for (uint32_t missing = 0; missing < TRANSACTION_GAP && looked < host->capacity; looked++) {
        uint32_t place = (taken + looked) & (host->capacity - 1);
        const struct transaction_access *access = (const struct transaction_access *)log->records + place;
        missing++;
        if (__atomic_load_n(&access->number, __ATOMIC_ACQUIRE) != taken + looked + 1)
            continue;
        missing = 0;
        if (host->is_taken[place])
            continue;
        transaction_note(host, access);
        host->is_taken[place] = true;
        bytes += sizeof *access;
    }
    while (host->is_taken[taken & (host->capacity - 1)])
        host->is_taken[taken++ & (host->capacity - 1)] = false;
    __atomic_store_n(&log->taken, taken, __ATOMIC_RELEASE);
    return bytes;
}

/* Returns true if the client's transaction may commit here with these writes; then holds its records until
 * transaction_finish. Drain before. */
static inline bool transaction_prepare(struct transaction_host *host, uint32_t from, uint32_t transaction,
                                       const uint32_t *write, uint32_t writes) {
    struct transaction_client *client = &host->client[from];
    uint32_t reads = client->transaction == transaction ? client->reads : 0;
    if (client->is_prepared || reads > TRANSACTION_READS || writes > TRANSACTION_WRITES)
        return false;
    for (uint32_t i = 0; i < reads; i++)
        if (host->version[client->read[i].record] != client->read[i].version ||
            host->writer[client->read[i].record] != 0)
            return false;
    for (uint32_t i = 0; i < writes; i++)
        if (write[i] >= host->records || host->writer[write[i]] != 0 || host->readers[write[i]] != 0)
            return false;
    for (uint32_t i = 0; i < reads; i++)
        host->readers[client->held_read[i] = client->read[i].record]++;
    for (uint32_t i = 0; i < writes; i++)
        host->writer[client->held_write[i] = write[i]] = 1 + from;
    client->held_reads = reads;
    client->held_writes = writes;
    return client->is_prepared = true;
}

/* Ends a prepared transaction. If it committed, its records were written before this call: drains the log, then counts
 * their versions. Returns the bytes of new records of the log. */
static inline uint64_t transaction_finish(struct transaction_host *host, uint32_t from, bool has_committed) {
    struct transaction_client *client = &host->client[from];
    uint64_t bytes = has_committed && client->held_writes > 0 ? transaction_drain(host) : 0;
    for (uint32_t i = 0; i < client->held_reads; i++)
        host->readers[client->held_read[i]]--;
    for (uint32_t i = 0; i < client->held_writes; i++) {
        host->version[client->held_write[i]] += has_committed;
        host->writer[client->held_write[i]] = 0;
    }
    client->held_reads = client->held_writes = 0;
    client->is_prepared = false;
    return bytes;
}

/* Prepares `host`, whose log, capacity (a power of two), record_bytes, records and clients are set; `log` has
 * host_queue_bytes(capacity, sizeof(struct transaction_access)) zero bytes. Returns false without memory. */
static inline bool transaction_begin(struct transaction_host *host) {
    host->version = calloc(host->records, sizeof *host->version);
    host->writer = calloc(host->records, sizeof *host->writer);
    host->readers = calloc(host->records, sizeof *host->readers);
    host->is_taken = calloc(host->capacity, sizeof *host->is_taken);
    host->client = calloc(host->clients, sizeof *host->client);
    return host->version != NULL && host->writer != NULL && host->readers != NULL && host->is_taken != NULL &&
           host->client != NULL;
}

/* Appends the entry of a prepared host for gets of its records. Returns PTL_OK, or the error of PtlHPUAllocMem or PtlMEAppend. */
static inline int transaction_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *records,
                                    struct transaction_host *host) {
    struct host_queue queue = {
        .options = PTL_HANDLER_HOST_MEM, .bytes = sizeof(struct transaction_access), .capacity = host->capacity};
    ptl_me_t me = {.start = records,
                   .length = (ptl_size_t)host->records * host->record_bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = TRANSACTION_RECORDS,
                   .ignore_bits = TRANSACTION_NUMBER,
                   .header_handler = transaction_header,
                   .hpu_initial_state = &queue,
                   .hpu_initial_state_length = sizeof queue,
                   .handler_host_mem_start = host->log,
                   .handler_host_mem_length = host_queue_bytes(host->capacity, queue.bytes)};
    ptl_handle_me_t handle;
    int rc = PtlHPUAllocMem(sizeof queue, ni, &me.hpu_memory);
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

#endif
