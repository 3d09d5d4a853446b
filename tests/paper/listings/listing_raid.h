/* SPDX-License-Identifier: Apache-2.0 */
/* RAID-5 with the constructs of sPIN App. C.3.5: two typedefs of the user header, whose fields the first part mixes. */
#define PARITY_TAG 53

typedef struct {
    ptl_process_t parity, source;
    ptl_size_t offset;
} primary_info_t;

typedef struct {
    int length;
} ptl_user_header_t;

static inline void spin_exclusive_or(uint32_t *to, const uint8_t *from, ptl_size_t bytes) {
    for (ptl_size_t i = 0; i < bytes / 4; i++)
        to[i] ^= ((const uint32_t *)from)[i];
}

__handler int primary_write_header_handler(const ptl_header_t h, void *state) {
    ((primary_info_t *)state)->source = h.source_id;
    return PROCESS_DATA;
}

__handler int primary_write_payload_handler(const ptl_payload_t p, void *state) {
    const primary_info_t *info = state;
    ptl_size_t at = info->offset + p.offset;
    uint32_t *mixed = malloc(p.length / 4);
    PtlHandlerDMAFromHostB(at, mixed, p.length, PTL_ME_HOST_MEM);
    spin_exclusive_or(mixed, p.base, p.length);
    PtlHandlerDMAToHostB(mixed, at, p.length, PTL_ME_HOST_MEM);
    PtlHandlerPutFromDevice(mixed, p.length, PTL_LOCAL_ME_CT, 0, info->parity, PARITY_TAG, 0, NULL, info->source);
    free(mixed);
    return SUCCESS;
}

__handler int primary_read_header_handler(const ptl_header_t h, void *state) {
    (void)state;
    PtlHandlerPutFromHost(h.offset, h.user_hdr.length, PTL_LOCAL_ME_CT, 0, h.source_id, h.match_bits, 0, NULL, 0);
    return PROCEED;
}

__handler int primary_send_acknowledgement_header_handler(const ptl_header_t h, void *state) {
    const uint8_t reply = SUCCESS;
    (void)state;
    PtlHandlerPutFromDevice(&reply, 1, PTL_LOCAL_ME_CT, 0, h.user_hdr.client, h.match_bits, 0, NULL, 0);
    return PROCEED;
}

typedef struct {
    ptl_process_t source, client;
    ptl_size_t offset;
} parity_info_t;

typedef struct {
    int client;
} ptl_user_header_t;

__handler int parity_update_header_handler(const ptl_header_t h, void *state) {
    parity_info_t *info = state;
    info->source = h.source_id;
    info->client = h.user_hdr.client;
    return PROCESS_DATA;
}

__handler int parity_update_payload_handler(const ptl_payload_t p, void *state) {
    const parity_info_t *info = state;
    uint32_t *mixed = malloc(p.length / 4);
    PtlHandlerDMAFromHostB(info->offset + p.offset, mixed, p.length, PTL_ME_HOST_MEM);
    spin_exclusive_or(mixed, p.base, p.length);
    PtlHandlerDMAToHostB(mixed, info->offset + p.offset, p.length, PTL_ME_HOST_MEM);
    free(mixed);
    return SUCCESS;
}

__handler int parity_update_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    const parity_info_t *info = state;
    const uint8_t reply = SUCCESS;
    PtlHandlerPutFromDevice(&reply, 1, PTL_LOCAL_ME_CT, 0, info->source, 30, 0, NULL, info->client);
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}
