/* SPDX-License-Identifier: Apache-2.0 */
/* Handler calls of <spin.h> on the host: handlers compile there, so that their addresses exist, but never run. */
#ifndef SPIN_HOST_H
#define SPIN_HOST_H

#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((noreturn, unused)) void spin_called_on_host(const char *name) {
    fprintf(stderr, "spin: %s was called on the host; only handlers on the card can call it\n", name);
    abort();
}

#define SPIN_HOST_STUB(type, name, ...)                                                                                \
    SPIN_HANDLER_CALL type name(__VA_ARGS__) { spin_called_on_host(#name); }

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

SPIN_HOST_STUB(int, PtlHandlerPutFromDevice, const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
               ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
               ptl_hdr_data_t hdr_data)
SPIN_HOST_STUB(int, PtlHandlerPutFromHost, ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
               ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
               ptl_hdr_data_t hdr_data)
SPIN_HOST_STUB(int, PtlHandlerDMAToHostNB, const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options,
               ptl_dma_h *h)
SPIN_HOST_STUB(int, PtlHandlerDMAFromHostNB, ptl_size_t offset, void *local, ptl_size_t len, unsigned int options,
               ptl_dma_h *h)
SPIN_HOST_STUB(int, PtlHandlerDMAToHostB, const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options)
SPIN_HOST_STUB(int, PtlHandlerDMAFromHostB, ptl_size_t offset, void *local, ptl_size_t len, unsigned int options)
SPIN_HOST_STUB(int, PtlHandlerDMATest, ptl_dma_h h)
SPIN_HOST_STUB(int, PtlHandlerDMAWait, ptl_dma_h h)
SPIN_HOST_STUB(int, PtlHandlerGetToHost, ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
               ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr)
SPIN_HOST_STUB(int, PtlHandlerGetToDevice, void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
               ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr)
SPIN_HOST_STUB(int, PtlHandlerAtomicFromDevice, const void *local, ptl_size_t len, ptl_req_ct_t ct,
               ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
               void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
SPIN_HOST_STUB(int, PtlHandlerAtomicFromHost, ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
               ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
               ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
SPIN_HOST_STUB(int, PtlHandlerFetchAtomicFromDevice, const void *local, void *result, ptl_size_t len, ptl_req_ct_t ct,
               ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
               ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
SPIN_HOST_STUB(int, PtlHandlerSwapFromDevice, const void *local, void *result, const void *operand, ptl_size_t len,
               ptl_req_ct_t ct, ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
               void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
SPIN_HOST_STUB(int, PtlHandlerDMACASNB, ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options,
               ptl_dma_h *h)
SPIN_HOST_STUB(int, PtlHandlerDMACASB, ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options)
SPIN_HOST_STUB(int, PtlHandlerDMAFetchAddNB, ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
               unsigned int options, ptl_dma_h *h)
SPIN_HOST_STUB(int, PtlHandlerDMAFetchAddB, ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
               unsigned int options)
SPIN_HOST_STUB(int, PtlHandlerCAS, uint64_t *value, uint64_t cmpval, uint64_t swapval)
SPIN_HOST_STUB(int, PtlHandlerFAdd, uint64_t *val, uint64_t *before, uint64_t inc)
SPIN_HOST_STUB(int, PtlHandlerYield, void)
static inline int spin_printf(const char *format, ...) { spin_called_on_host("spin_printf"); }
SPIN_HOST_STUB(int, PtlHandlerCTInc, ptl_ct_event_t increment)
SPIN_HOST_STUB(int, PtlHandlerCTGet, ptl_ct_event_t *event)
SPIN_HOST_STUB(int, PtlHandlerCTSet, ptl_ct_event_t new_ct)
SPIN_HOST_STUB(unsigned int, spin_my_hpu, void)
SPIN_HOST_STUB(unsigned int, spin_num_hpus, void)

#ifdef __clang__
#pragma clang diagnostic pop
#else
#pragma GCC diagnostic pop
#endif
#undef SPIN_HOST_STUB

#endif
