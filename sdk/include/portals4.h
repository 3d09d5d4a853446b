/* SPDX-License-Identifier: Apache-2.0 */
/* Portals 4 (API version 4.3), for programs started by spinrun.
 *
 * Link with -lportals; spincc does so automatically. Programs with handlers include <spin.h>, which includes this file.
 *
 * Rules for every function, unless its comment states an exception:
 *   - It returns PTL_OK (0) or another return code; PTL_NO_INIT before PtlInit; PTL_ARG_INVALID for a bad handle,
 *     index,
 *     option or NULL pointer. Output parameters are written only on PTL_OK.
 *   - It does not block. It takes the simulated time charged by the host and card of the machine.
 *   - Structures and arrays are read during the call and may be changed or freed after it. Memory described by them
 *     (start, length) belongs to the program and must stay valid until the entry is unlinked or the operation completes.
 *   - It is thread-safe. Sizes and offsets are bytes, times milliseconds of simulated time.
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A caller that ignores the return code may wait for an operation that never started, so compilers warn unless the code
 * is cast to void. GCC supports the attribute in every mode, but warns about it where extensions of C are disabled. */
#if (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L) || (defined(__cplusplus) && __cplusplus >= 201703L)
#define PTL_CHECKED [[nodiscard]]
#elif defined(__clang__)
#define PTL_CHECKED __attribute__((warn_unused_result))
#elif defined(__has_c_attribute) && !defined(__STRICT_ANSI__)
#if __has_c_attribute(nodiscard)
#define PTL_CHECKED [[nodiscard]]
#endif
#endif
#ifndef PTL_CHECKED
#define PTL_CHECKED
#endif

/* ---- Scalar types ------------------------------------------------------------------------------------------------ */

typedef uint64_t ptl_size_t;          /* bytes, or a count */
typedef uint64_t ptl_match_bits_t;    /* bits by which a message is matched */
typedef uint64_t ptl_hdr_data_t;      /* user data in a message's header */
typedef uint32_t ptl_pt_index_t;      /* index of a portal table entry */
typedef uint32_t ptl_nid_t;           /* node id */
typedef uint32_t ptl_pid_t;           /* process id on a node */
typedef uint32_t ptl_rank_t;          /* rank of a process in the map of a logical interface, from 0 */
typedef uint32_t ptl_uid_t;           /* user id */
typedef unsigned int ptl_time_t;      /* milliseconds */
typedef unsigned int ptl_interface_t; /* network interface number of the node */
typedef int ptl_sr_value_t;           /* value of a status register */

/* Handles are scalars: they can be copied, compared and printed. Processes of a job that create their objects in the
 * same order get the same handles for corresponding objects. */
typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t; /* network interface */
typedef ptl_handle_any_t ptl_handle_eq_t; /* event queue */
typedef ptl_handle_any_t ptl_handle_ct_t; /* counting event */
typedef ptl_handle_any_t ptl_handle_md_t; /* memory descriptor */
typedef ptl_handle_any_t ptl_handle_le_t; /* list entry */
typedef ptl_handle_any_t ptl_handle_me_t; /* match list entry */

typedef unsigned char ptl_list_t;       /* PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST */
typedef unsigned char ptl_search_op_t;  /* PTL_SEARCH_ONLY, PTL_SEARCH_DELETE */
typedef unsigned char ptl_ack_req_t;    /* PTL_NO_ACK_REQ and following */
typedef unsigned char ptl_op_t;         /* PTL_MIN and following */
typedef unsigned char ptl_datatype_t;   /* PTL_INT8_T and following */
typedef unsigned char ptl_event_kind_t; /* PTL_EVENT_GET and following */
typedef unsigned char ptl_ni_fail_t;    /* PTL_NI_OK and following */

/* ---- Return codes ------------------------------------------------------------------------------------------------ */

