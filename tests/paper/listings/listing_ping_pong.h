/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong with the constructs of sPIN App. C.3.1. */
#define PTL_MAX_SIZE 4096

typedef struct {
    bool stream;
    ptl_process_t source;
    ptl_size_t length, offset;
} pingpong_info_t;

__handler int pingpong_header_handler(const ptl_header_t h, void *state) {
    pingpong_info_t *info = state;
    info->stream = h.length <= PTL_MAX_SIZE;
    info->length = h.length;
    if (info->stream)
        info->source = h.source_id;
    return info->stream ? PROCESS_DATA : PROCEED;
}

__handler int pingpong_payload_handler(const ptl_payload_t p, void *state) {
    const pingpong_info_t *info = state;
    PtlHandlerPutFromDevice(p.base, p.length, 1, 0, info->source, 10, 0, NULL, 0);
    return SUCCESS;
}

__handler int pingpong_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    const pingpong_info_t *info = state;
    if (info->stream)
        return SUCCESS;
    PtlHandlerPutFromHost(info->offset, info->length, 1, 0, info->source, 10, 0, NULL, 0);
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}
