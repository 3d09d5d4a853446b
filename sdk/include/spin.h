/* SPDX-License-Identifier: Apache-2.0 */
/* P4sPIN: streaming Processing in the Network on Portals 4 (sPIN, SC'17, sections 3.2 and appendix B).
 *
 * A program attaches up to three handlers to a matching entry. The card runs them on its cores, the HPUs, for every
 * matching message: the header handler first, once; the payload handler for every packet, in parallel; and the
 * completion handler last, once, before the host's event. `spincc` compiles a program that includes this file twice:
 * for the host, and for the card (where __SPIN_DEVICE__ is defined).
 *
 *     __handler int pong(const ptl_payload_t p, void *state) {
 *         struct info *i = state;
 *         PtlHandlerPutFromDevice(p.base, p.length, PTL_LOCAL_ME_CT, PTL_NO_ACK_REQ, i->source, 10, 0, NULL, 0);
 *         return SUCCESS;
 *     }
 *
 * Structures shared by host and card (initial state, user header) have the same layout on both if they use the
 * fixed-width types of <stdint.h> and Portals types; spincc warns when one differs.
 *
 * Before including this file a program may define
 *   PTL_USER_HEADER        a complete type, the user header at the start of its messages; it adds the field user_hdr to
 *                          ptl_header_t
 *   SPIN_NO_SHORT_NAMES    leaves out DROP, SUCCESS and the other short names of return codes */
#ifndef SPIN_H
#define SPIN_H

#include <portals4.h>
#include <spin/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* glibc's <signal.h>, and with it <sys/wait.h>, has parameters named __handler: include it before the macro. */
#ifndef __SPIN_DEVICE__
#include <signal.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function as a handler: code for the card. Its address in host code names the handler (sPIN 3.2). */
#define __handler __attribute__((used, noinline, section("spin_handlers")))

/* ---- Arguments and return codes of handlers -------------------------------------------------------------------- */

/* Requests that start a message: ptl_header_t.type (sPIN App. B.3). */
typedef uint32_t ptl_request_type_t;
enum { PTL_REQUEST_PUT = 0, PTL_REQUEST_GET = 1, PTL_REQUEST_ATOMIC = 2, PTL_REQUEST_FETCH_ATOMIC = 3 };

/* Argument of a header handler (sPIN App. B.3). Owned by the card, readable until the handler returns. */
struct ptl_header_t {
    ptl_request_type_t type;     /* one of PTL_REQUEST_* */
    ptl_size_t length;           /* bytes of the message, user header included; for a get, the requested bytes */
    ptl_process_t target_id;     /* this process */
    ptl_process_t source_id;     /* sender of the message */
    ptl_match_bits_t match_bits; /* as sent */
    ptl_size_t offset;           /* offset in the entry, bytes */
    ptl_hdr_data_t hdr_data;     /* as sent */
#ifdef PTL_USER_HEADER
    PTL_USER_HEADER user_hdr; /* first bytes of the message; zeros if it has none, as for gets; for an entry with
                                 user_hdr_size 0, hdr_data */
#endif
};

/* Argument of a payload handler (sPIN App. B.4): the data of one packet of a put, without the user header. */
struct ptl_payload_t {
    ptl_size_t length; /* bytes at base */
    ptl_size_t offset; /* position of the data in the message, in bytes after the user header */
    uint8_t *base;     /* the data, in the card's packet buffer; owned by the card, valid until the handler returns. A
                          pointer, not the flexible array of App. B.4, so that the structure can be passed by value. */
};

/* Return codes of handlers (sPIN App. B.3 to B.5). HEADER, PAYLOAD and COMPLETION name the handlers that may return a
 * code; after the ..._PENDING codes the entry stays linked and waits for another message. */
enum ptl_handler_return {
    PTL_HANDLER_DROP = 0,                 /* HEADER: discard the message: its event, acknowledgement or reply fails with
                                             PTL_NI_DROPPED and mlength 0; PAYLOAD: discard the packet, which counts in
                                             dropped_bytes and not in mlength */
    PTL_HANDLER_DROP_PENDING = 1,         /* HEADER: like DROP */
    PTL_HANDLER_PROCESS_DATA = 2,         /* HEADER: call payload handlers; means PROCEED for gets and atomics, and
                                             without a payload handler */
    PTL_HANDLER_PROCESS_DATA_PENDING = 3, /* HEADER: like PROCESS_DATA */
    PTL_HANDLER_PROCEED = 4,              /* HEADER: perform the request, user header included, without payload
                                             handlers */
    PTL_HANDLER_PROCEED_PENDING = 5,      /* HEADER: like PROCEED */
    PTL_HANDLER_SUCCESS = 6,              /* PAYLOAD, COMPLETION: done */
    PTL_HANDLER_SUCCESS_PENDING = 7,      /* COMPLETION: like SUCCESS */
    PTL_HANDLER_FAIL = 8,                 /* all: the handler's own error. The first error of a message is posted as
                                             PTL_EVENT_HANDLER_ERROR to the entry's event queue once the message is
                                             complete and its memory is free again */
    PTL_HANDLER_SEGV = 9                  /* set by the card for an access outside the handler's memory */
};