#define PTL_OK 0              /* success */
#define PTL_ARG_INVALID 1     /* bad handle, option, index, size, list, or pair of operation and datatype */
#define PTL_CT_NONE_REACHED 2 /* PtlCTPoll timed out */
#define PTL_EQ_DROPPED 3      /* an event is returned, and at least one before it was lost */
#define PTL_EQ_EMPTY 4        /* no event; PtlEQPoll timed out */
#define PTL_FAIL 5            /* any other error; a message on standard error describes it */
#define PTL_IGNORED 6         /* PtlSetMap: the map is already set */
#define PTL_IN_USE 7          /* unlink of an entry that an operation or an unexpected header uses */
#define PTL_LIST_TOO_LONG 8   /* more than max_list_size entries */
#define PTL_NO_INIT 9         /* before PtlInit or after the last PtlFini */
#define PTL_NO_SPACE 10       /* a limit of the interface is reached */
#define PTL_PID_IN_USE 11     /* the requested pid is taken */
#define PTL_PT_FULL 12        /* no free portal table entry */
#define PTL_PT_EQ_NEEDED 13   /* PTL_PT_FLOWCTRL without an event queue */
#define PTL_PT_IN_USE 14      /* the portal table index is taken, or still has entries */
#define PTL_ABORTED 15        /* PtlAbort ended the wait */
#define PTL_INTERRUPTED 16    /* before 4.3: the object was freed during the wait */
#define PTL_STATUS_LAST 17

/* ---- Special values ---------------------------------------------------------------------------------------------- */

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff) /* no object */
#define PTL_EQ_NONE ((ptl_handle_eq_t)0xfffffffe)         /* no event queue */
#define PTL_CT_NONE ((ptl_handle_ct_t)0xfffffffd)         /* no counting event */

#define PTL_IFACE_DEFAULT ((ptl_interface_t)0) /* the only interface of a simulated node */
#define PTL_SIZE_MAX ((ptl_size_t) - 1)        /* as length with start = NULL: the whole address space */
#define PTL_TIME_FOREVER ((ptl_time_t) - 1)    /* no time-out */
#define PTL_PT_ANY ((ptl_pt_index_t) - 1)      /* the lowest free index */
#define PTL_PID_ANY ((ptl_pid_t) - 1)          /* any process; in PtlNIInit: choose one */
#define PTL_NID_ANY ((ptl_nid_t) - 1)          /* any node */
#define PTL_RANK_ANY ((ptl_rank_t) - 1)        /* any rank */
#define PTL_UID_ANY ((ptl_uid_t) - 1)          /* any user */
#define PTL_PID_MAX 1024                       /* requested pids must be below this */

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* PtlNIInit: exactly one of each pair. */
#define PTL_NI_MATCHING (1u << 0)    /* entries are match list entries */
#define PTL_NI_NO_MATCHING (1u << 1) /* entries are list entries: the first accepts every message */
#define PTL_NI_LOGICAL (1u << 2)     /* processes are named by rank; see PtlSetMap */
#define PTL_NI_PHYSICAL (1u << 3)    /* processes are named by nid and pid */
#define PTL_NI_INIT_OPTIONS_MASK (PTL_NI_MATCHING | PTL_NI_NO_MATCHING | PTL_NI_LOGICAL | PTL_NI_PHYSICAL)

/* Features of an interface (ptl_ni_limits_t.features). */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0) /* entries may describe unmapped memory */
#define PTL_TOTAL_DATA_ORDERING (1u << 1)      /* data order holds for whole messages */
#define PTL_COHERENT_ATOMICS (1u << 2)         /* coherent with atomics of the CPU */

/* PtlPTAlloc. */
#define PTL_PT_ONLY_USE_ONCE (1u << 0)   /* promise: all entries are use-once */
#define PTL_PT_FLOWCTRL (1u << 1)        /* when resources run out, disable the entry and post an event, do not drop */
#define PTL_PT_ONLY_TRUNCATE (1u << 2)   /* promise: no entry of the priority list has PTL_ME_NO_TRUNCATE */
#define PTL_PT_MATCH_UNORDERED (1u << 3) /* entries may be searched in any order */
#define PTL_PT_ALLOC_DISABLED (1u << 4)  /* start disabled; see PtlPTEnable */
#define PTL_PT_ALLOC_OPTIONS_MASK                                                                                      \
    (PTL_PT_ONLY_USE_ONCE | PTL_PT_FLOWCTRL | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED | PTL_PT_ALLOC_DISABLED)

