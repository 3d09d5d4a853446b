/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the words of 512 packets with 512 words each, as PsPIN §IV-C does. */
#include "../../common/case.h"
#include "../reduce.h"

static struct reduce state;

static void prepare(void) {
    state = (struct reduce){.messages_left = options.messages, .words = words_in(options.size)};
    image = &state;
    image_bytes = sizeof state;
    host_bytes = REDUCE_PART(NUM_CLUSTERS);
}

static bool check(void) {
    if (!is_equal(host_word(0), HOST_DONE | state.words, "word of completion", 0))
        return false;
    for (uint32_t word = 0; word < state.words; word++) {
        uint32_t sum = 0, expected = 0;
        for (uint32_t cluster = 0; cluster < NUM_CLUSTERS; cluster++)
            sum += host_half(REDUCE_PART(cluster) + 4 * word);
        for (uint32_t at = 0; at < arrived.count; at++)
            expected += word_of(&arrived.all[at], word);
        if (!is_equal(sum, expected, "sum", word))
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static const struct use_case reduce = {
        .program = "reduce",
        .payload = "reduce_ph",
        .completion = "reduce_th",
        .defaults = {1, 512, sizeof(pkt_hdr_t) + 4 * 512},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 4,
        .most_bytes = sizeof(pkt_hdr_t) + 4 * REDUCE_WORDS,
        .prepare = prepare,
        .make = make_random,
        .check = check,
    };
    return run_case(&reduce, argc, argv);
}
