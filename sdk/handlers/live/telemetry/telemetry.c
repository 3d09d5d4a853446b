/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the datagrams of each flow in a count-min sketch (Cormode and Muthukrishnan, J. Algorithms 55, 2005): four
 * rows of 2,048 counters, one counter of each row for a flow. Their minimum is never less than the flow's datagrams, and
 * exceeds them by more than e/2048 of all with a probability of at most e^-4.
 *
 * A datagram of 13 bytes to port 9001 asks for a flow: source and destination address, source and destination port,
 * protocol, as in their headers. The answer has the estimate and the number of all datagrams, both of 32 bits,
 * big-endian. */
#include "../common/live.h"

enum { ROWS = 4, COLUMNS = 2048, ASK = 9001 };

struct flow {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint8_t protocol;
} __attribute__((__packed__));

struct sketch {
    volatile int32_t all;
    volatile int32_t counters[ROWS][COLUMNS];
};

__attribute__((used, section(".l2_handler_data"))) struct sketch telemetry_sketch;

/* FNV-1a with another start in each row, and a last mix of the high bits (MurmurHash3's). */
static uint32_t column(const struct flow *flow, uint32_t row) {
    const uint8_t *bytes = (const uint8_t *)flow;
    uint32_t hash = 2166136261u ^ (row * 0x9e3779b9u);
    for (uint32_t i = 0; i < sizeof *flow; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    hash ^= hash >> 16;
    hash *= 0x85ebca6bu;
    return (hash ^ hash >> 13) % COLUMNS;
}

__handler__ void telemetry_ph(handler_args_t *args) {
    struct live_packet packet;
    uint8_t *data;
    uint32_t size;
    if (!live_ip(args->task, &packet))
        return;
    udp_hdr_t *udp = live_udp(&packet, &data, &size);
    if (!udp)
        return;
    struct sketch *sketch = args->task->handler_mem;
    struct flow flow;
    if (ntohs(udp->dst_port) != ASK) {
        flow =
            (struct flow){packet.ip->source_id, packet.ip->dest_id, udp->src_port, udp->dst_port, packet.ip->protocol};
        for (uint32_t row = 0; row < ROWS; row++)
            amo_add(&sketch->counters[row][column(&flow, row)], 1);
        amo_add(&sketch->all, 1);
        return;
    }
    if (size < sizeof flow)
        return;
    memcpy(&flow, data, sizeof flow);
    uint32_t least = UINT32_MAX;
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t count = (uint32_t)sketch->counters[row][column(&flow, row)];
        least = MIN(least, count);
    }
    uint32_t answer[2] = {htonl(least), htonl((uint32_t)sketch->all)};
    memcpy(data, answer, sizeof answer);
    live_answer_udp(&packet, udp, sizeof answer);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = telemetry_ph;
    *th = NULL;
    *handler_mem = NULL;
}
