/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters a message of 1 MiB in blocks of 256 B with a stride of 512 B, as PsPIN §IV-C does. */
#include "../../common/case.h"
#include "../strided_ddt.h"

#define MESSAGE_BYTES (1 << 20)

static struct strided_ddt layout = {256, 512, 512 * (MESSAGE_BYTES / 256)};

static uint32_t data_in(uint32_t length) { return length - (uint32_t)sizeof(struct strided_ddt_header); }

static void prepare(void) {
    uint32_t data = data_in(options.size), whole = (MESSAGE_BYTES + data - 1) / data;
    if (options.packets > whole) {
        fprintf(stderr, "strided_ddt: a message of 1 MiB has at most %u packets of %u B\n", whole, options.size);
        exit(2);
    }
    if (options.packets == 0)
        options.packets = whole;
    image = &layout;
    image_bytes = sizeof layout;
    host_bytes = (uint64_t)options.messages * layout.message_bytes;
}

/* The last packet of a message has its remainder. */
static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    uint32_t offset = number * data_in(size), left = MESSAGE_BYTES - offset;
    uint32_t length = data_in(size) < left ? size : left + (uint32_t)sizeof(struct strided_ddt_header);
    ((struct strided_ddt_header *)packet->bytes)->offset = offset;
    return make_random(packet, number, length);
}

static bool check(void) {
    uint8_t *expected = memory(host_bytes);
    for (uint32_t at = 0; at < arrived.count; at++) {
        const struct packet *packet = &arrived.all[at];
        const struct strided_ddt_header *header = (struct strided_ddt_header *)packet->bytes;
        uint8_t *message = expected + packet->message * layout.message_bytes;
        for (uint32_t byte = 0; byte < data_in(packet->length); byte++) {
            uint32_t offset = header->offset + byte;
            uint32_t place = offset / layout.block_bytes * layout.stride_bytes + offset % layout.block_bytes;
            message[place] = packet->bytes[sizeof *header + byte];
        }
    }
    bool is_right = true;
    for (uint32_t at = 0; is_right && at < host_bytes; at += layout.message_bytes)
        is_right = is_same(host + at, expected + at, layout.message_bytes, "host memory of message",
                           at / layout.message_bytes);
    free(expected);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case strided_ddt = {
        .program = "strided_ddt",
        .payload = "strided_ddt_ph",
        .defaults = {1, 0, 1024},
        .header_bytes = sizeof(struct strided_ddt_header),
        .least_data = 4,
        .most_bytes = 9216,
        .l1_bytes = sizeof(struct strided_ddt_header),
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&strided_ddt, argc, argv);
}
