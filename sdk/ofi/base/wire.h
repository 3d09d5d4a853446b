/* What host and handlers know of long messages. */
#ifndef OFI_LONG_H
#define OFI_LONG_H

#include <spin/types.h>
#include <stdint.h>

/* What the sender of a long message puts instead of it, the announcement, has no data, so that it needs no memory at the target. Its header
 * data has the message's number at the sender, and its offset has the length of the message, the units that are owed (flow.c), and the
 * portal table index that the get goes to. */
#define LONG_OFFSET(total, owed, pt) ((uint64_t)(pt) << 56 | (uint64_t)(owed) << 40 | (total))
#define LONG_TOTAL(offset) ((offset) & ((1ull << 40) - 1))
#define LONG_OWED(offset) ((uint16_t)((offset) >> 40))
#define LONG_PT(offset) ((uint32_t)((offset) >> 56))
#define LONG_COOKIE(header) ((uint32_t)((header) >> 32) & COOKIES)
#define COOKIES 0x7ffffffu
/* Flag of hdr_data: the message is long. */
#define HEADER_IS_LONG (1ull << 62)
/* Match bits of gets of long messages; on these cards they share the portal table entry with tagged messages, whose tags end below. */
#define LONG_BITS(cookie) ((1ull << 63) | (cookie))

/* The number of receives that may wait for a message with handlers at the same time; further ones are fetched by the CPU. */
enum { RECEIVE_STATES = 256 };

/* HPU memory of a receive. The host sets it, handlers only read it. */
struct receive_state {
    uint32_t index; /* user_ptr of the reply: 1 and following */
    uint32_t pt;    /* portal table index of the receive, to which a handler's get goes */
    uint64_t room;  /* bytes of the receive's memory */
};

/* The handler of a receive (handlers.c) */
extern const ptl_header_handler_t ofi_header_handler;

#endif
