/* SPDX-License-Identifier: Apache-2.0 */
/* P4sPIN in the form that the sPIN paper (SC'17) prints: the listings of its appendix C.3, and declarations of its
 * appendix B, compile after this header with `__handler` before each handler. It includes <spin.h> and changes:
 *
 *   ptl_process_t                      an integer, the rank on a logical interface, also in ptl_header_t; structures of
 *                                      Portals keep the union (`me.match_id.rank`), whose name is `union ptl_process`
 *   ptl_user_header_t                  a typedef of the program, after this header and before the first header handler
 *                                      that reads user_hdr: it gives ptl_header_t the field user_hdr
 *   ptl_header_t, ptl_payload_t        also structure tags
 *   ptl_me_t                           its three handlers are of type ptl_handler_t, and ptl_handler_data, unless NULL,
 *                                      points to all fields of P4sPIN
 *   ptl_type_t, HANDLER_IOVEC          other names of ptl_datatype_t and PTL_HANDLER_IOVEC
 *   PTL_NUM_HPUS                       a constant for array sizes, at least the number of HPUs of every card
 *   malloc, free                       in handlers: blocks of HPU memory
 *
 * An entry with user_hdr_size = sizeof(ptl_user_header_t) reads the user header from the first bytes of a message, as
 * appendix B.3 defines it. With user_hdr_size = 0, user_hdr holds the message's hdr_data: the handlers of appendix C.3.5
 * pass the user header as the last argument of their puts, and a payload that began with it would overwrite data.
 *
 * The header is for C: the listings convert void * implicitly. Include it before <spin/connect.h>. */
#ifndef SPIN_PAPER_H
#define SPIN_PAPER_H

#ifdef __cplusplus
#error "spin/paper.h is for C, because C++ refuses the implicit conversions of the paper's listings; compile them as C"
#endif
#ifdef SPIN_CONNECT_H
#error "include spin/paper.h before spin/connect.h, whose handlers must have this header's types"
#endif

#include <spin.h>
#include <stdlib.h>

/* ---- Processes (App. B.3, B.6) ---------------------------------------------------------------------------------- */

/* Rank of a process. */
typedef ptl_rank_t spin_paper_process_t;

SPIN_HANDLER_CALL union ptl_process spin_paper_union(union ptl_process process) { return process; }

SPIN_HANDLER_CALL union ptl_process spin_paper_rank(spin_paper_process_t rank) {
    union ptl_process process = {.phys = {0, 0}};
    process.rank = rank;
    return process;
}

/* A process for a call of <spin.h>: from a rank, or from the union of Portals. */
#define SPIN_PAPER_PROCESS(id) _Generic((id), union ptl_process: spin_paper_union, default: spin_paper_rank)(id)

/* Like PtlGetId, for the rank of a logical interface. */
static inline __attribute__((unused)) int spin_paper_get_id(ptl_handle_ni_t ni_handle, spin_paper_process_t *id) {
    union ptl_process process;
    int rc = PtlGetId(ni_handle, &process);
    if (rc == PTL_OK)
        *id = process.rank;
    return rc;
}

/* ---- Arguments of handlers (App. B.3) ---------------------------------------------------------------------------- */

/* Fields of ptl_header_t: the layout of <spin.h>, where a process has nid and pid. */
#define SPIN_PAPER_HEADER                                                                                              \
    ptl_request_type_t type;                                                                                           \
    ptl_size_t length;                                                                                                 \
    spin_paper_process_t target_id;                                                                                    \
    ptl_pid_t target_pid;                                                                                              \
    spin_paper_process_t source_id;                                                                                    \
    ptl_pid_t source_pid;                                                                                              \
    ptl_match_bits_t match_bits;                                                                                       \
    ptl_size_t offset;                                                                                                 \
    ptl_hdr_data_t hdr_data;

/* ptl_header_t without a typedef ptl_user_header_t. */
typedef struct spin_paper_header {
    SPIN_PAPER_HEADER
#ifdef PTL_USER_HEADER
    PTL_USER_HEADER user_hdr;
#endif
} spin_paper_header;

_Static_assert(offsetof(struct spin_paper_header, source_id) == offsetof(struct ptl_header_t, source_id) &&
                   offsetof(struct spin_paper_header, hdr_data) == offsetof(struct ptl_header_t, hdr_data) &&
                   sizeof(struct spin_paper_header) == sizeof(struct ptl_header_t),
               "the card writes one layout");

#ifdef SPIN_PAPER_USER_HEADERS
/* Passed by spincc, for a source with several typedefs: the fields of all of them. */
#define SPIN_PAPER_USER_HDR                                                                                            \
    union {                                                                                                            \
        SPIN_PAPER_USER_HEADERS                                                                                        \
    }
