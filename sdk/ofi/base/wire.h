/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol between endpoints: portal table indices, header data, offsets and match bits. The host and the handlers
 * use it.
 *
 * The announcement of a long message replaces it. It has no data, so the target needs no memory for it. Its header
 * data has the number of the message at its sender, the cookie; its offset has the length of the message, the units
 * that are owed (core/credit.h), and the portal table index for the get. */
#ifndef OFI_WIRE_H
#define OFI_WIRE_H

#include <spin/types.h>
#include <stdint.h>

/* ---- Portal table indices of a process --------------------------------------------------------------------------- */

enum { ENDPOINTS = 8 };    /* of a process: headers have 3 bits for an endpoint's number */
enum { ENDPOINT_PTS = 4 }; /* portal table indices of an endpoint */
enum pt_use { PT_MESSAGE, PT_TAGGED, PT_DATA, PT_CONTROL };
/* Entries for remote memory: that of the first domain, and the first index for further domains. */
enum { FIRST_REMOTE_PT = 0, FURTHER_REMOTE_PTS = 1 + ENDPOINTS * ENDPOINT_PTS };
/* Index of an endpoint's entry for this use, unless another library of the process has allocated it. */
#define ENDPOINT_PT(number, use) (1 + (number) * ENDPOINT_PTS + (use))

/* ---- Header data ----------------------------------------------------------------------------------------------------
 *
 * bits 0 to 31    remote CQ data
 * bits 32 to 58   cookie of a long message; units owed with a short one (16 bits)
 * bits 59 to 61   number of the sender's endpoint
 * bit 62          the message is long
 * bit 63          the message has remote CQ data */

#define HEADER_DATA(header) ((uint32_t)(header))
#define HEADER_OWED(header) ((uint16_t)((header) >> 32))
#define HEADER_WITH_OWED(owed) ((uint64_t)(owed) << 32)
#define HEADER_FROM(number) ((uint64_t)(number) << 59)
#define HEADER_NUMBER(header) ((unsigned)((header) >> 59) & (ENDPOINTS - 1))
#define HEADER_IS_LONG (1ull << 62)
#define HEADER_HAS_DATA (1ull << 63)

/* ---- Long messages ----------------------------------------------------------------------------------------------- */

#define LONG_OFFSET(total, owed, pt) ((uint64_t)(pt) << 56 | (uint64_t)(owed) << 40 | (total))
#define LONG_TOTAL(offset) ((offset) & ((1ull << 40) - 1))
#define LONG_OWED(offset) ((uint16_t)((offset) >> 40))
#define LONG_PT(offset) ((uint32_t)((offset) >> 56))
#define LONG_COOKIE(header) ((uint32_t)((header) >> 32) & COOKIES)
#define COOKIES 0x7ffffffu
/* Match bits for the get of a long message on a card with handlers. There the get shares its portal table entry with
 * tagged messages, whose tags leave the highest bit clear. */
#define LONG_BITS(cookie) ((1ull << 63) | (cookie))

/* ---- Control entry: match bits and header data ------------------------------------------------------------------- */

/* CONTROL_CQ_DATA brings remote CQ data after a write, CONTROL_RETURN returns units, CONTROL_ASK asks for some. */
enum { CONTROL_CQ_DATA, CONTROL_RETURN, CONTROL_ASK };
/* Header data of CONTROL_RETURN (value: units) and CONTROL_ASK (value: portal table index for the answer). */
#define CONTROL_DATA(kind, value) ((uint64_t)(kind) << 32 | (value))
#define CONTROL_KIND(header) ((enum kind)((header) >> 32 & 1))
#define CONTROL_VALUE(header) ((uint32_t)(header) & 0xffff)

/* ---- Receives with handlers -------------------------------------------------------------------------------------- */

/* Receives that may wait with a handler at the same time. The CPU fetches the long messages of further ones. */
enum { RECEIVE_STATES = 256 };

/* HPU memory of a receive. The host writes it, handlers only read it. */
struct receive_state {
    uint32_t index; /* user_ptr of the reply, from 1 */
    uint32_t pt;    /* portal table index of the receive; the handler's get uses the same */
    uint64_t room;  /* bytes of the receive's memory */
};

#endif