/* Memory descriptors and entries: start points to an array of `length` elements of ptl_iovec_t, which must not change
 * while the object exists. */
#define PTL_IOVEC (1u << 0)

/* Memory descriptors. */
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 1) /* full events only for failures */
#define PTL_MD_EVENT_CT_SEND (1u << 2)         /* count SEND */
#define PTL_MD_EVENT_CT_REPLY (1u << 3)        /* count REPLY */
#define PTL_MD_EVENT_CT_ACK (1u << 4)          /* count ACK */
#define PTL_MD_UNORDERED (1u << 5)             /* no order among operations from this descriptor */
#define PTL_MD_VOLATILE (1u << 6)              /* buffer reusable on return, up to max_volatile_size */
#define PTL_MD_EVENT_SEND_DISABLE (1u << 7)    /* no full SEND event */
#define PTL_MD_UNRELIABLE (1u << 8)            /* messages may be lost */
#define PTL_MD_EVENT_CT_BYTES (1u << 15)       /* count bytes of successes instead of events */
#define PTL_MD_OPTIONS_MASK                                                                                            \
    (PTL_IOVEC | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK |   \
     PTL_MD_UNORDERED | PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_UNRELIABLE | PTL_MD_EVENT_CT_BYTES)

/* Match list entries. */
#define PTL_ME_OP_PUT (1u << 1)                 /* accept puts and atomics */
#define PTL_ME_OP_GET (1u << 2)                 /* accept gets; fetching atomics need both */
#define PTL_ME_USE_ONCE (1u << 3)               /* unlink at the first match */
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1u << 4) /* overflow list: keep no header of messages received here */
#define PTL_ME_IS_ACCESSIBLE (1u << 5)          /* promise: the memory is mapped */
#define PTL_ME_EVENT_LINK_DISABLE (1u << 6)     /* no LINK event */
#define PTL_ME_EVENT_COMM_DISABLE (1u << 7)     /* no full GET, PUT, ATOMIC, FETCH_ATOMIC events */
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1u << 8) /* no PT_DISABLED event */
#define PTL_ME_EVENT_SUCCESS_DISABLE (1u << 9)  /* full communication events only for failures */
#define PTL_ME_EVENT_OVER_DISABLE (1u << 10)    /* no *_OVERFLOW events */
#define PTL_ME_EVENT_UNLINK_DISABLE (1u << 11)  /* no AUTO_UNLINK, no AUTO_FREE */
#define PTL_ME_EVENT_CT_COMM (1u << 12)         /* count communication events */
#define PTL_ME_EVENT_CT_OVERFLOW (1u << 13)     /* count overflow events and search results */
#define PTL_ME_ACK_DISABLE (1u << 14)           /* before 4.3: send no acknowledgements */
#define PTL_ME_EVENT_CT_BYTES (1u << 15)        /* count bytes of successes instead of events */
#define PTL_ME_MANAGE_LOCAL (1u << 16)          /* the entry maintains the offset; the request's is ignored */
#define PTL_ME_NO_TRUNCATE (1u << 17)           /* longer requests do not match */
#define PTL_ME_MAY_ALIGN (1u << 18)             /* with MANAGE_LOCAL: placement may be aligned */
#define PTL_ME_LOCAL_INC_UH_RLENGTH (1u << 19)  /* with MANAGE_LOCAL: unexpected headers move the offset by rlength */

/* List entries: the same bits. */
#define PTL_LE_OP_PUT PTL_ME_OP_PUT
#define PTL_LE_OP_GET PTL_ME_OP_GET
#define PTL_LE_USE_ONCE PTL_ME_USE_ONCE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE PTL_ME_IS_ACCESSIBLE
#define PTL_LE_EVENT_LINK_DISABLE PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_COMM_DISABLE PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_CT_COMM PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_ACK_DISABLE PTL_ME_ACK_DISABLE
#define PTL_LE_EVENT_CT_BYTES PTL_ME_EVENT_CT_BYTES

