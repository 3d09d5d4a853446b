/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of these folders' drivers: packets from a fixed seed, host memory, packets sent by the card, and
 * comparisons with plain C on the host. The driver of a folder is one file, which includes this one.
 *
 * Besides the options of the generic driver, each understands `--flip N`, for tests: flips a bit of packet N's data on
 * the wire but not in the host's computation, so that the check must fail. */
#ifndef CASE_H
#define CASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdriver.h"
#include "packets.h"
#include "pspinsim.h"

/* As in card.h. */
#define HOST_SLOT 4096
#define HOST_SLOTS 65536
#define HOST_DONE ((uint64_t)1 << 32)

#define ADDRESS_OF_CARD 0x0a000001u
#define ADDRESS_OF_CLIENT 0x0a000100u

/* Packet made by the host, or sent by the card. */
struct packet {
    uint8_t *bytes;
    uint32_t length;
    uint32_t message;
};

struct packets {
    struct packet *all;
    uint32_t count;
};

/* Options -m, -p and -s: messages, packets of each, bytes of a packet. */
struct options {
    uint32_t messages, packets, size;
};

struct use_case {
    const char *program, *payload, *completion; /* names of the program and of its handlers; NULL is none */
    struct options defaults;                    /* 0 packets: prepare() computes the number */
    uint32_t header_bytes, least_data;          /* bytes of packets before make()'s data, and least after it */
    uint32_t most_bytes;                        /* limit of a packet */
    uint32_t most_packets;                      /* 0: no limit */
    uint32_t l1_bytes;                          /* bytes of a packet that handlers need in L1, or 0 for all */
    /* Sets host_bytes, image and other values that depend on the options, and the number of packets if that is 0. */
    void (*prepare)(void);
    /* Writes the data of packet `number` of a message after the header, and returns the length of the packet, at most
     * `size`. NULL makes random data. */
    uint32_t (*make)(struct packet *packet, uint32_t number, uint32_t size);
    /* Returns true if all results are correct, else false after a message. */
    bool (*check)(void);
};

static const struct use_case *use_case;
static struct packets arrived, sent;
/* Host memory of the execution context, and the initial contents of its card memory. */
static uint8_t *host;
static uint64_t host_bytes;
static void *image;
static size_t image_bytes;
static struct options options;
static long flip = -1;
static bool has_failed;

static void *memory(size_t bytes) {
    void *start = calloc(1, bytes);
    if (start == NULL) {
        fprintf(stderr, "%s: no memory\n", use_case->program);
        exit(EXIT_FAILURE);
    }
    return start;
}

/* -DRANDOM_SEED=N selects other contents of packets. */
#ifndef RANDOM_SEED
#define RANDOM_SEED 13
#endif