#ifndef SPIN_NO_SHORT_NAMES
/* Short names, as in the paper. */
enum {
    DROP = PTL_HANDLER_DROP,
    DROP_PENDING = PTL_HANDLER_DROP_PENDING,
    PROCESS_DATA = PTL_HANDLER_PROCESS_DATA,
    PROCESS_DATA_PENDING = PTL_HANDLER_PROCESS_DATA_PENDING,
    PROCEED = PTL_HANDLER_PROCEED,
    PROCEED_PENDING = PTL_HANDLER_PROCEED_PENDING,
    SUCCESS = PTL_HANDLER_SUCCESS,
    SUCCESS_PENDING = PTL_HANDLER_SUCCESS_PENDING,
    FAIL = PTL_HANDLER_FAIL,
    SEGV = PTL_HANDLER_SEGV
};
#endif

/* ---- Host calls -------------------------------------------------------------------------------------------------
 * They are thread-safe. They do not wait for simulated events unless their comment says so. */

/* Allocates `length` bytes of HPU memory on the card of `ni` and writes its handle to `*hpu_mem` (sPIN App. B.2). The
 * memory belongs to the caller until PtlHPUFreeMem or PtlNIFini; several entries may use it. It is zeroed. Returns
 * PTL_OK, PTL_ARG_INVALID, PTL_NO_INIT, or PTL_NO_SPACE when the card has no free block of this size. */
int PtlHPUAllocMem(ptl_size_t length, ptl_handle_ni_t ni, ptl_hpu_md_h *hpu_mem);

/* Frees `*hpu_mem` and sets it to PTL_INVALID_HANDLE (sPIN App. B.2).
 * Returns PTL_OK, PTL_ARG_INVALID, PTL_NO_INIT, or PTL_IN_USE while an entry refers to it. */
int PtlHPUFreeMem(ptl_hpu_md_h *hpu_mem);

/* Like PtlMEAppend, and also reads the P4sPIN fields of `*me` (sPIN App. B.1): set all of them, or start from a zeroed
 * structure with hpu_memory = PTL_INVALID_HANDLE. NULL handlers are not called. The initial state is copied during the
 * call. Errors: as PtlMEAppend; PTL_ARG_INVALID also when a pointer is not a handler of this program or when handlers
 * are given without HPU memory for their initial state. */
int PtlMEAppendHandlers(ptl_handle_ni_t ni, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t list,
                        void *user_ptr, ptl_handle_me_t *me_handle);

/* For files that include <spin.h>, PtlMEAppend appends with handlers. Plain Portals programs may leave those fields
 * uninitialised; this macro does not affect them. */
#define PtlMEAppend PtlMEAppendHandlers

/* Option of ptl_me_t: handler_host_mem_start points to handler_host_mem_length elements of ptl_iovec_t (App. B.2). */
#ifndef PTL_HANDLER_IOVEC
#define PTL_HANDLER_IOVEC (1u << 24)
#endif

/* Returns the simulated time since the start of the job, in picoseconds. */
uint64_t spin_time_ps(void);

/* Draws a slice named `name` in the timeline (`spinrun --trace`), on this rank's CPU above the work of its calls, from
 * the simulated time `start_ps` (spin_time_ps) until now. It takes no simulated time, and does nothing without a
 * timeline. Names are cut to 256 bytes. */
void spin_show(const char *name, uint64_t start_ps);

/* Charges `ns` nanoseconds of CPU time to this rank; returns once they pass in simulated time. The threads of a rank
 * compute concurrently on the cores of its host (`host.cores` of the machine); further threads wait for a core first.
 * The run ends with a message at 2^63 ps (106 days): no call returns later. */
void spin_host_compute(uint64_t ns);

