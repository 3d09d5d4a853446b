/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the words of a message of 1 MiB, as PsPIN §IV-C does. */
#include "../../common/case.h"
#include "../aggregate.h"

#define MESSAGE_WORDS (1 << 18)

static void prepare(void) {
    uint32_t words = words_in(options.size);
    if (options.packets == 0)
        options.packets = (MESSAGE_WORDS + words - 1) / words;
    host_bytes = AGGREGATE_RESULT(options.messages);
}

/* The last packet of a message has its remainder. */
static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    uint32_t words = words_in(size), before = number * words;
    if (before < MESSAGE_WORDS && MESSAGE_WORDS - before < words)
        words = MESSAGE_WORDS - before;
    for (uint32_t word = 0; word < words; word++)
        set_word(packet, word, random_word());
    return use_case->header_bytes + 4 * words;
}

static bool check(void) {
    uint32_t *sums = memory(options.messages * sizeof *sums);
    for (uint32_t at = 0; at < arrived.count; at++) {
        const struct packet *packet = &arrived.all[at];
        for (uint32_t word = 0; word < words_in(packet->length); word++)
            sums[packet->message] += word_of(packet, word);
    }
    bool is_right = true;
    for (uint32_t message = 0; is_right && message < options.messages; message++)
        is_right = is_equal(host_word(AGGREGATE_RESULT(message)), HOST_DONE | sums[message], "sum of message", message);
    free(sums);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case aggregate = {
        .program = "aggregate",
        .payload = "aggregate_ph",
        .completion = "aggregate_th",
        .defaults = {1, 0, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 4,
        .most_bytes = 9216,
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&aggregate, argc, argv);
}
