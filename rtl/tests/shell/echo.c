/* SPDX-License-Identifier: Apache-2.0 */
// Handlers of a card that answers pings and UDP packets: a frame is returned to its sender. Malformed frames and those
// with a wrong checksum are counted and not answered. Messages of several packets are reported to the host.
#include "pspin.h"

enum { ETHERNET = 14, IP = 20, UDP = 17, REQUEST = 8, RECORD = 64 };

// Frames without an answer. The driver reads the counts.
uint32_t rejected[3]; // malformed, wrong checksum, no request
// Start of each record for the host, supplied by the host. The last word of a record is the number of its message.
_Alignas(64) uint32_t greeting[RECORD / 4];
uint32_t messages;

enum { MALFORMED, WRONG_SUM, NO_REQUEST };

// Network byte order is big-endian.
static inline uint32_t number(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

// Internet checksum over `size` bytes at an even address, added to `sum`, in the byte order of the HPU: the checksum is
// independent of it.
static uint32_t sum_of(uint32_t sum, const uint8_t *at, uint32_t size) {
    const uint16_t *half = (const uint16_t *)at;
    for (; size >= 2; size -= 2)
        sum += *half++;
    if (size)
        sum += *(const uint8_t *)half;
    return sum;
}

static inline uint32_t folded(uint32_t sum) {
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (sum & 0xFFFF) + (sum >> 16);
}

static void swap(uint8_t *one, uint8_t *other, uint32_t size) {
    for (uint32_t i = 0; i < size; i += 2) {
        const uint16_t half = *(uint16_t *)(one + i);
        *(uint16_t *)(one + i) = *(uint16_t *)(other + i);
        *(uint16_t *)(other + i) = half;
    }
}

static void reject(uint32_t why) { __atomic_fetch_add(&rejected[why], 1, __ATOMIC_RELAXED); }

// The rules of the card pass IPv4 without options, and no fragments.
__handler__ void echo(handler_args_t *args) {
    uint8_t *frame = args->task->pkt_mem;
    const uint32_t size = args->task->pkt_mem_size;
    uint8_t *ip = frame + ETHERNET;
    uint8_t *data = ip + IP;
    const uint32_t length = size >= ETHERNET + IP + 8 ? number(ip + 2) : 0;
    if (length < IP + 8 || length > size - ETHERNET)
        return reject(MALFORMED); // short frames are padded, so the frame may exceed the packet
    if (folded(sum_of(0, ip, IP)) != 0xFFFF)
        return reject(WRONG_SUM);
    if (ip[9] == UDP) {
        const uint32_t bytes = number(data + 4);
        if (bytes < 8 || bytes > length - IP)
            return reject(MALFORMED);
        // The checksum covers addresses, protocol and length, too. A packet may have none.
        const uint32_t pseudo = sum_of((uint32_t)UDP << 8, ip + 12, 8) + *(uint16_t *)(data + 4);
        if (*(uint16_t *)(data + 6) && folded(sum_of(pseudo, data, bytes)) != 0xFFFF)
            return reject(WRONG_SUM);
        swap(data, data + 2, 2);
    } else {
        if (folded(sum_of(0, data, length - IP)) != 0xFFFF)
            return reject(WRONG_SUM);
        if (data[0] != REQUEST || data[1] != 0)
            return reject(NO_REQUEST);
        data[0] = 0; // a reply; the checksum grows by the difference
        *(uint16_t *)(data + 2) = (uint16_t)folded(*(uint16_t *)(data + 2) + REQUEST);
    }
    swap(frame, frame + 6, 6);
    swap(ip + 12, ip + 16, 4);
    spin_send_packet(frame, size, 0);
}

static uint64_t host_memory(const task_t *task) { return (uint64_t)task->host_mem_high << 32 | task->host_mem_low; }

// Start of a message.
__handler__ void begin(handler_args_t *args) {
    spin_cmd_t read;
    spin_dma_from_host(host_memory(args->task), (uintptr_t)greeting, RECORD, false, &read);
    spin_cmd_wait(read);
}

// End of a message: the host gets a record, after those of earlier messages, and an event.
__handler__ void end(handler_args_t *args) {
    _Alignas(64) uint32_t record[RECORD / 4];
    const uint32_t message = __atomic_fetch_add(&messages, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < RECORD / 4; i++)
        record[i] = greeting[i];
    record[RECORD / 4 - 1] = message;
    const uint64_t room = args->task->host_mem_size / RECORD - 1;
    const uint64_t place = 1 + message % room;
    spin_cmd_t write;
    spin_dma_to_host(host_memory(args->task) + RECORD * place, (uintptr_t)record, RECORD, true, &write);
    spin_cmd_wait(write);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    (void)handler_mem;
    *hh = begin;
    *ph = echo;
    *th = end;
}
