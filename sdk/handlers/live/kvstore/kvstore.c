/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store for clients of memcached: its text protocol over UDP (memcached's doc/protocol.txt), with get, set,
 * delete and version. A request and its answer are one datagram each. Keys are in sets of four entries; a new key of a
 * full set replaces the oldest. Handlers of the same set wait for its lock. */
#include "../common/live.h"

enum { SETS = 128, WAYS = 4, KEY_MOST = 250, VALUE_MOST = 1024 };

struct entry {
    uint16_t key_size, value_size; /* key_size 0: free */
    uint32_t flags;
    uint8_t key[KEY_MOST];
    uint8_t value[VALUE_MOST];
};

struct set {
    spin_lock_t lock;
    uint32_t next; /* entry that a new key replaces */
    struct entry entries[WAYS];
};

/* Handler memory has this size and content at first. */
__attribute__((used, section(".l2_handler_data"))) struct set kvstore_sets[SETS];

/* Header of each datagram, all big-endian. */
struct frame_header {
    uint16_t request, sequence, datagrams, reserved;
} __attribute__((__packed__));

/* Text that has not been read yet. */
struct text {
    const uint8_t *at, *end;
};

struct word {
    const uint8_t *start;
    uint32_t size;
};

/* Answer in progress: `end` is behind the last byte of the buffer. */
struct answer {
    uint8_t *at, *end;
};

static void put(struct answer *answer, const void *bytes, uint32_t size) {
    uint32_t room = (uint32_t)(answer->end - answer->at);
    if (size > room)
        size = room;
    memcpy(answer->at, bytes, size);
    answer->at += size;
}

static void put_text(struct answer *answer, const char *text) { put(answer, text, strlen(text)); }

static void put_number(struct answer *answer, uint32_t number) {
    char digits[10];
    uint32_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(answer, digits + at, sizeof digits - at);
}

/* Takes the next word of a line, which is empty at its end. */
static struct word next_word(struct text *text) {
    while (text->at < text->end && *text->at == ' ')
        text->at++;
    struct word word = {text->at, 0};
    while (text->at < text->end && *text->at > ' ')
        text->at++;
    word.size = (uint32_t)(text->at - word.start);
    return word;
}

static bool is(struct word word, const char *text) {
    return word.size == strlen(text) && memcmp(word.start, text, word.size) == 0;
}

/* Reads a decimal number. Returns false if the word is none. */
static bool read_number(struct word word, uint32_t *number) {
    *number = 0;
    for (uint32_t i = 0; i < word.size; i++) {
        uint32_t digit = word.start[i] - (uint32_t)'0';
        if (digit > 9 || *number > (UINT32_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return word.size > 0;
}

/* FNV-1a */
static struct set *set_of(const handler_args_t *args, struct word key) {
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < key.size; i++)
        hash = (hash ^ key.start[i]) * 16777619u;
    return (struct set *)args->task->handler_mem + hash % SETS;
}

static struct entry *find(struct set *set, struct word key) {
    for (uint32_t i = 0; i < WAYS; i++) {
        struct entry *entry = &set->entries[i];
        if (entry->key_size == key.size && memcmp(entry->key, key.start, key.size) == 0)
            return entry;
    }
    return NULL;
}

static bool is_key(struct word key) { return key.size > 0 && key.size <= KEY_MOST; }

static void get(const handler_args_t *args, struct text *line, struct answer *answer) {
    struct word key = next_word(line);
    if (key.size == 0)
        return put_text(answer, "ERROR\r\n");
    for (; key.size; key = next_word(line)) {
        if (!is_key(key))
            return put_text(answer, "CLIENT_ERROR bad command line format\r\n");
        struct set *set = set_of(args, key);
        spin_lock_lock(&set->lock);
        const struct entry *entry = find(set, key);
        /* A value that does not fit into the datagram is left out, like one that is not there. */
        if (entry && (uint32_t)(answer->end - answer->at) > entry->value_size + key.size + 48u) {
            put_text(answer, "VALUE ");
            put(answer, key.start, key.size);
            put_text(answer, " ");
            put_number(answer, entry->flags);
            put_text(answer, " ");
            put_number(answer, entry->value_size);
            put_text(answer, "\r\n");
            put(answer, entry->value, entry->value_size);
            put_text(answer, "\r\n");
        }
        spin_lock_unlock(&set->lock);
    }
    put_text(answer, "END\r\n");
}

/* Stores a value. Returns false if the client wants no answer. */
static bool set(const handler_args_t *args, struct text *line, struct text *rest, struct answer *answer) {
    struct word key = next_word(line), flags = next_word(line), expiry = next_word(line), bytes = next_word(line);
    bool wants_answer = !is(next_word(line), "noreply");
    uint32_t number, size;
    struct entry *entry;
    if (!is_key(key) || !read_number(flags, &number) || !read_number(expiry, &size) || !read_number(bytes, &size)) {
        put_text(answer, "CLIENT_ERROR bad command line format\r\n");
    } else if (size > VALUE_MOST) {
        put_text(answer, "SERVER_ERROR object too large for cache\r\n");
    } else if ((uint32_t)(rest->end - rest->at) < size + 2 || rest->at[size] != '\r' || rest->at[size + 1] != '\n') {
        put_text(answer, "CLIENT_ERROR bad data chunk\r\n");
    } else {
        struct set *set = set_of(args, key);
        spin_lock_lock(&set->lock);
        entry = find(set, key);
        if (!entry)
            entry = &set->entries[set->next++ % WAYS];
        memcpy(entry->key, key.start, key.size);
        memcpy(entry->value, rest->at, size);
        entry->key_size = (uint16_t)key.size;
        entry->value_size = (uint16_t)size;
        entry->flags = number;
        spin_lock_unlock(&set->lock);
        put_text(answer, "STORED\r\n");
    }
    return wants_answer;
}

static bool delete_key(const handler_args_t *args, struct text *line, struct answer *answer) {
    struct word key = next_word(line);
    bool wants_answer = !is(next_word(line), "noreply");
    if (!is_key(key)) {
        put_text(answer, "CLIENT_ERROR bad command line format\r\n");
        return wants_answer;
    }
    struct set *set = set_of(args, key);
    spin_lock_lock(&set->lock);
    struct entry *entry = find(set, key);
    if (entry)
        entry->key_size = 0;
    spin_lock_unlock(&set->lock);
    put_text(answer, entry ? "DELETED\r\n" : "NOT_FOUND\r\n");
    return wants_answer;
}

__handler__ void kvstore_ph(handler_args_t *args) {
    struct live_packet packet, reply;
    uint8_t *data;
    uint32_t size;
    if (!live_ip(args->task, &packet))
        return;
    udp_hdr_t *udp = live_udp(&packet, &data, &size);
    uint8_t *buffer = live_buffer(args);
    if (!udp || !buffer || size < sizeof(struct frame_header))
        return;
    uint8_t *out = live_copy(&packet, udp, buffer, &reply);
    struct frame_header *header = (struct frame_header *)out;
    memcpy(header, data, sizeof *header);
    header->sequence = 0;
    header->datagrams = htons(1);
    header->reserved = 0;
    struct answer answer = {out + sizeof *header, (uint8_t *)reply.ip + LIVE_MTU};

    struct text line = {data + sizeof *header, data + size}, rest = line;
    while (rest.at < rest.end && *rest.at != '\n')
        rest.at++;
    line.end = rest.at;
    if (rest.at < rest.end)
        rest.at++;
    struct word command = next_word(&line);
    bool wants_answer = true;
    if (is(command, "get"))
        get(args, &line, &answer);
    else if (is(command, "set"))
        wants_answer = set(args, &line, &rest, &answer);
    else if (is(command, "delete"))
        wants_answer = delete_key(args, &line, &answer);
    else if (is(command, "version"))
        put_text(&answer, "VERSION spinkit\r\n");
    else
        put_text(&answer, "ERROR\r\n");
    if (wants_answer)
        live_answer_udp(&reply, (udp_hdr_t *)reply.payload, (uint32_t)(answer.at - out));
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = kvstore_ph;
    *th = NULL;
    *handler_mem = NULL;
}
