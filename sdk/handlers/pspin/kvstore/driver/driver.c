/* SPDX-License-Identifier: Apache-2.0 */
/* Sends 1,000 requests of a YCSB workload, half reads and half updates, whose keys have a Zipf distribution with theta
 * = 1.1 (PsPIN §IV-C). Handlers run concurrently and determine the order of requests on a set of the cache: the host
 * replays each set in the order of the versions reported by the card, and compares all answers and all data received by
 * the host. */
#include "../../common/case.h"
#include "../kvstore.h"

/* Records in the store, as YCSB's recordcount: the paper does not give it. */
#define RECORDS 1000

/* Set in plain C. */
struct set {
    uint32_t keys[KV_WAYS], values[KV_WAYS], used, next;
};

/* Outcome of a request: the request, and its result at the client or at the host. */
struct outcome {
    struct kv_packet request, result;
    const struct packet *answer;
};

static struct kv_set cache[KV_SETS];
static double below[RECORDS];
static struct outcome *outcomes;

/* Returns the tenth root of `power` (Newton). */
static double tenth_root(double power) {
    double root = 2;
    for (int step = 0; step < 60; step++) {
        double ninth = root * root * root;
        ninth *= ninth * ninth;
        root = (9 * root + power / ninth) / 10;
    }
    return root;
}

/* Returns the key of a record: the rank, with its bits mixed one to one, so that popular keys are in different sets. */
static uint32_t key_of(uint32_t rank) {
    rank = (rank ^ rank >> 16) * 0x85ebca6bu;
    rank = (rank ^ rank >> 13) * 0xc2b2ae35u;
    return rank ^ rank >> 16;
}

