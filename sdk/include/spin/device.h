/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of <spin.h> on the card: each builds a command and passes its address to the card. Layouts and numbers are
 * those of crates/base/abi (device.rs); a test compares them. */
#ifndef SPIN_DEVICE_H
#define SPIN_DEVICE_H

/* Defines int spin_command(uint32_t number, uint32_t argument); spincc defines the macro as a file in spin/arch. */
#include SPIN_ARCH_HEADER

enum spin_command_number {
    SPIN_CMD_PUT_FROM_DEVICE = 1,
    SPIN_CMD_PUT_FROM_HOST = 2,
    SPIN_CMD_DMA_TO_HOST = 3,
    SPIN_CMD_DMA_FROM_HOST = 4,
    SPIN_CMD_DMA_TEST = 5,
    SPIN_CMD_DMA_WAIT = 6,
    SPIN_CMD_YIELD = 7,
    SPIN_CMD_CT_INC = 8,
    SPIN_CMD_CT_GET = 9,
    SPIN_CMD_CT_SET = 10,
    SPIN_CMD_MY_HPU = 11,
    SPIN_CMD_NUM_HPUS = 12,
    SPIN_CMD_ABORT = 13,
    SPIN_CMD_GET_TO_HOST = 14,
    SPIN_CMD_GET_TO_DEVICE = 15,
    SPIN_CMD_ATOMIC_FROM_DEVICE = 16,
    SPIN_CMD_ATOMIC_FROM_HOST = 17,
    SPIN_CMD_DMA_CAS = 18,
    SPIN_CMD_DMA_FETCH_ADD = 19,
    SPIN_CMD_CAS = 20,
    SPIN_CMD_FETCH_ADD = 21,
    SPIN_CMD_PRINT = 22,
    SPIN_CMD_ASSERT = 23,
    SPIN_CMD_FETCH_ATOMIC = 24
};

struct spin_put_cmd {
    uint64_t local;
    uint64_t len;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t hdr_data;
    ptl_process_t target_id;
    uint32_t user_ptr;
    uint16_t ct;
    uint16_t ack_req;
};

struct spin_dma_cmd {
    uint64_t offset;
    uint32_t local;
    uint32_t len;
    uint32_t options;
    uint32_t handle;
};

struct spin_atomic_cmd {
    struct spin_put_cmd put;
    uint32_t operation;
    uint32_t datatype;
};

struct spin_fetch_atomic_cmd {
    struct spin_atomic_cmd atomic;
    uint8_t operand[32];
    uint32_t result;
    uint32_t pad;
};

struct spin_dma_atomic_cmd {
    uint64_t offset;
    uint64_t value;
    uint64_t swap;
    uint32_t result;
    uint32_t datatype;
    uint32_t options;
    uint32_t handle;
};

struct spin_cas_cmd {
    uint64_t compare;
    uint64_t swap;
    uint32_t address;
    uint32_t pad;
};

struct spin_fetch_add_cmd {
    uint64_t increment;
    uint64_t before;
    uint32_t address;
    uint32_t pad;
};

struct spin_print_cmd {
    uint32_t format;
    uint32_t arguments;
};

struct spin_assert_cmd {
    uint32_t expression;
    uint32_t file;
    uint32_t function;
    uint32_t line;
};

SPIN_HANDLER_CALL uint32_t spin_address(const volatile void *p) { return (uint32_t)(uintptr_t)p; }

SPIN_HANDLER_CALL struct spin_put_cmd spin_put_command(uint64_t local, ptl_size_t len, ptl_req_ct_t ct,
                                                       ptl_ack_req_t ack_req, ptl_process_t target_id,
                                                       ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                                       void *user_ptr, ptl_hdr_data_t hdr_data) {
    struct spin_put_cmd cmd;
    cmd.local = local;
    cmd.len = len;
    cmd.match_bits = match_bits;
    cmd.remote_offset = remote_offset;
    cmd.hdr_data = hdr_data;
    cmd.target_id = target_id;
    cmd.user_ptr = spin_address(user_ptr);
    cmd.ct = ct;
    cmd.ack_req = ack_req;
    return cmd;
}

SPIN_HANDLER_CALL int spin_put(uint32_t number, uint64_t local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                               ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                               void *user_ptr, ptl_hdr_data_t hdr_data) {
    struct spin_put_cmd cmd =
        spin_put_command(local, len, ct, ack_req, target_id, match_bits, remote_offset, user_ptr, hdr_data);
    return spin_command(number, spin_address(&cmd));
}

SPIN_HANDLER_CALL int spin_atomic(uint32_t number, uint64_t local, ptl_size_t len, ptl_req_ct_t ct,
                                  ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_match_bits_t match_bits,
                                  ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                  ptl_datatype_t datatype) {
    struct spin_atomic_cmd cmd;
    cmd.put = spin_put_command(local, len, ct, ack_req, target_id, match_bits, remote_offset, user_ptr, hdr_data);
    cmd.operation = operation;
    cmd.datatype = datatype;
    return spin_command(number, spin_address(&cmd));
}