/* Charges the time of one core of this rank's CPU to read `read_bytes` bytes from DRAM and write `written_bytes` bytes
 * to it while it computes with them or gathers them by a stride: the latency, then the reads at the core's rate of
 * fetching cache lines (`host.core_lines` of the machine); the bandwidth of DRAM limits both. Returns once that
 * simulated time passes; with `host.shared_memory` later, if other cores and the card exceed the bandwidth of DRAM
 * meanwhile. */
void spin_host_memory(uint64_t read_bytes, uint64_t written_bytes);

/* Charges the time of one core to copy a contiguous block of `bytes` bytes, in the same way but with `host.copy_lines`
 * cache lines in flight. */
void spin_host_copy(uint64_t bytes);

/* Tells the simulator that the calling thread found no work, by polls or in its own memory. A polling loop calls it
 * once per iteration:
 *
 *     while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY)
 *         spin_idle();
 *
 * It takes the time of a poll (`host.poll` of the machine), or of several consecutive polls. It skips ahead if, since
 * the thread's last spin_idle returned, the thread made only unsuccessful polls (PtlEQGet, PtlCTGet, spin_eq_take, and
 * PtlEQPoll and PtlCTPoll with a time-out of 0) and nothing changed for its rank. It then returns at the first poll
 * that begins at or after a change: an event in one of the rank's queues, a new value of one of its counters, a write
 * of the card to its memory, or any action of another thread of the rank except an unsuccessful poll. A polling loop
 * thus takes the simulated time of its polls, but almost no real time.
 *
 * A thread that read the simulated time since its last spin_idle waits for one poll only, because it may wait for a
 * point in time. If no event remains in the simulation, all waiting threads continue at their next polls, 1000 times,
 * so that loops with a retry limit end. If they only poll even then, the run ends as a deadlock. With `spinrun
 * --compute measured`, up to 10 us of CPU time between an unsuccessful poll and the next poll are not charged. Outside
 * of spinrun it returns at once. */
void spin_idle(void);

/* Like spin_idle, for a thread that checks queues and counters only: a write of the card to memory does not end the
 * skipping. The packets that a message writes before its event thus change neither when the thread sees the event nor
 * how many calls it makes until then. */
void spin_idle_events(void);

/* Enables (`on` is not 0) or disables (0) deferred calls of the calling thread. Returns the previous setting; the
 * default is disabled. It is for libraries over Portals, which can tell which calls may be deferred. Calls with a known
 * result may return before they are executed: spin_idle, spin_host_compute and spin_host_copy, and, if they resemble an
 * accepted one (same descriptor or list and options, no larger offset, length, rank or index), PtlPut, PtlGet,
 * PtlAtomic, and PtlMEAppend of a contiguous entry without handlers. They execute in order, each at the simulated end
 * of the one before, before the thread's next call that waits; simulated times do not change. Until such a waiting call
 * returns, the thread must not read memory that cards write, and the variables for entries' handles must stay valid
 * (other threads' calls may write them, too); data of volatile descriptors are copied and must be readable. A deferred
 * call that fails (no space for an entry) ends the run. It has no effect with --compute, --fail and --kill-card, and in
 * processes with several threads. */
int spin_defer(int on);

/* Like repeated PtlEQGet, in one call: takes up to `max` events from `eq`, writes them to `events`, oldest first, and
 * their number to `*count`. It takes the time of one poll per event, and of one poll when the queue is empty. It stops
 * after an event that is preceded by lost events. Returns PTL_OK, PTL_EQ_DROPPED when events were lost before the last
 * one taken, or, without setting `*count`, PTL_EQ_EMPTY, PTL_NO_INIT, or PTL_ARG_INVALID (`max` is 0, or a pointer or
 * the queue is invalid). */
int spin_eq_take(ptl_handle_eq_t eq, ptl_event_t *events, unsigned int max, unsigned int *count);

/* Like PtlCTWait, in the same simulated time, but does not return the counter's value. With `spinrun --post-ahead` it
 * thus returns at once when the counter is known to reach `test`. Returns PTL_OK when the counter's successes reach
 * `test`, PTL_FAIL when it counts a failure before that, and otherwise the result of PtlCTWait: PTL_NO_INIT,
 * PTL_ARG_INVALID, PTL_INTERRUPTED, PTL_ABORTED. */
int spin_ct_await(ptl_handle_ct_t ct, ptl_size_t test);

/* Blocks until every rank of the job has called it; adds no simulated time. Returns PTL_OK or PTL_NO_INIT. A rank
 * arrives once per round: a second thread that calls meanwhile waits for the next round. */