#define PTL_LE_APPEND_OPTIONS_MASK 0xffffu
#define PTL_ME_APPEND_OPTIONS_MASK 0xfffffu

/* ---- Lists, searches, acknowledgements --------------------------------------------------------------------------- */

#define PTL_PRIORITY_LIST 0 /* expected messages */
#define PTL_OVERFLOW_LIST 1 /* unexpected messages */

#define PTL_SEARCH_ONLY 0   /* report the unexpected header */
#define PTL_SEARCH_DELETE 1 /* report and remove it */

#define PTL_NO_ACK_REQ 0 /* no acknowledgement */
#define PTL_ACK_REQ 1    /* full event, and count */
#define PTL_CT_ACK_REQ 2 /* count only */
#define PTL_OC_ACK_REQ 3 /* count completion, even of a dropped message */

/* ---- Events ------------------------------------------------------------------------------------------------------ */

#define PTL_EVENT_GET 0                   /* target: a get was served */
#define PTL_EVENT_GET_OVERFLOW 1          /* target: a new entry matched the header of an earlier get */
#define PTL_EVENT_PUT 2                   /* target: a put is delivered */
#define PTL_EVENT_PUT_OVERFLOW 3          /* target: a new entry matched the header of an earlier put */
#define PTL_EVENT_ATOMIC 4                /* target: an atomic is complete */
#define PTL_EVENT_ATOMIC_OVERFLOW 5       /* target: a new entry matched the header of an earlier atomic */
#define PTL_EVENT_FETCH_ATOMIC 6          /* target: a fetching atomic or swap is complete */
#define PTL_EVENT_FETCH_ATOMIC_OVERFLOW 7 /* target: a new entry matched the header of an earlier one */
#define PTL_EVENT_REPLY 8                 /* initiator: the data of a get, fetch or swap has arrived */
#define PTL_EVENT_SEND 9                  /* initiator: the buffer can be reused */
#define PTL_EVENT_ACK 10                  /* initiator: acknowledgement of the target */
#define PTL_EVENT_PT_DISABLED 11          /* target: flow control stopped the portal table entry */
#define PTL_EVENT_LINK 12                 /* target: the entry is linked */
#define PTL_EVENT_AUTO_UNLINK 13          /* target: the entry is unlinked automatically */
#define PTL_EVENT_AUTO_FREE 14     /* target: no unexpected header refers to the unlinked overflow entry any longer */
#define PTL_EVENT_SEARCH 15        /* target: result of a search */
#define PTL_EVENT_HANDLER_ERROR 16 /* target: a message with a failed handler is complete (sPIN App. B.3) */

#define PTL_NI_OK 0              /* success */
#define PTL_NI_UNDELIVERABLE 1   /* target unreachable, or no acknowledgement from it */
#define PTL_NI_DROPPED 2         /* no match, no such portal table entry, or a header handler returned DROP */
#define PTL_NI_PT_DISABLED 3     /* the portal table entry is disabled, perhaps after accepting a part */
#define PTL_NI_PERM_VIOLATION 4  /* the entry belongs to another user */
#define PTL_NI_OP_VIOLATION 5    /* the entry does not accept the operation */
#define PTL_NI_NO_MATCH 6        /* a search found nothing */
#define PTL_NI_SEGV 7            /* memory outside the program's, or the handler's, access rights */
#define PTL_NI_HANDLER_FAIL 8    /* a handler returned FAIL (sPIN App. B.3-B.5) */
#define PTL_NI_HANDLER_TIMEOUT 9 /* the card's watchdog stopped a handler */

/* ---- Atomic operations ------------------------------------------------------------------------------------------- */