/* Returns the size of an item of a conditional swap in bytes; 0 for the types that swaps do not have. */
SPIN_HANDLER_CALL uint32_t spin_item_bytes(ptl_datatype_t datatype) {
    switch (datatype) {
    case PTL_INT8_T:
    case PTL_UINT8_T: return 1;
    case PTL_INT16_T:
    case PTL_UINT16_T: return 2;
    case PTL_INT32_T:
    case PTL_UINT32_T:
    case PTL_FLOAT: return 4;
    case PTL_INT64_T:
    case PTL_UINT64_T:
    case PTL_DOUBLE:
    case PTL_FLOAT_COMPLEX: return 8;
    case PTL_DOUBLE_COMPLEX:
    case PTL_LONG_DOUBLE: return 16;
    case PTL_LONG_DOUBLE_COMPLEX: return 32;
    default: return 0;
    }
}

SPIN_HANDLER_CALL int PtlHandlerSwapFromDevice(const void *local, void *result, const void *operand, ptl_size_t len,
                                               ptl_req_ct_t ct, ptl_process_t target_id, ptl_match_bits_t match_bits,
                                               ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                               ptl_op_t operation, ptl_datatype_t datatype) {
    struct spin_fetch_atomic_cmd cmd;
    cmd.atomic.put = spin_put_command(spin_address(local), len, ct, PTL_NO_ACK_REQ, target_id, match_bits,
                                      remote_offset, user_ptr, hdr_data);
    cmd.atomic.operation = operation;
    cmd.atomic.datatype = datatype;
    cmd.result = spin_address(result);
    if (operation > PTL_SWAP)
        for (uint32_t i = 0; i < spin_item_bytes(datatype); i++)
            cmd.operand[i] = ((const uint8_t *)operand)[i];
    return spin_command(SPIN_CMD_FETCH_ATOMIC, spin_address(&cmd));
}

SPIN_HANDLER_CALL int PtlHandlerFetchAtomicFromDevice(const void *local, void *result, ptl_size_t len, ptl_req_ct_t ct,
                                                      ptl_process_t target_id, ptl_match_bits_t match_bits,
                                                      ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                                      ptl_op_t operation, ptl_datatype_t datatype) {
    if (operation >= PTL_SWAP)
        return SPIN_ERR_INVALID;
    return PtlHandlerSwapFromDevice(local, result, NULL, len, ct, target_id, match_bits, remote_offset, user_ptr,
                                    hdr_data, operation, datatype);
}

SPIN_HANDLER_CALL int PtlHandlerPutFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                              ptl_process_t target_id, ptl_match_bits_t match_bits,
                                              ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
    return spin_put(SPIN_CMD_PUT_FROM_DEVICE, spin_address(local), len, ct, ack_req, target_id, match_bits,
                    remote_offset, user_ptr, hdr_data);
}

SPIN_HANDLER_CALL int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                            ptl_process_t target_id, ptl_match_bits_t match_bits,
                                            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
    return spin_put(SPIN_CMD_PUT_FROM_HOST, offset, len, ct, ack_req, target_id, match_bits, remote_offset, user_ptr,
                    hdr_data);
}

SPIN_HANDLER_CALL int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
                                          ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr) {
    return spin_put(SPIN_CMD_GET_TO_HOST, offset, len, ct, PTL_NO_ACK_REQ, target_id, match_bits, remote_offset,
                    user_ptr, 0);
}

SPIN_HANDLER_CALL int PtlHandlerGetToDevice(void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
                                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr) {
    return spin_put(SPIN_CMD_GET_TO_DEVICE, spin_address(local), len, ct, PTL_NO_ACK_REQ, target_id, match_bits,
                    remote_offset, user_ptr, 0);
}

SPIN_HANDLER_CALL int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct,
                                                 ptl_ack_req_t ack_req, ptl_process_t target_id,
                                                 ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                                 ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
    return spin_atomic(SPIN_CMD_ATOMIC_FROM_DEVICE, spin_address(local), len, ct, ack_req, target_id, match_bits,
                       remote_offset, user_ptr, hdr_data, operation, datatype);
}

SPIN_HANDLER_CALL int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct,
                                               ptl_ack_req_t ack_req, ptl_process_t target_id,
                                               ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                               ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
    return spin_atomic(SPIN_CMD_ATOMIC_FROM_HOST, offset, len, ct, ack_req, target_id, match_bits, remote_offset,
                       user_ptr, hdr_data, operation, datatype);
}

SPIN_HANDLER_CALL int spin_dma(uint32_t number, const void *local, ptl_size_t offset, ptl_size_t len,
                               unsigned int options, ptl_dma_h *h) {
    struct spin_dma_cmd cmd;
    cmd.offset = offset;
    cmd.local = spin_address(local);
    cmd.len = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len; /* exceeds every card's limit either way */
    cmd.options = options;
    int result = spin_command(number, spin_address(&cmd));
    *h = cmd.handle;
    return result;
}