int spin_barrier(void);

/* Returns the rank of this process in the job, from 0. */
int spin_rank(void);

/* Returns the number of ranks of the job. */
int spin_size(void);

/* Returns the rank of a process of the job on a physical interface, or -1. Where ranks share nodes (spinrun
 * --ranks-per-node), pids are those that PtlNIInit gives with PTL_PID_ANY; where each has a node, its nid is its rank,
 * and `pid` is ignored. */
int spin_rank_of(ptl_nid_t nid, ptl_pid_t pid);

/* Writes the nid and pid of a rank of the job to `*process`, with `pid` where each rank has a node: the opposite of
 * spin_rank_of. Returns PTL_OK, or PTL_ARG_INVALID if the job has no such rank or `process` is NULL. */
int spin_process_of(int rank, ptl_pid_t pid, ptl_process_t *process);

/* Sets the map of the logical interface `ni` to that of the job: rank r is this job's process r, followed by the
 * switches that run handlers. PtlSetMap does the same for programs that exchange ids themselves. Errors: as
 * PtlSetMap. */
int spin_set_map(ptl_handle_ni_t ni);

/* ---- Switches with handlers (sPIN 7) ----------------------------------------------------------------------------
 * `network.switch.handlers` of the machine names the switches of a packet network that run handlers. They are numbered
 * from 0, and each is a process beside the ranks: process spin_size() + number in the map set by spin_set_map. Ranks
 * and handlers send messages to it as to any other process. A switch has HPUs and HPU memory, but no host: its handlers
 * receive packets and put, but may not use host memory or counters (such a call returns SPIN_ERR_INVALID and prints a
 * warning). Entries stay attached to a switch until the job ends; attaching takes the time of a PtlMEAppend, without
 * the cost of network set-up. */

/* Returns the number of switches that run handlers; 0 outside of spinrun. */
int spin_switches(void);

/* Returns the number of links on the shortest path between two processes, each given by a rank or by spin_size() plus
 * the number of a switch; the link of length 0 between a switch and its HPUs counts as one. Returns -1 when a process
 * does not exist, or when the network model has no links. */
int spin_distance(int from, int to);

/* Allocates `length` bytes of zeroed HPU memory on switch `which`, and writes the handle to `*hpu_mem`. The handle is
 * valid only for spin_switch_attach to the same switch. The first call for a switch opens an interface there with the
 * options and map of `ni`, and loads the caller's program. Errors: as PtlHPUAllocMem; PTL_ARG_INVALID also when the
 * switch does not exist, or when `ni` is logical and its map lacks the switch. */
int spin_switch_alloc(int which, ptl_handle_ni_t ni, ptl_size_t length, ptl_hpu_md_h *hpu_mem);

/* Attaches the handlers of `*me` to switch `which`, for messages to `pt_index` that match as for PtlMEAppend; the
 * portal table entry need not be allocated. The memory of `*me` is NULL with length 0, its counter PTL_CT_NONE, and
 * hpu_memory is from spin_switch_alloc. Any rank may call it, for any switch. Errors: as PtlMEAppend. */
int spin_switch_attach(int which, ptl_handle_ni_t ni, ptl_pt_index_t pt_index, const ptl_me_t *me);

#ifdef __cplusplus
}
#endif

/* ---- Calls for handlers (sPIN App. B.6) -------------------------------------------------------------------------
 * Only for code on the card; on the host they end the program with a message. Unless stated otherwise they return 0 or
 * a negative number: */
enum {
    SPIN_ERR_INVALID = -1, /* a number is out of range: length, host offset, option, type, target or handle */
    SPIN_ERR_FAILED = -2   /* the data did not arrive: host memory is not mapped, or the target refused the get */
};
/* A call with card memory that the handler may not access (sPIN 3.2: HPU memory of its entry, stack, static data,
 * packet) returns no error: it ends the handler with SEGV, like a load or store. Numbers are checked first; nothing
 * starts when one is out of range. Host offsets of atomics must be multiples of the type's size. */

/* Host memory to which an offset refers: that of the entry, or its handler_host_mem_start (sPIN App. B.6). */
enum { PTL_ME_HOST_MEM = 0, PTL_HANDLER_HOST_MEM = 1 };

/* ct argument of puts: 1 counts the operation on the entry's counting event, 0 does not. */
typedef uint16_t ptl_req_ct_t;
enum { PTL_LOCAL_ME_CT = 1 };