/* PtlAtomic and PtlFetchAtomic. */
#define PTL_MIN 0
#define PTL_MAX 1
#define PTL_SUM 2
#define PTL_PROD 3
#define PTL_LOR 4
#define PTL_LAND 5
#define PTL_BOR 6
#define PTL_BAND 7
#define PTL_LXOR 8
#define PTL_BXOR 9
/* PtlSwap. CSWAP and its variants store the data if "operand relation target" holds; MSWAP replaces the bits that are
 * set in the operand. */
#define PTL_SWAP 10
#define PTL_CSWAP 11
#define PTL_CSWAP_NE 12
#define PTL_CSWAP_LE 13
#define PTL_CSWAP_LT 14
#define PTL_CSWAP_GE 15
#define PTL_CSWAP_GT 16
#define PTL_MSWAP 17
#define PTL_OP_LAST 18

#define PTL_INT8_T 0
#define PTL_UINT8_T 1
#define PTL_INT16_T 2
#define PTL_UINT16_T 3
#define PTL_INT32_T 4
#define PTL_UINT32_T 5
#define PTL_FLOAT 6
#define PTL_INT64_T 7
#define PTL_UINT64_T 8
#define PTL_DOUBLE 9
#define PTL_FLOAT_COMPLEX 10
#define PTL_DOUBLE_COMPLEX 11
#define PTL_LONG_DOUBLE 12
#define PTL_LONG_DOUBLE_COMPLEX 13
#define PTL_DATATYPE_LAST 14

/* ---- Structures -------------------------------------------------------------------------------------------------- */

/* A process: rank on a logical interface, nid and pid on a physical one. */
typedef union ptl_process {
    ptl_rank_t rank;
    struct {
        ptl_nid_t nid;
        ptl_pid_t pid;
    } phys;
} ptl_process_t;

#ifdef __cplusplus
}
#endif