/* SplitMix64, as in ../../common/random.h, which these folders cannot include: each copy of them must build alone. */
static inline uint32_t random_word(void) {
    static uint64_t state = RANDOM_SEED;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* A random number below `limit`. */
static inline uint32_t random_below(uint32_t limit) { return (uint32_t)((uint64_t)random_word() * limit >> 32); }

static inline pkt_hdr_t *header_of(const struct packet *packet) { return (pkt_hdr_t *)packet->bytes; }

/* A word of a packet's data. */
static inline uint32_t word_of(const struct packet *packet, uint32_t index) {
    uint32_t word;
    memcpy(&word, packet->bytes + use_case->header_bytes + 4 * index, sizeof word);
    return word;
}

static inline void set_word(struct packet *packet, uint32_t index, uint32_t word) {
    memcpy(packet->bytes + use_case->header_bytes + 4 * index, &word, sizeof word);
}

/* Number of whole words of data in a packet of `length` bytes. */
static inline uint32_t words_in(uint32_t length) { return (length - use_case->header_bytes) / 4; }

/* Fills the data with random bytes. */
static inline uint32_t make_random(struct packet *packet, uint32_t number, uint32_t size) {
    (void)number;
    for (uint32_t at = use_case->header_bytes; at < size; at++)
        packet->bytes[at] = (uint8_t)random_word();
    return size;
}

/* One's complement sum of half-words (RFC 1071), added to `sum`. */
static inline uint32_t half_words(const void *data, uint32_t length, uint32_t sum) {
    const uint8_t *bytes = data;
    for (uint32_t at = 0; at < length; at++)
        sum += at % 2 ? (uint32_t)bytes[at] << 8 : bytes[at];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* Returns the correct UDP checksum of a packet. */
static inline uint16_t udp_checksum(const struct packet *packet) {
    pkt_hdr_t header = *header_of(packet);
    header.udp_hdr.checksum = 0;
    uint32_t sum = half_words(&header.ip_hdr.source_id, 8, header.ip_hdr.protocol + header.udp_hdr.length);
    sum = half_words(&header.udp_hdr, sizeof header.udp_hdr, sum);
    sum = half_words(packet->bytes + sizeof header, packet->length - (uint32_t)sizeof header, sum);
    return sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

static struct packet *add_packet(struct packets *list, const void *bytes, uint32_t length) {
    if ((list->count & (list->count - 1)) == 0) {
        struct packet *all = memory((list->count ? 2 * list->count : 1) * sizeof *all);
        if (list->count)
            memcpy(all, list->all, list->count * sizeof *all);
        free(list->all);
        list->all = all;
    }
    struct packet *packet = &list->all[list->count++];
    *packet = (struct packet){.bytes = memory(length), .length = length};
    if (bytes != NULL)
        memcpy(packet->bytes, bytes, length);
    return packet;
}

/* Returns true if packets may have this size, else false after a message. */
static bool is_possible(uint32_t size) {
    uint32_t least = use_case->header_bytes + use_case->least_data;
    bool is_right = size >= least && size <= use_case->most_bytes;
    if (!is_right)
        fprintf(stderr, "%s: packets have %u to %u B, not %u\n", use_case->program, least, use_case->most_bytes, size);
    return is_right;
}

static uint32_t fill(uint32_t message, uint32_t number, uint8_t *bytes, uint32_t size, uint32_t *in_l1) {
    uint32_t identification = arrived.count;
    /* Packets of a trace may have any size. */
    if (!is_possible(size))
        exit(2);
    if (message >= options.messages || identification >= (uint64_t)options.messages * options.packets) {
        fprintf(stderr,
                "%s: packet %u, of message %u, of a trace, but -m %u and -p %u say how much there is room for\n",
                use_case->program, identification, message, options.messages, options.packets);
        exit(2);
    }
    struct packet *packet = add_packet(&arrived, NULL, size);
    packet->message = message;
    *header_of(packet) = (pkt_hdr_t){
        .ip_hdr = {.version = 4,
                   .ihl = 5,
                   .identification = (uint16_t)identification,
                   .ttl = 64,
                   .protocol = 17,
                   .source_id = ADDRESS_OF_CLIENT + message,
                   .dest_id = ADDRESS_OF_CARD},
        .udp_hdr = {.src_port = (uint16_t)(10000 + message), .dst_port = 9330},
    };
    packet->length = (use_case->make ? use_case->make : make_random)(packet, number, size);
    header_of(packet)->ip_hdr.length = (uint16_t)packet->length;
    header_of(packet)->udp_hdr.length = (uint16_t)(packet->length - sizeof(ip_hdr_t));
    header_of(packet)->ip_hdr.checksum = (uint16_t)~half_words(packet->bytes, sizeof(ip_hdr_t), 0);
    header_of(packet)->udp_hdr.checksum = udp_checksum(packet);
    memcpy(bytes, packet->bytes, packet->length);
    if (flip == (long)identification)
        bytes[use_case->header_bytes] ^= 1;
    if (use_case->l1_bytes)
        *in_l1 = use_case->l1_bytes;
    return packet->length;
}

static void packet_out(uint8_t *bytes, size_t length) { add_packet(&sent, bytes, (uint32_t)length); }

/* Returns the host memory that the card accesses, or NULL where the context has none. */
static uint8_t *reached(uint64_t address, size_t length) {
    uint64_t offset = address - GDRIVER_HOST_ADDR;
    if (address >= GDRIVER_HOST_ADDR && offset + length <= host_bytes)
        return host + offset;
    if (!has_failed)
        fprintf(stderr, "%s: the card accesses %zu B at %#llx of the host, beyond its memory\n", use_case->program,
                length, (unsigned long long)address);
    has_failed = true;
    return NULL;
}

static void host_write(uint64_t address, uint8_t *data, size_t length) {
    uint8_t *place = reached(address, length);
    if (place != NULL)
        memcpy(place, data, length);
}

static void host_read(uint64_t address, uint8_t *data, size_t length) {
    const uint8_t *place = reached(address, length);
    if (place != NULL)
        memcpy(data, place, length);
}

/* Compares memory, and reports the first difference: `what` names the element with the number `index`. */
static inline bool is_same(const void *is, const void *should, size_t bytes, const char *what, uint32_t index) {
    const uint8_t *a = is, *b = should;
    for (size_t at = 0; at < bytes; at++) {
        if (a[at] != b[at]) {
            fprintf(stderr, "%s: byte %zu of %s %u is 0x%02x instead of 0x%02x\n", use_case->program, at, what, index,
                    a[at], b[at]);
            return false;
        }
    }
    return true;
}

/* Compares numbers in the same way. */
static inline bool is_equal(uint64_t is, uint64_t should, const char *what, uint32_t index) {
    if (is != should)
        fprintf(stderr, "%s: %s %u is %llu instead of %llu\n", use_case->program, what, index, (unsigned long long)is,
                (unsigned long long)should);
    return is == should;
}

/* Eight bytes of host memory. */
static inline uint64_t host_word(uint32_t offset) {
    uint64_t word;
    memcpy(&word, host + offset, sizeof word);
    return word;
}

/* Four bytes of host memory. */
static inline uint32_t host_half(uint32_t offset) {
    uint32_t word;
    memcpy(&word, host + offset, sizeof word);
    return word;
}

/* Returns the packet sent for each arrived packet, by IP identification; NULL for none. Each sent packet must
 * correspond to one that arrived, once. Returns NULL after a message if not. */
static inline const struct packet **answers(void) {
    const struct packet **found = memory(arrived.count * sizeof *found);
    for (uint32_t at = 0; at < sent.count; at++) {
        const struct packet *packet = &sent.all[at];
        uint32_t identification =
            packet->length < sizeof(pkt_hdr_t) ? UINT32_MAX : header_of(packet)->ip_hdr.identification;
        if (identification >= arrived.count || found[identification] != NULL) {
            fprintf(stderr, "%s: packet %u that the card has sent answers none, or one that has an answer\n",
                    use_case->program, at);
            free(found);
            return NULL;
        }
        found[identification] = packet;
    }
    return found;
}

/* Exchanges source and destination of a packet. */
static inline void swap_ends(struct packet *packet) {
    pkt_hdr_t header = *header_of(packet), *answer = header_of(packet);
    answer->ip_hdr.source_id = header.ip_hdr.dest_id;
    answer->ip_hdr.dest_id = header.ip_hdr.source_id;
    answer->udp_hdr.src_port = header.udp_hdr.dst_port;
    answer->udp_hdr.dst_port = header.udp_hdr.src_port;
}

/* Returns the number given by an option, or `number`. */
static uint32_t option(int argc, char **argv, const char *letter, const char *name, uint32_t number) {
    size_t length = strlen(name);
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at], *value = NULL;
        if (strcmp(word, letter) == 0 || strcmp(word, name) == 0)
            value = argv[at + 1];
        else if (strncmp(word, letter, 2) == 0)
            value = word + 2;
        else if (strncmp(word, name, length) == 0 && word[length] == '=')
            value = word + length + 1;
        if (value != NULL)
            number = (uint32_t)strtoul(value, NULL, 0);
    }
    return number;
}

/* Removes `--flip N` from the words. Returns N. */
static int take_flip(int argc, char **argv) {
    for (int at = 1; at + 1 < argc; at++) {
        if (strcmp(argv[at], "--flip") == 0 && use_case->check != NULL) {
            flip = strtol(argv[at + 1], NULL, 0);
            memmove(&argv[at], &argv[at + 2], (size_t)(argc - at - 1) * sizeof *argv);
            return argc - 2;
        }
    }
    return argc;
}

/* Runs a use case. Returns the status of the process: 1 when a result is wrong. */
static int run_case(const struct use_case *what, int argc, char **argv) {
    use_case = what;
    argc = take_flip(argc, argv);
    options = what->defaults;
    options.messages = option(argc, argv, "-m", "--num-messages", options.messages);
    options.packets = option(argc, argv, "-p", "--num-packets", options.packets);
    options.size = option(argc, argv, "-s", "--packet-size", options.size);
    if (!is_possible(options.size))
        return 2;
    if (what->most_packets && (uint64_t)options.messages * options.packets > what->most_packets) {
        fprintf(stderr, "%s: at most %u packets, which their IP identification tells apart\n", what->program,
                what->most_packets);
        return 2;
    }
    if (what->prepare != NULL)
        what->prepare();
    if (host_bytes > GDRIVER_HOST_SIZE) {
        fprintf(stderr, "%s: the results have %llu B, more than the host memory of %u B\n", what->program,
                (unsigned long long)host_bytes, GDRIVER_HOST_SIZE);
        return 2;
    }
    host = memory(host_bytes);
    /* Packets arrive without gaps, unless the caller sets one. */
    char numbers[3][16];
    snprintf(numbers[0], sizeof numbers[0], "%u", options.messages);
    snprintf(numbers[1], sizeof numbers[1], "%u", options.packets);
    snprintf(numbers[2], sizeof numbers[2], "%u", options.size);
    char *defaults[] = {argv[0], "-d", "0", "-l", "0", "-m", numbers[0], "-p", numbers[1], "-s", numbers[2]};
    const int count = sizeof defaults / sizeof *defaults;
    char **words = memory((size_t)(count + argc) * sizeof *words);
    memcpy(words, defaults, sizeof defaults);
    memcpy(words + count, argv + 1, (size_t)argc * sizeof *words);
    char program[64];
    snprintf(program, sizeof program, "build/%s", what->program);
    int contexts;
    if (gdriver_init(count + argc - 1, words, NULL, &contexts) != GDRIVER_OK)
        return EXIT_FAILURE;
    pspinsim_cb_set_pkt_out(packet_out);
    pspinsim_cb_set_pcie_slv_write(host_write);
    pspinsim_cb_set_pcie_slv_read(host_read);
    if (gdriver_add_ectx(program, NULL, what->payload, what->completion, fill, image, image_bytes, NULL, 0) !=
            GDRIVER_OK ||
        gdriver_run() != GDRIVER_OK || gdriver_fini() != GDRIVER_OK || has_failed)
        return EXIT_FAILURE;
    if (what->check != NULL && !what->check())
        return EXIT_FAILURE;
    printf("%s: %u packets, all results are right\n", what->program, arrived.count);
    return EXIT_SUCCESS;
}

#endif