SPIN_HANDLER_CALL int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options,
                                            ptl_dma_h *h) {
    return spin_dma(SPIN_CMD_DMA_TO_HOST, local, offset, len, options, h);
}

SPIN_HANDLER_CALL int PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t len, unsigned int options,
                                              ptl_dma_h *h) {
    return spin_dma(SPIN_CMD_DMA_FROM_HOST, local, offset, len, options, h);
}

SPIN_HANDLER_CALL int PtlHandlerDMATest(ptl_dma_h h) { return spin_command(SPIN_CMD_DMA_TEST, h); }

SPIN_HANDLER_CALL int PtlHandlerDMAWait(ptl_dma_h h) { return spin_command(SPIN_CMD_DMA_WAIT, h); }

SPIN_HANDLER_CALL int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned int options) {
    ptl_dma_h h;
    int result = PtlHandlerDMAToHostNB(local, offset, len, options, &h);
    return result ? result : PtlHandlerDMAWait(h);
}

SPIN_HANDLER_CALL int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t len, unsigned int options) {
    ptl_dma_h h;
    int result = PtlHandlerDMAFromHostNB(offset, local, len, options, &h);
    return result ? result : PtlHandlerDMAWait(h);
}

SPIN_HANDLER_CALL int spin_dma_atomic(uint32_t number, ptl_size_t offset, uint64_t value, uint64_t swap, void *result,
                                      ptl_datatype_t datatype, unsigned int options, ptl_dma_h *h) {
    struct spin_dma_atomic_cmd cmd;
    cmd.offset = offset;
    cmd.value = value;
    cmd.swap = swap;
    cmd.result = spin_address(result);
    cmd.datatype = datatype;
    cmd.options = options;
    int answer = spin_command(number, spin_address(&cmd));
    *h = cmd.handle;
    return answer;
}

SPIN_HANDLER_CALL int PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options,
                                         ptl_dma_h *h) {
    return spin_dma_atomic(SPIN_CMD_DMA_CAS, offset, *cmpval, swapval, cmpval, PTL_UINT64_T, options, h);
}

SPIN_HANDLER_CALL int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options) {
    ptl_dma_h h;
    int result = PtlHandlerDMACASNB(offset, cmpval, swapval, options, &h);
    return result ? result : PtlHandlerDMAWait(h);
}

SPIN_HANDLER_CALL int PtlHandlerDMAFetchAddNB(ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
                                              unsigned int options, ptl_dma_h *h) {
    return spin_dma_atomic(SPIN_CMD_DMA_FETCH_ADD, offset, inc, 0, res, type, options, h);
}

SPIN_HANDLER_CALL int PtlHandlerDMAFetchAddB(ptl_size_t offset, ptl_size_t inc, ptl_size_t *res, ptl_datatype_t type,
                                             unsigned int options) {
    ptl_dma_h h;
    int result = PtlHandlerDMAFetchAddNB(offset, inc, res, type, options, &h);
    return result ? result : PtlHandlerDMAWait(h);
}

SPIN_HANDLER_CALL int PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval) {
    struct spin_cas_cmd cmd;
    cmd.compare = cmpval;
    cmd.swap = swapval;
    cmd.address = spin_address(value);
    return spin_command(SPIN_CMD_CAS, spin_address(&cmd));
}

SPIN_HANDLER_CALL int PtlHandlerFAdd(uint64_t *val, uint64_t *before, uint64_t inc) {
    struct spin_fetch_add_cmd cmd;
    cmd.increment = inc;
    cmd.address = spin_address(val);
    int result = spin_command(SPIN_CMD_FETCH_ADD, spin_address(&cmd));
    *before = cmd.before;
    return result;
}

SPIN_HANDLER_CALL int PtlHandlerYield(void) { return spin_command(SPIN_CMD_YIELD, 0); }

SPIN_HANDLER_CALL int PtlHandlerCTInc(ptl_ct_event_t increment) {
    return spin_command(SPIN_CMD_CT_INC, spin_address(&increment));
}

SPIN_HANDLER_CALL int PtlHandlerCTGet(ptl_ct_event_t *event) {
    return spin_command(SPIN_CMD_CT_GET, spin_address(event));
}

SPIN_HANDLER_CALL int PtlHandlerCTSet(ptl_ct_event_t new_ct) {
    return spin_command(SPIN_CMD_CT_SET, spin_address(&new_ct));
}

SPIN_HANDLER_CALL unsigned int spin_my_hpu(void) { return (unsigned int)spin_command(SPIN_CMD_MY_HPU, 0); }

SPIN_HANDLER_CALL unsigned int spin_num_hpus(void) { return (unsigned int)spin_command(SPIN_CMD_NUM_HPUS, 0); }

#endif
