/* SPDX-License-Identifier: Apache-2.0 */
/* Vector datatype: blocks at a fixed distance in host memory, which the card unpacks at the destination (sPIN §5.2,
 * App. C.3.4) and packs at the sender (§5.2 "at both the send and receive side").
 *
 *     struct datatype_vector state = {.offset = 0, .block = 1536, .stride = 2560};
 *     ptl_me_t me = {.start = memory, .length = bytes, .payload_handler = datatype_unpack, …};
 *     PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory);
 *     me.hpu_initial_state = &state, me.hpu_initial_state_length = sizeof state;
 *
 * Byte i of the data is at offset + i / block * stride + i % block of the entry's memory. Packets are independent: they
 * may arrive in any order and be processed concurrently. The entry's event is posted once all data of the message is in
 * host memory. A message that loses packets (flow control), or whose handler fails, is a failure in the event and in
 * the counter. The data must be shorter than 4 GiB. README.md describes packing by a sender's card. */
#ifndef HANDLERS_DATATYPE_H
#define HANDLERS_DATATYPE_H

#include <spin.h>

/* HPU memory of the entry: MPI's vector type; set by the host, handlers only read it. */
struct datatype_vector {
    ptl_size_t offset; /* position of the first block in the entry's memory, bytes */
    uint32_t block;    /* bytes, at least 1 */
    uint32_t stride;   /* distance of the starts of consecutive blocks, bytes */
};

/* ---- Destination ------------------------------------------------------------------------------------------------- */

/* Writes `left` bytes, starting at byte `position` of the data, to the blocks. The DMAs do not wait for each other; the
 * card executes them in order, so waiting for the last one is enough. */
static inline int datatype_scatter(const struct datatype_vector *v, uint32_t position, const uint8_t *from,
                                   uint32_t left) {
    uint32_t block = v->block, number = position / block, within = position % block;
    ptl_size_t at = v->offset + (ptl_size_t)number * v->stride + within;
    ptl_dma_h last;
    for (uint32_t piece = block - within; left > piece; piece = block) {
        if (PtlHandlerDMAToHostNB(from, at, piece, PTL_ME_HOST_MEM, &last))
            return FAIL;
        at += v->stride - within;
        from += piece;
        left -= piece;
        within = 0;
    }
    if (PtlHandlerDMAToHostNB(from, at, left, PTL_ME_HOST_MEM, &last))
        return FAIL;
    return PtlHandlerDMAWait(last) ? FAIL : SUCCESS;
}

/* Payload handler: writes each piece of a block in the packet by one DMA. Fails when a block is outside the entry's
 * memory. */
__handler int datatype_unpack(const ptl_payload_t p, void *state) {
    return datatype_scatter(state, (uint32_t)p.offset, p.base, p.length);
}

/* Header of each message of datatype_send. */
struct datatype_packet {
    uint64_t position; /* position of the following data, bytes */
};

/* Payload handler: unpacks a message of datatype_send, which contains the position of its data. Also fails when the
 * message is too short for that. */
__handler int datatype_unpack_packet(const ptl_payload_t p, void *state) {
    const struct datatype_packet *packet = (const void *)p.base;
    if (p.length <= sizeof *packet)
        return FAIL;
    return datatype_scatter(state, (uint32_t)packet->position, p.base + sizeof *packet, p.length - sizeof *packet);
}

/* ---- Sender ------------------------------------------------------------------------------------------------------ */

enum {
    DATATYPE_RUN = 4,       /* packets packed by one handler; it starts the DMAs of all before it waits for the first */
    DATATYPE_BUFFERS = 8,   /* concurrently packing handlers: one for each HPU of the papers' cards */
    DATATYPE_PACKET = 4096, /* bytes of a packet at most */
};

/* HPU memory of the sender's entry; set by the host, except for `claimed`, initially zero, and the buffers. */
struct datatype_sender {
    struct datatype_vector vector;      /* layout in the entry's memory */
    ptl_match_bits_t bits;              /* match bits of messages to datatype_unpack_packet */
    uint32_t target;                    /* destination rank */
    uint32_t length;                    /* bytes of the data */
    uint32_t packet;                    /* max_payload_size of the interface, at most DATATYPE_PACKET */
    uint32_t claimed[DATATYPE_BUFFERS]; /* 1 while a handler uses the buffer of this number */
};