/* A DMA in progress; valid until PtlHandlerDMAWait returns, or PtlHandlerDMATest returns a non-zero value. */
typedef uint32_t ptl_dma_h;

/* Upper bound of PTL_NUM_HPUS on every card, for array sizes. */
#define PTL_MAX_HPUS 64

/* HPU that runs this handler, from 0; handlers never migrate (sPIN 3.2.2). */
#define PTL_MY_HPU spin_my_hpu()

/* Number of HPUs. A compile-time constant in sPIN 3.2.2, but a call here, because a program runs on any card. */
#define PTL_NUM_HPUS spin_num_hpus()

#define SPIN_HANDLER_CALL static inline __attribute__((always_inline, unused))

/* Sends `len` bytes at `local`, in card memory, as one packet: len <= max_payload_size. The portal table index and all
 * other parameters come from the handler's entry. May block until the data has left the card; `local` may be reused on
 * return. */
SPIN_HANDLER_CALL int PtlHandlerPutFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                              ptl_process_t target_id, ptl_match_bits_t match_bits,
                                              ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data);

/* Sends `len` bytes at `offset` in the entry's host memory, like a put of the host. Does not block; the data is read
 * later. */
SPIN_HANDLER_CALL int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                            ptl_process_t target_id, ptl_match_bits_t match_bits,
                                            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data);

/* Fetches `len` bytes of the target into the entry's host memory at `offset`; REPLY is posted to the entry's event
 * queue. Does not block. */
SPIN_HANDLER_CALL int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
                                          ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);

/* Fetches `len` bytes of the target to `local`, in card memory, as one packet: len <= max_payload_size. Blocks until
 * they arrive; bytes that the target does not deliver stay unchanged. Posts no event. Returns SPIN_ERR_FAILED when the
 * target refuses. */
SPIN_HANDLER_CALL int PtlHandlerGetToDevice(void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
                                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);

/* Starts a PtlAtomic with data in card memory, or at `offset` in the entry's host memory: len <= max_atomic_size. */
SPIN_HANDLER_CALL int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct,
                                                 ptl_ack_req_t ack_req, ptl_process_t target_id,
                                                 ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                                 ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
SPIN_HANDLER_CALL int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct,
                                               ptl_ack_req_t ack_req, ptl_process_t target_id,
                                               ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                               ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);

/* Performs a PtlFetchAtomic or PtlSwap (PTL_SWAP and following) with data at `local`, and writes the target's previous
 * data to `result`, both in card memory: len <= max_fetch_atomic_size. `operand` is the operand of PTL_CSWAP and
 * following, else unused. Blocks until the data arrives; bytes that the target does not deliver stay unchanged. Posts
 * no event. Returns SPIN_ERR_FAILED when the target refuses. */
SPIN_HANDLER_CALL int PtlHandlerFetchAtomicFromDevice(const void *local, void *result, ptl_size_t len, ptl_req_ct_t ct,
                                                      ptl_process_t target_id, ptl_match_bits_t match_bits,
                                                      ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                                      ptl_op_t operation, ptl_datatype_t datatype);
SPIN_HANDLER_CALL int PtlHandlerSwapFromDevice(const void *local, void *result, const void *operand, ptl_size_t len,
                                               ptl_req_ct_t ct, ptl_process_t target_id, ptl_match_bits_t match_bits,
                                               ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                               ptl_op_t operation, ptl_datatype_t datatype);

/* Copies `len` bytes from `local`, in card memory, to `offset` in the host memory selected by `options`. Returns at
 * once; `local` must not change until the DMA `*h` is complete. */
SPIN_HANDLER_CALL int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options,
                                            ptl_dma_h *h);

/* Copies `len` bytes from `offset` in the host memory selected by `options` to `local`, in card memory. Returns at
 * once; the data is at `local` when the DMA `*h` is complete. */
SPIN_HANDLER_CALL int PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t len, unsigned int options,
                                              ptl_dma_h *h);

/* Blocking forms of these copies. A copy to the host returns once the data leaves the card (a posted write), a copy
 * from the host once the data arrives. */
SPIN_HANDLER_CALL int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options);
SPIN_HANDLER_CALL int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t len, unsigned int options);

/* Returns 1 when the DMA is complete, or SPIN_ERR_FAILED; both free the handle. Returns 0 while it is in flight. Does
 * not block. */
SPIN_HANDLER_CALL int PtlHandlerDMATest(ptl_dma_h h);

