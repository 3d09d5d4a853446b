/* What the handlers and the host agree on. */
#ifndef STRIDED_DDT_H
#define STRIDED_DDT_H

#include <packets.h>
#include <stdint.h>

/* The content of handler memory: where the data of a message belongs in host memory. */
struct strided_ddt {
    uint32_t block_bytes;
    uint32_t stride_bytes;
    uint32_t message_bytes; /* of host memory, from one message to the next */
};

/* Packets say where in the message their data is. */
struct strided_ddt_header {
    pkt_hdr_t packet;
    uint32_t offset;
};

#endif
