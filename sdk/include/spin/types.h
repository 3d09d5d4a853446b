/* SPDX-License-Identifier: Apache-2.0 */
/* P4sPIN types in ptl_me_t (sPIN App. B.1). portals4.h includes this file after its scalar types and ptl_process_t;
 * programs include <spin.h>. */
#ifndef SPIN_TYPES_H
#define SPIN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* Argument of a header handler: defined in <spin.h>, after the program's PTL_USER_HEADER. */
typedef struct ptl_header_t ptl_header_t;

/* Argument of a payload handler: defined in <spin.h>. */
typedef struct ptl_payload_t ptl_payload_t;

/* A block of HPU memory on the card, from PtlHPUAllocMem, for ptl_me_t.hpu_memory; PTL_INVALID_HANDLE means none (sPIN
 * App. B.2). A scalar: copy and compare it like every Portals handle. */
typedef uint32_t ptl_hpu_md_h;

/* The three handlers of a matching entry (sPIN App. B.3, B.4, B.5). The host never calls through these pointers; a
 * handler's address only names the handler. They run on the card's HPUs.
 *   state           start of the entry's HPU memory on the card; shared by all handlers of the entry
 *   dropped_bytes   payload bytes that payload handlers or flow control dropped
 *   return          one of the handler return codes of <spin.h> */
typedef int (*ptl_header_handler_t)(const ptl_header_t h, void *state);
typedef int (*ptl_payload_handler_t)(const ptl_payload_t p, void *state);
typedef int (*ptl_completion_handler_t)(int dropped_bytes, bool flow_control_triggered, void *state);

#endif