/* Blocks until the DMA is complete and frees the handle. This and the blocking calls return SPIN_ERR_FAILED when the
 * host memory to read is not mapped; a write is posted, so its failure only shows in the message's event
 * (PTL_NI_SEGV). */
SPIN_HANDLER_CALL int PtlHandlerDMAWait(ptl_dma_h h);

/* Atomically compares the 64 bits at `offset` in host memory, naturally aligned, with *cmpval and replaces them with
 * swapval if equal; otherwise writes the current value to *cmpval. The first form returns at once, and *cmpval belongs
 * to the card until the DMA is complete. The second blocks until then. */
SPIN_HANDLER_CALL int PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options,
                                         ptl_dma_h *h);
SPIN_HANDLER_CALL int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options);

/* Atomically adds `inc` to the value of type `type` (at most 8 bytes, naturally aligned; for floating-point types `inc`
 * holds the bits) at `offset` in host memory and writes the previous value, padded with zeros, to *res. The first form
 * returns at once, and *res belongs to the card until the DMA is complete. The second blocks until then. */
SPIN_HANDLER_CALL int PtlHandlerDMAFetchAddNB(ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
                                              unsigned int options, ptl_dma_h *h);
SPIN_HANDLER_CALL int PtlHandlerDMAFetchAddB(ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
                                             unsigned int options);

/* Replaces the 64 bits at `value`, in card memory and aligned (else SEGV), with swapval if they equal cmpval; atomic
 * among the handlers of the card. Returns 1 if the value was replaced, else 0. */
SPIN_HANDLER_CALL int PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval);

/* Adds `inc` to the 64 bits at `val`, in card memory and aligned (else SEGV), and writes the previous value to *before;
 * atomic among the handlers of the card. */
SPIN_HANDLER_CALL int PtlHandlerFAdd(uint64_t *val, uint64_t *before, uint64_t inc);

/* Lets another handler use this HPU; a hint that the card may ignore. */
SPIN_HANDLER_CALL int PtlHandlerYield(void);

/* Atomically add `increment` to the entry's counting event, read it, and replace it. Return SPIN_ERR_INVALID when the
 * entry has none. */
SPIN_HANDLER_CALL int PtlHandlerCTInc(ptl_ct_event_t increment);
SPIN_HANDLER_CALL int PtlHandlerCTGet(ptl_ct_event_t *event);
SPIN_HANDLER_CALL int PtlHandlerCTSet(ptl_ct_event_t new_ct);

/* Called by PTL_MY_HPU and PTL_NUM_HPUS. */
SPIN_HANDLER_CALL unsigned int spin_my_hpu(void);
SPIN_HANDLER_CALL unsigned int spin_num_hpus(void);

/* Prints like printf on standard error of spinrun, each line prefixed with rank, HPU, handler and simulated time.
 * Supports all conversions of C but %n, %ls, %lc and those of long double. Takes 100 cycles for a format of any length;
 * none with `spinrun --print-free`, except for the instructions that pass the arguments. Returns 0. A format or string
 * outside the handler's memory ends it with SEGV. spincc checks formats against the card's types: uint64_t and
 * ptl_size_t are unsigned long long there (%llu), so the compilation for the host does not check formats.
 *
 * assert() and abort() of the C library end the handler with FAIL; spinrun reports the assertion and its location. */
#ifdef __cplusplus
extern "C" {
#endif
#ifdef __SPIN_DEVICE__
__attribute__((format(printf, 1, 2))) int spin_printf(const char *format, ...);
#else
static inline __attribute__((unused)) int spin_printf(const char *format, ...);
#endif
#ifdef __cplusplus
}
#endif
/* The only warnings of the compilation for the card. A pragma overrides -Werror for them, so spincc passes their
 * severity. */
#ifdef __SPIN_DEVICE__
#ifdef __SPIN_WERROR__
#define SPIN_CHECK_FORMAT_ _Pragma("clang diagnostic error \"-Wformat\"")
#else
#define SPIN_CHECK_FORMAT_ _Pragma("clang diagnostic warning \"-Wformat\"")
#endif
#define spin_printf(...)                                                                                               \
    __extension__({                                                                                                    \
        _Pragma("clang diagnostic push") SPIN_CHECK_FORMAT_(spin_printf)(__VA_ARGS__);                                 \
        _Pragma("clang diagnostic pop")                                                                                \
    })
#endif

#ifdef __SPIN_DEVICE__
#include <spin/device.h>
#else
#include <spin/host.h>
#endif

#endif
