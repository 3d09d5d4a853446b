/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the listings in sPIN App. C.3, whose instructions count.py counts. Loops, conditions and services are those of
 * the listings, and so are their mistakes, since nothing runs these handlers. Services of the card are calls of functions,
 * as for a cross compiler with a library; in all other experiments they are inline and store the command of a put or of DMA. */
#include <spin.h>

#define SERVICE __attribute__((noinline)) static

/* Type of sizes and offsets; -DSIZE=uint32_t shows the share of 64-bit arithmetic. */
#ifndef SIZE
#define SIZE ptl_size_t
#endif
typedef SIZE size;

enum { TAG = 10, PARITY_TAG = 53 };

SERVICE int put(const void *local, size length, ptl_process_t target, ptl_match_bits_t bits, ptl_hdr_data_t hdr_data) {
    return PtlHandlerPutFromDevice(local, length, 0, PTL_NO_ACK_REQ, target, bits, 0, NULL, hdr_data);
}

SERVICE int fetch(size offset, void *local, size length) {
    return PtlHandlerDMAFromHostB(offset, local, length, PTL_ME_HOST_MEM);
}

SERVICE int store(const void *local, size offset, size length) {
    return PtlHandlerDMAToHostB(local, offset, length, PTL_ME_HOST_MEM);
}

static uint32_t heap[1024];
SERVICE void *allocate(size bytes) { return bytes <= sizeof heap ? heap : NULL; }
SERVICE void release(void *memory) { ((uint32_t *)memory)[0] = 0; }

/* C.3.1 */
struct ping_pong {
    size offset;
    ptl_process_t source;
    size length;
    bool stream;
};

__handler int ping_pong_payload(const ptl_payload_t p, void *state) {
    const struct ping_pong *i = state;
    put(p.base, (size)p.length, i->source, TAG, 0);
    return SUCCESS;
}

/* C.3.3 */
struct broadcast {
    size offset;
    uint32_t my_rank, p;
    bool stream;
    size length;
};

__handler int broadcast_payload(const ptl_payload_t p, void *state) {
    const struct broadcast *i = state;
    for (uint32_t half = i->p / 2; half >= 1; half /= 2)
        if (i->my_rank % (half * 2) == 0)
            put(p.base, (size)p.length, (ptl_process_t){.rank = i->my_rank + half}, TAG, 0);
    return SUCCESS;
}

/* C.3.4 */
struct vector {
    size offset, vlen, stride;
};

__handler int datatype_payload(const ptl_payload_t p, void *state) {
    const struct vector *i = state;
    size first = (i->offset + (size)p.offset) / i->vlen, last = (i->offset + (size)p.offset + (size)p.length) / i->vlen;
    int done = 0;
    for (int j = (int)first; j <= (int)last; j++) {
        size in_block = (i->offset + (size)p.offset + (size)done) % i->vlen;
        size offset = (size)j % (i->vlen + i->stride) + in_block;
        size left = (size)p.length - (size)done;
        size part = i->vlen - in_block < left ? i->vlen - in_block : left;
        store(p.base + done, offset, part);
        done += (int)part;
    }
    return SUCCESS;
}

/* C.3.5 */
struct server {
    ptl_process_t source, parity;
    size offset;
};

__handler int server_header(const ptl_header_t h, void *state) {
    struct server *i = state;
    i->source = h.source_id;
    return PROCESS_DATA;
}

/* Exclusive or of the words of a packet and of those of the host. */
static inline void mix(uint32_t *buf, const uint32_t *data, size words) {
    for (uint32_t i = 0; i < words; i++)
        buf[i] ^= data[i];
}

__handler int server_payload(const ptl_payload_t p, void *state) {
    const struct server *i = state;
    uint32_t *buf = allocate((size)p.length / sizeof(uint32_t));
    fetch(i->offset + (size)p.offset, buf, (size)p.length);
    mix(buf, (const uint32_t *)p.base, (size)p.length / sizeof(uint32_t));
    store(buf, i->offset + (size)p.offset, (size)p.length);
    put(buf, (size)p.length, i->parity, PARITY_TAG, i->source.rank);
    release(buf);
    return SUCCESS;
}

struct parity {
    ptl_process_t source, client;
    size offset;
};

__handler int parity_header(const ptl_header_t h, void *state) {
    struct parity *i = state;
    i->source = h.source_id;
    i->client = (ptl_process_t){.rank = (ptl_rank_t)h.hdr_data};
    return PROCESS_DATA;
}

__handler int parity_payload(const ptl_payload_t p, void *state) {
    const struct parity *i = state;
    uint32_t *buf = allocate((size)p.length / sizeof(uint32_t));
    fetch(i->offset + (size)p.offset, buf, (size)p.length);
    mix(buf, (const uint32_t *)p.base, (size)p.length / sizeof(uint32_t));
    store(buf, i->offset + (size)p.offset, (size)p.length);
    release(buf);
    return SUCCESS;
}

__handler int parity_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    const struct parity *i = state;
    uint8_t reply = SUCCESS;
    (void)dropped_bytes;
    (void)flow_control_triggered;
    put(&reply, 1, i->source, 30, i->client.rank);
    return SUCCESS;
}

int main(void) { return 0; }