#else
#define SPIN_PAPER_USER_HDR spin_paper_user_header
#endif

/* Names the type in `typedef struct {...} ptl_user_header_t;` and declares the header that contains it. From here on,
 * ptl_header_t is that header: each macro has its next meaning on its stack. */
#define SPIN_PAPER_DECLARES_USER_HEADER(name)                                                                          \
    _Pragma("pop_macro(\"ptl_header_t\")") name;                                                                       \
    struct spin_paper_header_with_user {                                                                               \
        SPIN_PAPER_HEADER                                                                                              \
        SPIN_PAPER_USER_HDR user_hdr;                                                                                  \
    };                                                                                                                 \
    typedef struct spin_paper_header_with_user spin_paper_header_with_user

#define ptl_header_t spin_paper_header_with_user
#pragma push_macro("ptl_header_t")
#undef ptl_header_t
#define ptl_header_t spin_paper_header

#ifdef SPIN_PAPER_SCAN
/* spincc looks for the typedefs in the preprocessed source. */
#elif defined(SPIN_PAPER_USER_HEADERS)
#define SPIN_PAPER_JOIN(prefix, line) SPIN_PAPER_JOINED(prefix, line)
#define SPIN_PAPER_JOINED(prefix, line) prefix##line
#define ptl_user_header_t SPIN_PAPER_JOIN(spin_paper_user_header_at_, __LINE__)
#elif !defined(PTL_USER_HEADER)
#define ptl_user_header_t spin_paper_user_header
#pragma push_macro("ptl_user_header_t")
#undef ptl_user_header_t
#define ptl_user_header_t                                                                                              \
    _Pragma("pop_macro(\"ptl_user_header_t\")") SPIN_PAPER_DECLARES_USER_HEADER(spin_paper_user_header)
#endif

/* ---- Matching entries (App. B.1, B.2) ---------------------------------------------------------------------------- */

/* Any handler of a matching entry, or NULL. */
typedef void *ptl_handler_t;

#define SPIN_PAPER_HANDLER_DATA                                                                                        \
    ptl_handler_t header_handler;                                                                                      \
    ptl_handler_t payload_handler;                                                                                     \
    ptl_handler_t completion_handler;                                                                                  \
    ptl_hpu_md_h hpu_memory;                                                                                           \
    const void *hpu_initial_state;                                                                                     \
    ptl_size_t hpu_initial_state_length;                                                                               \
    void *handler_host_mem_start;                                                                                      \
    ptl_size_t handler_host_mem_length;                                                                                \
    ptl_size_t user_hdr_size; /* bytes; 0 if user_hdr is the message's hdr_data */

/* The fields of an entry for handlers, apart from the entry (App. B.1). */
typedef struct ptl_handler_data {
    SPIN_PAPER_HANDLER_DATA
} ptl_handler_data;

/* Match list entry: ptl_me_t of <portals4.h> with App. B.1's types. Without handlers, hpu_memory is ignored. */
typedef struct spin_paper_me {
    void *start;
    ptl_size_t length;
    ptl_handle_ct_t ct_handle;
    ptl_uid_t uid;
    unsigned int options;
    union ptl_process match_id;
    ptl_match_bits_t match_bits;
    ptl_match_bits_t ignore_bits;
    ptl_size_t min_free;
    SPIN_PAPER_HANDLER_DATA
    const struct ptl_handler_data *ptl_handler_data; /* replaces the fields before it, unless NULL */
} spin_paper_me;

/* Like PtlMEAppendHandlers. */
static inline __attribute__((unused)) int spin_paper_append(ptl_handle_ni_t ni, ptl_pt_index_t pt_index,
                                                            const spin_paper_me *me, ptl_list_t list, void *user_ptr,
                                                            ptl_handle_me_t *me_handle) {
    if (me == NULL)
        return PTL_ARG_INVALID;
    const ptl_handler_data own = {
        me->header_handler,    me->payload_handler,          me->completion_handler,     me->hpu_memory,
        me->hpu_initial_state, me->hpu_initial_state_length, me->handler_host_mem_start, me->handler_host_mem_length,
        me->user_hdr_size};
    const ptl_handler_data *data = me->ptl_handler_data != NULL ? me->ptl_handler_data : &own;
    int runs = data->header_handler != NULL || data->payload_handler != NULL || data->completion_handler != NULL;
    const struct ptl_me entry = {
        .start = me->start,
        .length = me->length,
        .ct_handle = me->ct_handle,
        .uid = me->uid,
        .options = me->options,
        .match_id = me->match_id,
        .match_bits = me->match_bits,
        .ignore_bits = me->ignore_bits,
        .min_free = me->min_free,
        .header_handler = (ptl_header_handler_t)(uintptr_t)data->header_handler,
        .payload_handler = (ptl_payload_handler_t)(uintptr_t)data->payload_handler,
        .completion_handler = (ptl_completion_handler_t)(uintptr_t)data->completion_handler,
        .hpu_initial_state = runs ? data->hpu_initial_state : NULL,
        .hpu_initial_state_length = runs ? data->hpu_initial_state_length : 0,
        .handler_host_mem_start = data->handler_host_mem_start,
        .handler_host_mem_length = data->handler_host_mem_length,
        .user_hdr_size = data->user_hdr_size,
        .hpu_memory = runs ? data->hpu_memory : PTL_INVALID_HANDLE,
    };
    return PtlMEAppendHandlers(ni, pt_index, &entry, list, user_ptr, me_handle);
}

