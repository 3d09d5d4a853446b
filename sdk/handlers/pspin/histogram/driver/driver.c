/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values 0 to 1,024 in 512 messages of 512 words, as PsPIN §IV-C does. */
#include "../../common/case.h"
#include "../histogram.h"

#define MESSAGE_WORDS 512

static struct histogram state;

static void prepare(void) {
    if (options.packets == 0)
        options.packets = (MESSAGE_WORDS + words_in(options.size) - 1) / words_in(options.size);
    state.messages_left = options.messages;
    image = &state;
    image_bytes = sizeof state;
    host_bytes = HISTOGRAM_PART(NUM_CLUSTERS);
}

/* The last packet of a message has its remainder. */
static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    uint32_t words = words_in(size), before = number * words;
    if (before < MESSAGE_WORDS && MESSAGE_WORDS - before < words)
        words = MESSAGE_WORDS - before;
    for (uint32_t word = 0; word < words; word++)
        set_word(packet, word, random_below(HISTOGRAM_VALUES));
    return use_case->header_bytes + 4 * words;
}

static bool check(void) {
    static uint32_t expected[HISTOGRAM_VALUES];
    for (uint32_t at = 0; at < arrived.count; at++) {
        for (uint32_t word = 0; word < words_in(arrived.all[at].length); word++)
            expected[word_of(&arrived.all[at], word)]++;
    }
    if (!is_equal(host_word(0), HOST_DONE | HISTOGRAM_VALUES, "word of completion", 0))
        return false;
    for (uint32_t value = 0; value < HISTOGRAM_VALUES; value++) {
        uint32_t number = 0;
        for (uint32_t cluster = 0; cluster < NUM_CLUSTERS; cluster++)
            number += host_half(HISTOGRAM_PART(cluster) + 4 * value);
        if (!is_equal(number, expected[value], "number of values", value))
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static const struct use_case histogram = {
        .program = "histogram",
        .payload = "histogram_ph",
        .completion = "histogram_th",
        .defaults = {512, 0, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 4,
        .most_bytes = 9216,
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&histogram, argc, argv);
}