/* Bytes of HPU memory for the sender's entry: the state and the buffers after it. */
#define DATATYPE_SENDER_BYTES (sizeof(struct datatype_sender) + DATATYPE_BUFFERS * DATATYPE_RUN * DATATYPE_PACKET)

/* Bytes of data in each message but the last one. */
static inline uint32_t datatype_step(uint32_t packet) { return packet - (uint32_t)sizeof(struct datatype_packet); }

/* Messages that the target receives. */
static inline uint32_t datatype_messages(uint32_t length, uint32_t packet) {
    return (length + datatype_step(packet) - 1) / datatype_step(packet);
}

/* Messages that the sender's entry receives: calls of datatype_send. */
static inline uint32_t datatype_runs(uint32_t length, uint32_t packet) {
    return (datatype_messages(length, packet) + DATATYPE_RUN - 1) / DATATYPE_RUN;
}

/* The last two DMAs of a packet. Reads of unequal length may overtake each other, but no piece of a packet before the
 * last one is longer than the last but one. */
struct datatype_reads {
    ptl_dma_h last_but_one, last;
    bool two;
};

/* Starts to read `left` bytes of the data from byte `position` on. */
static inline int datatype_gather(const struct datatype_vector *v, uint32_t position, uint8_t *to, uint32_t left,
                                  struct datatype_reads *reads) {
    uint32_t block = v->block, number = position / block, within = position % block;
    ptl_size_t at = v->offset + (ptl_size_t)number * v->stride + within;
    reads->two = false;
    for (uint32_t piece = block - within; left > piece; piece = block) {
        if (PtlHandlerDMAFromHostNB(at, to, piece, PTL_ME_HOST_MEM, &reads->last_but_one))
            return FAIL;
        reads->two = true;
        at += v->stride - within;
        to += piece;
        left -= piece;
        within = 0;
    }
    return PtlHandlerDMAFromHostNB(at, to, left, PTL_ME_HOST_MEM, &reads->last);
}

/* Packs and sends DATATYPE_RUN packets from byte `position` of the data on. */
static inline int datatype_pack(const struct datatype_sender *s, uint32_t position, uint8_t *buffer) {
    struct datatype_reads reads[DATATYPE_RUN];
    uint32_t step = datatype_step(s->packet), left = s->length - position, count = 0;
    for (uint8_t *at = buffer; count < DATATYPE_RUN && count * step < left; at += DATATYPE_PACKET, count++) {
        uint32_t done = count * step, part = left - done < step ? left - done : step;
        ((struct datatype_packet *)(void *)at)->position = position + done;
        if (datatype_gather(&s->vector, position + done, at + sizeof(struct datatype_packet), part, &reads[count]))
            return FAIL;
    }
    for (uint32_t i = 0; i < count; i++, buffer += DATATYPE_PACKET) {
        uint32_t done = i * step, part = left - done < step ? left - done : step;
        if ((reads[i].two && PtlHandlerDMAWait(reads[i].last_but_one)) || PtlHandlerDMAWait(reads[i].last) ||
            PtlHandlerPutFromDevice(buffer, sizeof(struct datatype_packet) + part, 0, PTL_NO_ACK_REQ,
                                    (ptl_process_t){.rank = s->target}, s->bits, 0, NULL, 0))
            return FAIL;
    }
    return PROCEED;
}

/* Header handler: packs and sends some packets, after a message to itself for the following ones. The message is empty;
 * its header data is the position of the first byte to send. */
__handler int datatype_send(const ptl_header_t h, void *state) {
    struct datatype_sender *s = state;
    uint32_t position = (uint32_t)h.hdr_data, run = DATATYPE_RUN * datatype_step(s->packet), buffer = 0;
    if (position >= s->length || s->packet > DATATYPE_PACKET)
        return FAIL;
    if (s->length - position > run &&
        PtlHandlerPutFromDevice(s, 0, 0, PTL_NO_ACK_REQ, h.target_id, h.match_bits, 0, NULL, position + run))
        return FAIL;
    while (__atomic_exchange_n(&s->claimed[buffer], 1, __ATOMIC_ACQUIRE)) {
        buffer = buffer + 1 < DATATYPE_BUFFERS ? buffer + 1 : 0;
        PtlHandlerYield();
    }
    int result = datatype_pack(s, position, (uint8_t *)(s + 1) + buffer * DATATYPE_RUN * DATATYPE_PACKET);
    __atomic_store_n(&s->claimed[buffer], 0, __ATOMIC_RELEASE);
    return result;
}

#endif