#include <spin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One segment of memory; see PTL_IOVEC. */
typedef struct ptl_iovec {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_iovec_t;

/* Memory descriptor: memory of an initiator. start may be NULL when length is 0 or PTL_SIZE_MAX. */
typedef struct ptl_md {
    void *start;
    ptl_size_t length; /* bytes; elements with PTL_IOVEC */
    unsigned int options;
    ptl_handle_eq_t eq_handle; /* or PTL_EQ_NONE */
    ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE */
} ptl_md_t;

/* List entry: memory of a target on a non-matching interface. */
typedef struct ptl_le {
    void *start;
    ptl_size_t length;         /* bytes; elements with PTL_IOVEC */
    ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE */
    ptl_uid_t uid;             /* user whose messages are accepted, or PTL_UID_ANY */
    unsigned int options;
} ptl_le_t;

/* Match list entry: memory of a target on a matching interface.
 *
 * The fields from header_handler on are P4sPIN's (sPIN App. B.1). Only programs that include <spin.h> need to set them;
 * others may leave them uninitialised. */
typedef struct ptl_me {
    void *start;
    ptl_size_t length;         /* bytes; elements with PTL_IOVEC */
    ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE */
    ptl_uid_t uid;             /* user whose messages are accepted, or PTL_UID_ANY */
    unsigned int options;
    ptl_process_t match_id __attribute__((aligned(8))); /* initiator to match; each part may be the wildcard */
    ptl_match_bits_t match_bits;
    ptl_match_bits_t ignore_bits; /* bits excluded from matching */
    ptl_size_t min_free;          /* with MANAGE_LOCAL: unlink when less room is left; 0: never */

    ptl_header_handler_t header_handler;         /* or NULL */
    ptl_payload_handler_t payload_handler;       /* or NULL */
    ptl_completion_handler_t completion_handler; /* or NULL */
    const void *hpu_initial_state;               /* copied to HPU memory by the append; NULL leaves it unchanged */
    ptl_size_t hpu_initial_state_length;         /* bytes, at most max_initial_state */
    void *handler_host_mem_start;                /* second host buffer of the handlers, or NULL */
    ptl_size_t handler_host_mem_length;          /* bytes; elements with PTL_HANDLER_IOVEC */
    ptl_size_t user_hdr_size;                    /* bytes of user header at the start of a message */
    ptl_hpu_md_h hpu_memory;                     /* from PtlHPUAllocMem, or PTL_INVALID_HANDLE */
} ptl_me_t;

/* The two counts of a counting event. */
typedef struct ptl_ct_event {
    ptl_size_t success; /* events, or bytes */
    ptl_size_t failure; /* events */
} ptl_ct_event_t;

/* A full event. The field type is always valid; it determines the other valid fields. */
typedef struct ptl_event {
    void *start;             /* address of the data */
    void *user_ptr;          /* argument of the append, search or operation */
    ptl_hdr_data_t hdr_data; /* from the initiator */
    ptl_match_bits_t match_bits;
    ptl_size_t rlength;       /* bytes requested */
    ptl_size_t mlength;       /* bytes transferred */
    ptl_size_t remote_offset; /* at the target: the requested offset; at the initiator: the offset used by the target */
    ptl_process_t initiator;
    ptl_uid_t uid;
    ptl_pt_index_t pt_index;
    ptl_event_kind_t type;
    ptl_list_t ptl_list; /* list that matched */
    ptl_ni_fail_t ni_fail_type;
    ptl_op_t atomic_operation;
    ptl_datatype_t atomic_type;
} ptl_event_t;

/* Limits of an interface. */
typedef struct ptl_ni_limits {
    int max_entries; /* entries at a time */
    int max_unexpected_headers;
    int max_mds;
    int max_cts;
    int max_eqs;
    int max_pt_index;                 /* highest valid index */
    int max_iovecs;                   /* segments of one object */
    int max_list_size;                /* entries of one list */
    int max_triggered_ops;            /* pending triggered operations */
    ptl_size_t max_msg_size;          /* bytes of a put, get or reply */
    ptl_size_t max_atomic_size;       /* bytes of PtlAtomic */
    ptl_size_t max_fetch_atomic_size; /* bytes of PtlFetchAtomic and PtlSwap */
    ptl_size_t max_waw_ordered_size;  /* bytes up to which writes stay in order */
    ptl_size_t max_war_ordered_size;  /* bytes up to which a write stays behind an earlier read */
    ptl_size_t max_volatile_size;     /* bytes of a PTL_MD_VOLATILE operation */
    unsigned int features;            /* PTL_TARGET_BIND_INACCESSIBLE and following */
    /* P4sPIN (sPIN App. B.2.1) */
    ptl_size_t max_user_hdr_size;       /* bytes of a user header */
    ptl_size_t max_payload_size;        /* bytes of payload in a packet */
    ptl_size_t max_handler_mem;         /* bytes of HPU memory */
    ptl_size_t max_initial_state;       /* bytes of initial HPU state */
    ptl_size_t min_fragmentation_limit; /* alignment of payloads, bytes; their sizes are multiples of it, except for the
                                           last packet of a message, and for the first if the size of the user header is
                                           not a multiple */
    ptl_size_t max_cycles_per_byte;     /* watchdog limit: HPU cycles per byte of payload */
} ptl_ni_limits_t;

/* Status registers; all start at 0. */
typedef enum ptl_sr_index {
    PTL_SR_DROP_COUNT = 0,            /* messages dropped */
    PTL_SR_PERMISSION_VIOLATIONS = 1, /* messages of a wrong user */
    PTL_SR_OPERATION_VIOLATIONS = 2,  /* operations that the entry does not accept */
    PTL_SR_LAST = 3
} ptl_sr_index_t;

/* Unit of a counting event; no function takes it. */
typedef enum ptl_ct_type { PTL_CT_OPERATION = 0, PTL_CT_BYTE = 1 } ptl_ct_type_t;

/* ---- Library and interfaces (Portals 4 chapters 3.3 to 3.7) -------------------------------------------------------
 * */

/* Opens the library. Nested calls are allowed; each needs a PtlFini. Returns PTL_FAIL, with a message on standard
 * error, when the program was not started by spinrun. */
PTL_CHECKED int PtlInit(void);

/* Undoes one PtlInit; the last one frees every object of the process. */
void PtlFini(void);

/* Ends every PtlEQWait, PtlEQPoll, PtlCTWait and PtlCTPoll, in progress or later, with PTL_ABORTED. */
void PtlAbort(void);

/* Opens an interface, or adds a reference when one with the same iface and options is open (desired is then ignored).
 *   pid      PTL_PID_ANY, or a pid below PTL_PID_MAX
 *   desired  requested limits, or NULL; values out of range are clipped
 *   actual   receives the limits granted, or NULL
 * Errors: PTL_PID_IN_USE, PTL_NO_SPACE. */
PTL_CHECKED int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
                          ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);

