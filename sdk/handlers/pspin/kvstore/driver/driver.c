/* Sends 1,000 requests of a YCSB workload, half reads and half updates, whose keys have a Zipf distribution with theta = 1.1 (PsPIN
 * §IV-C). Handlers run at the same time, so that the order of requests on one set of the cache is theirs: the host repeats each set
 * in the order of the versions that the card has reported, and compares all answers, and all that the host has got. */
#include "../../common/case.h"
#include "../kvstore.h"

/* Records in the store, as YCSB's recordcount: the paper does not say how many. */
#define RECORDS 1000

/* Number of sets of the cache, and a set as plain C has it. */
struct set {
    uint32_t keys[KV_WAYS], values[KV_WAYS], used, next, version;
};

/* What is known about a request after the run: what it was, what it has become, and where that came. */
struct outcome {
    const struct packet *packet, *answer;
    struct kv_packet result;
    uint32_t number, set;
};

static struct kv_set cache[KV_SETS];
static double below[RECORDS];
static struct set sets[KV_SETS];

/* The number whose tenth power is `power` (Newton). */
static double tenth_root(double power) {
    double root = 2;
    for (int step = 0; step < 60; step++) {
        double ninth = root * root * root;
        ninth *= ninth * ninth;
        root = (9 * root + power / ninth) / 10;
    }
    return root;
}

/* A key for each record: the rank, with its bits mixed one to one, so that popular keys are in different sets. */
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

static void prepare(struct options *options) {
    double sum = 0;
    for (uint32_t rank = 0; rank < RECORDS; rank++) {
        double n = rank + 1;
        below[rank] = sum += 1 / (n * tenth_root(n));
    }
    image = cache;
    image_bytes = sizeof cache;
    host_bytes = KV_REPLACED_BYTES + options->messages * options->packets * HOST_SLOT;
}

static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    make_random(packet, number, size);
    struct kv_packet *request = (struct kv_packet *)packet->bytes;
    request->operation = random_below(2) ? KV_UPDATE : KV_READ;
    request->key = key_of(random_rank());
    request->value = request->operation == KV_UPDATE ? random_word() : 0;
    request->version = 0;
    return size;
}

/* Requests of a set in the order of their versions; an update makes the version that later reads see. */
static int in_order(const void *left, const void *right) {
    const struct outcome *a = left, *b = right;
    uint64_t first = (uint64_t)a->set << 32 | a->result.version << 1 | !(a->result.operation & KV_UPDATE);
    uint64_t second = (uint64_t)b->set << 32 | b->result.version << 1 | !(b->result.operation & KV_UPDATE);
    return first < second ? -1 : first > second;
}

/* Repeats a request. Sets what it should have become, and the pair that it replaces. */
static struct kv_packet repeat(const struct outcome *outcome, uint64_t *replaced) {
    struct kv_packet request = *(const struct kv_packet *)outcome->packet->bytes;
    struct set *set = &sets[outcome->set];
    uint32_t entry = 0;
    while (entry < set->used && set->keys[entry] != request.key)
        entry++;
    *replaced = 0;
    if (request.operation == KV_UPDATE) {
        if (entry == KV_WAYS) {
            entry = set->next;
            set->next = (set->next + 1) % KV_WAYS;
            *replaced = (uint64_t)set->values[entry] << 32 | set->keys[entry];
        } else if (entry == set->used) {
            set->used++;
        }
        set->keys[entry] = request.key;
        set->values[entry] = request.value;
        set->version++;
    }
    request.version = set->version;
    if (request.operation == KV_UPDATE || entry < set->used) {
        request.operation |= KV_ANSWERED;
        request.value = set->values[entry];
    }
    return request;
}

static bool is_right(const struct outcome *outcome) {
    uint64_t replaced;
    struct kv_packet expected = repeat(outcome, &replaced);
    bool should_answer = expected.operation & KV_ANSWERED;
    uint32_t number = outcome->number;
    if (!is_equal(outcome->answer != NULL, should_answer, "number of answers to request", number) ||
        !is_equal(host_word(KV_REPLACED(number)), replaced, "entry that was replaced by request", number))
        return false;
    struct packet packet = *outcome->packet;
    memcpy(packet.bytes, &expected, sizeof expected);
    if (should_answer) {
        swap_ends(&packet);
        header_of(&packet)->udp_hdr.checksum = 0;
        return is_equal(outcome->answer->length, packet.length, "length of the answer to request", number) &&
               is_same(outcome->answer->bytes, packet.bytes, packet.length, "the answer to request", number);
    }
    return is_same(host + KV_REPLACED_BYTES + number * HOST_SLOT, packet.bytes, packet.length, "request", number);
}

static bool check(void) {
    const struct packet **found = answers();
    if (found == NULL)
        return false;
    struct outcome *outcomes = memory(arrived.count * sizeof *outcomes);
    for (uint32_t number = 0; number < arrived.count; number++) {
        struct outcome *outcome = &outcomes[number];
        outcome->number = number;
        outcome->packet = &arrived.all[number];
        outcome->answer = found[number];
        const uint8_t *result = host + KV_REPLACED_BYTES + number * HOST_SLOT;
        if (outcome->answer != NULL)
            result = outcome->answer->bytes;
        memcpy(&outcome->result, result, sizeof outcome->result);
        outcome->set = ((const struct kv_packet *)outcome->packet->bytes)->key % KV_SETS;
    }
    qsort(outcomes, arrived.count, sizeof *outcomes, in_order);
    uint32_t at = 0;
    while (at < arrived.count && is_right(&outcomes[at]))
        at++;
    bool are_right = at == arrived.count;
    free(outcomes);
    free(found);
    return are_right;
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