#define HANDLER_IOVEC PTL_HANDLER_IOVEC

/* ---- Card (3.2.2, App. B.6) -------------------------------------------------------------------------------------- */

typedef ptl_datatype_t ptl_type_t;

#undef PTL_NUM_HPUS
#define PTL_NUM_HPUS PTL_MAX_HPUS

/* The heap's blocks hold a full packet of the SC'17 cards, though the listings ask for less than they use. */
#ifdef __SPIN_DEVICE__
#include <spin/heap.h>
#define malloc(size) spin_malloc(size)
#define free(block) spin_free(block)
#endif

/* ---- New meanings of names in <spin.h> --------------------------------------------------------------------------- */

#define ptl_process_t spin_paper_process_t
#define ptl_me_t spin_paper_me
#define ptl_header_handler_t ptl_handler_t
#define ptl_payload_handler_t ptl_handler_t
#define ptl_completion_handler_t ptl_handler_t

#undef PtlMEAppend
#define PtlMEAppend spin_paper_append

#define PtlGetId(ni, id) _Generic((id), spin_paper_process_t *: spin_paper_get_id, default: (PtlGetId))(ni, id)

#define PtlPut(md, offset, length, ack, target, ...)                                                                   \
    (PtlPut)(md, offset, length, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlGet(md, offset, length, target, ...) (PtlGet)(md, offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlAtomic(md, offset, length, ack, target, ...)                                                                \
    (PtlAtomic)(md, offset, length, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlFetchAtomic(get_md, get_offset, put_md, put_offset, length, target, ...)                                    \
    (PtlFetchAtomic)(get_md, get_offset, put_md, put_offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlSwap(get_md, get_offset, put_md, put_offset, length, target, ...)                                           \
    (PtlSwap)(get_md, get_offset, put_md, put_offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlTriggeredPut(md, offset, length, ack, target, ...)                                                          \
    (PtlTriggeredPut)(md, offset, length, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlTriggeredGet(md, offset, length, target, ...)                                                               \
    (PtlTriggeredGet)(md, offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlTriggeredAtomic(md, offset, length, ack, target, ...)                                                       \
    (PtlTriggeredAtomic)(md, offset, length, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlTriggeredFetchAtomic(get_md, get_offset, put_md, put_offset, length, target, ...)                           \
    (PtlTriggeredFetchAtomic)(get_md, get_offset, put_md, put_offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlTriggeredSwap(get_md, get_offset, put_md, put_offset, length, target, ...)                                  \
    (PtlTriggeredSwap)(get_md, get_offset, put_md, put_offset, length, SPIN_PAPER_PROCESS(target), __VA_ARGS__)

#define PtlHandlerPutFromDevice(local, len, ct, ack, target, ...)                                                      \
    (PtlHandlerPutFromDevice)(local, len, ct, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerPutFromHost(offset, len, ct, ack, target, ...)                                                       \
    (PtlHandlerPutFromHost)(offset, len, ct, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerGetToHost(offset, len, ct, target, ...)                                                              \
    (PtlHandlerGetToHost)(offset, len, ct, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerGetToDevice(local, len, ct, target, ...)                                                             \
    (PtlHandlerGetToDevice)(local, len, ct, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerAtomicFromDevice(local, len, ct, ack, target, ...)                                                   \
    (PtlHandlerAtomicFromDevice)(local, len, ct, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerFetchAtomicFromDevice(local, result, len, ct, target, ...)                                           \
    (PtlHandlerFetchAtomicFromDevice)(local, result, len, ct, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerSwapFromDevice(local, result, operand, len, ct, target, ...)                                         \
    (PtlHandlerSwapFromDevice)(local, result, operand, len, ct, SPIN_PAPER_PROCESS(target), __VA_ARGS__)
#define PtlHandlerAtomicFromHost(offset, len, ct, ack, target, ...)                                                    \
    (PtlHandlerAtomicFromHost)(offset, len, ct, ack, SPIN_PAPER_PROCESS(target), __VA_ARGS__)

#endif