/* Drops a reference; the last one frees the interface's objects. */
int PtlNIFini(ptl_handle_ni_t ni_handle);

/* Reads a status register. */
PTL_CHECKED int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);

/* Returns the interface of an object. */
PTL_CHECKED int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/* Maps the ranks of a logical interface to processes: rank r is mapping[r] (nid and pid). The caller must be among
 * them. Errors: PTL_IGNORED when the map is already set. */
PTL_CHECKED int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);

/* Copies at most map_size entries of the map to mapping; *actual_map_size is the size of the map. Errors: PTL_NO_SPACE
 * when the map is not set. */
PTL_CHECKED int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
                          ptl_size_t *actual_map_size);

/* Returns the user of this process. */
PTL_CHECKED int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/* Returns the id of this process: its rank on a logical interface, nid and pid on a physical one. */
PTL_CHECKED int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* Returns the nid and pid of this process, on every interface, even before PtlSetMap. */
PTL_CHECKED int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* Returns non-zero when both handles name the same object. Allowed before PtlInit. */
int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

/* ---- Portal table (3.8) --------------------------------------------------------------------------------------------
 * */

/* Allocates an entry; the event queue (or PTL_EQ_NONE) receives the target-side events. Errors: PTL_PT_FULL,
 * PTL_PT_IN_USE, PTL_PT_EQ_NEEDED. */
PTL_CHECKED int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
                           ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index);

/* Frees an entry. Errors: PTL_PT_IN_USE while list entries are attached. */
int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* Refuses new messages. Blocks until the messages in progress have posted their events. */
int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* Accepts messages again, also after flow control disabled the entry. */
int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* ---- Memory descriptors (3.10) -------------------------------------------------------------------------------------
 * */

/* Describes memory for operations that this process starts. Errors: PTL_NO_SPACE. */
PTL_CHECKED int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);

/* Frees a descriptor. Errors: PTL_IN_USE while operations use it. */
int PtlMDRelease(ptl_handle_md_t md_handle);

/* ---- List entries (3.11) and match list entries (3.12) -------------------------------------------------------------
 * */

/* Appends an entry to a list of a portal table entry; on the priority list it first matches unexpected headers. Its
 * events contain user_ptr. Errors: PTL_NO_SPACE, PTL_LIST_TOO_LONG. */
PTL_CHECKED int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_list_t ptl_list,
                            void *user_ptr, ptl_handle_le_t *le_handle);
PTL_CHECKED int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list,
                            void *user_ptr, ptl_handle_me_t *me_handle);

/* Removes an entry without an event. Errors: PTL_IN_USE while a message uses it or unexpected headers refer to it,
 * PTL_ARG_INVALID after it was unlinked automatically. */
int PtlLEUnlink(ptl_handle_le_t le_handle);
int PtlMEUnlink(ptl_handle_me_t me_handle);

/* Searches for unexpected headers that the entry would match, and reports the results as events. Does not link the
 * entry. */
PTL_CHECKED int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                            ptl_search_op_t ptl_search_op, void *user_ptr);
PTL_CHECKED int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                            ptl_search_op_t ptl_search_op, void *user_ptr);

/* ---- Data movement (3.15) ------------------------------------------------------------------------------------------
 * */

