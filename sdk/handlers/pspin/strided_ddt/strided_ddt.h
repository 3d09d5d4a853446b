/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host. */
#ifndef STRIDED_DDT_H
#define STRIDED_DDT_H

#include <packets.h>
#include <stdint.h>

/* Contents of handler memory: layout of a message's data in host memory. */
struct strided_ddt {
    uint32_t block_bytes;
    uint32_t stride_bytes;
    uint32_t message_bytes; /* distance of consecutive messages in host memory */
};

/* Header with the offset of a packet's data in the message. */
struct strided_ddt_header {
    pkt_hdr_t packet;
    uint32_t offset;
};

#endif