/* The probability of rank n is proportional to n to the power of -1.1; YCSB's own formula needs theta < 1. */
static uint32_t random_rank(void) {
    double drawn = random_word() / 4294967296.0 * below[RECORDS - 1];
    uint32_t first = 0, last = RECORDS - 1;
    while (first < last) {
        uint32_t middle = (first + last) / 2;
        if (below[middle] > drawn)
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

/* With -DKV_TURNS, requests alternate among the sets, so that handlers do not wait for each other. */
#ifndef KV_TURNS
#define KV_TURNS 0
#endif

static uint32_t next_key(void) {
    if (KV_TURNS)
        return (arrived.count - 1) % KV_SETS + KV_SETS * random_below(RECORDS / KV_SETS);
    return key_of(random_rank());
}

static void prepare(void) {
    double sum = 0;
    for (uint32_t rank = 0; rank < RECORDS; rank++) {
        double n = rank + 1;
        below[rank] = sum += 1 / (n * tenth_root(n));
    }
    image = cache;
    image_bytes = sizeof cache;
    host_bytes = KV_REPLACED_PAIRS + options.messages * options.packets * HOST_SLOT;
}

static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    make_random(packet, number, size);
    struct kv_packet *request = (struct kv_packet *)packet->bytes;
    request->operation = random_below(2) ? KV_UPDATE : KV_READ;
    request->key = next_key();
    request->value = request->operation == KV_UPDATE ? random_word() : 0;
    request->since = request->version = 0;
    return size;
}

static uint32_t find(const struct set *set, uint32_t key) {
    uint32_t entry = 0;
    while (entry < set->used && set->keys[entry] != key)
        entry++;
    return entry;
}

/* Updates a set. Returns the replaced key and value, or 0. */
static uint64_t update(struct set *set, uint32_t key, uint32_t value) {
    uint32_t entry = find(set, key);
    uint64_t replaced = 0;
    if (entry == KV_WAYS) {
        entry = set->next;
        set->next = (set->next + 1) % KV_WAYS;
        replaced = (uint64_t)set->values[entry] << 32 | set->keys[entry];
    } else if (entry == set->used) {
        set->used++;
    }
    set->keys[entry] = key;
    set->values[entry] = value;
    return replaced;
}

/* Compares the outcome of request `number` with the expected one and its destination. */
static bool is_right(uint32_t number, const struct kv_packet *expected) {
    const struct outcome *outcome = &outcomes[number];
    struct packet packet = arrived.all[number];
    memcpy(packet.bytes, expected, sizeof *expected);
    if (!is_equal(outcome->answer != NULL, (expected->operation & KV_ANSWERED) != 0, "number of answers to request",
                  number))
        return false;
    if (outcome->answer == NULL)
        return is_same(host + KV_REPLACED_PAIRS + number * HOST_SLOT, packet.bytes, packet.length, "request", number);
    swap_ends(&packet);
    header_of(&packet)->udp_hdr.checksum = 0;
    return is_equal(outcome->answer->length, packet.length, "length of the answer to request", number) &&
           is_same(outcome->answer->bytes, packet.bytes, packet.length, "the answer to request", number);
}

/* Returns true if a read may have its result in this state of the set. */
static bool could_see(const struct set *set, const struct outcome *read) {
    uint32_t entry = find(set, read->request.key);
    return read->answer ? entry < set->used && set->values[entry] == read->result.value : entry == set->used;
}

/* Replays the updates of a set in version order, and compares them and the reads. */
static bool check_set(uint32_t number) {
    uint32_t updates = 0;
    struct set *states = memory((arrived.count + 1) * sizeof *states);
    bool is_found = true, are_right = true;
    while (is_found && are_right) {
        is_found = false;
        for (uint32_t at = 0; at < arrived.count && !is_found; at++) {
            struct kv_packet request = outcomes[at].request;
            is_found = request.key % KV_SETS == number && request.operation == KV_UPDATE &&
                       outcomes[at].result.version == updates + 1;
            if (is_found) {
                states[updates + 1] = states[updates];
                uint64_t replaced = update(&states[++updates], request.key, request.value);
                request.operation |= KV_ANSWERED;
                request.since = request.version = updates;
                are_right = is_right(at, &request) && is_equal(host_word(KV_REPLACED_PAIR(at)), replaced,
                                                               "the entry that was replaced by request", at);
            }
        }
    }
    for (uint32_t at = 0; at < arrived.count && are_right; at++) {
        const struct outcome *outcome = &outcomes[at];
        struct kv_packet request = outcome->request;
        if (request.key % KV_SETS != number)
            continue;
        request.since = outcome->result.since;
        request.version = outcome->result.version;
        if (request.operation == KV_UPDATE) {
            are_right = is_equal(request.version > 0 && request.version <= updates, true, "a version of update", at);
            continue;
        }
        bool is_seen = false;
        for (uint32_t version = request.since; version <= request.version && version <= updates; version++)
            is_seen = is_seen || could_see(&states[version], outcome);
        request.operation |= outcome->answer ? KV_ANSWERED : 0;
        request.value = outcome->answer ? outcome->result.value : 0;
        are_right = is_equal(is_seen, true, "a version with the result of read", at) && is_right(at, &request);
    }
    free(states);
    return are_right;
}

static bool check(void) {
    const struct packet **found = answers();
    if (found == NULL)
        return false;
    outcomes = memory(arrived.count * sizeof *outcomes);
    for (uint32_t number = 0; number < arrived.count; number++) {
        struct outcome *outcome = &outcomes[number];
        const uint8_t *result = found[number] ? found[number]->bytes : host + KV_REPLACED_PAIRS + number * HOST_SLOT;
        outcome->answer = found[number];
        memcpy(&outcome->request, arrived.all[number].bytes, sizeof outcome->request);
        memcpy(&outcome->result, result, sizeof outcome->result);
    }
    uint32_t set = 0;
    while (set < KV_SETS && check_set(set))
        set++;
    free(outcomes);
    free(found);
    return set == KV_SETS;
}

int main(int argc, char **argv) {
    static const struct use_case kvstore = {
        .program = "kvstore",
        .payload = "kvstore_ph",
        .defaults = {1000, 1, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = sizeof(struct kv_packet) - sizeof(pkt_hdr_t),
        .most_bytes = HOST_SLOT,
        .most_packets = HOST_SLOTS,
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&kvstore, argc, argv);
}