/* Sends length bytes at local_offset of the descriptor to the target. The buffer may be reused after SEND. The
 * initiator's events contain user_ptr, the target's hdr_data. */
PTL_CHECKED int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data);

/* Fetches length bytes of the target; REPLY reports their arrival. */
PTL_CHECKED int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                       ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);

/* Combines the data with the target's memory, element by element: target = target operation data. */
PTL_CHECKED int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                          ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                          ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                          ptl_datatype_t datatype);

/* Like PtlAtomic; also writes the old values of the target to the memory of get_md_handle. */
PTL_CHECKED int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                               ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                               ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                               ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                               ptl_datatype_t datatype);

/* Exchanges data with the target; PTL_CSWAP and the following operations do so under a condition on operand (one
 * element; may be NULL for PTL_SWAP). The old values are written to the memory of get_md_handle. */
PTL_CHECKED int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                        ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                        ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                        ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation, ptl_datatype_t datatype);

/* Synchronizes the CPU with atomics at the target: after the call the CPU may write the memory that they accessed. */
int PtlAtomicSync(void);

/* Hint that operations between the two calls may start together; EndBundle starts all of them. */
int PtlStartBundle(ptl_handle_ni_t ni_handle);
int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* ---- Event queues (3.13) -------------------------------------------------------------------------------------------
 * */

/* Creates a queue for at least count events. Errors: PTL_NO_SPACE. */
PTL_CHECKED int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);

/* Frees a queue and the events in it. */
int PtlEQFree(ptl_handle_eq_t eq_handle);

/* Removes the oldest event and copies it to *event. PTL_EQ_EMPTY: the queue is empty. PTL_EQ_DROPPED: *event is valid,
 * but events before it are lost. */
PTL_CHECKED int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/* Like PtlEQGet, but blocks until an event arrives. Errors: PTL_ABORTED. */
PTL_CHECKED int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/* Like PtlEQWait for size queues of one interface, and for at most timeout milliseconds (PTL_TIME_FOREVER: no limit);
 * *which is the index of the queue. PTL_EQ_EMPTY: timed out. Errors: PTL_ABORTED. */
PTL_CHECKED int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
                          unsigned int *which);

/* ---- Counting events (3.14) ----------------------------------------------------------------------------------------
 * */

/* Creates a counting event with both counts 0. Errors: PTL_NO_SPACE. */
PTL_CHECKED int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);

/* Frees a counting event; triggered operations that wait for it never start. */
int PtlCTFree(ptl_handle_ct_t ct_handle);

/* Cancels the triggered operations that wait for a counting event. */
int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);

/* Reads both counts. */
PTL_CHECKED int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);

/* Blocks until success >= test or failure != 0. Errors: PTL_ABORTED. */
PTL_CHECKED int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);

/* Like PtlCTWait for size counting events of one interface with one test each, and for at most timeout milliseconds;
 * *which is the index of the one that reached its test. PTL_CT_NONE_REACHED: timed out. Errors: PTL_ABORTED. */
PTL_CHECKED int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
                          ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which);

/* Sets both counts; may start triggered operations. */
PTL_CHECKED int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);

/* Adds to one of the counts; the other field is 0. May start triggered operations. */
PTL_CHECKED int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- Triggered operations (3.16) -----------------------------------------------------------------------------------
 * */

/* Like the call without "Triggered", but the card starts the operation, once, when success + failure of trig_ct_handle
 * reaches the threshold, or at once if it is already reached. Arguments are checked during the call; buffers are read
 * when the operation starts. Operations with the same threshold start in the order of their calls. Errors: those of the
 * plain call; PTL_NO_SPACE beyond max_triggered_ops. */
PTL_CHECKED int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                                ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                                ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                                ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
                                ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                                   ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                   ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                                   ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                        ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                                        ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                        ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                        ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                        ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                 ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                                 ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                 ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
                                 ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                 ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                                  ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                                  ptl_size_t threshold);

/* Extensions of the reference implementation: a triggered append (*me_handle is valid at once) and unlink. */
PTL_CHECKED int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                                     ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
                                     ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_CHECKED int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

#ifdef __cplusplus
}
#endif

#endif
