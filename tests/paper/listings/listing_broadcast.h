/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast with the constructs of sPIN App. C.3.3: arithmetic on ranks. */
#define PTL_MAX_SIZE 4096

typedef struct {
    ptl_process_t my_rank, p;
    ptl_size_t offset, length;
    bool stream;
} bcast_info_t;

__handler int bcast_header_handler(const ptl_header_t h, void *state) {
    bcast_info_t *info = state;
    info->length = h.length;
    info->stream = h.length <= PTL_MAX_SIZE;
    return info->stream ? PROCESS_DATA : PROCEED;
}

__handler int bcast_payload_handler(const ptl_payload_t p, void *state) {
    const bcast_info_t *info = state;
    for (ptl_process_t half = info->p / 2; half > 0; half /= 2)
        if (info->my_rank % (2 * half) == 0)
            PtlHandlerPutFromDevice(p.base, p.length, PTL_LOCAL_ME_CT, 0, info->my_rank + half, 10, 0, NULL, 0);
    return SUCCESS;
}

__handler int bcast_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    const bcast_info_t *info = state;
    for (ptl_process_t half = info->stream ? 0 : info->p / 2; half > 0; half /= 2)
        if (info->my_rank % (2 * half) == 0)
            PtlHandlerPutFromHost(info->offset, info->length, PTL_LOCAL_ME_CT, 0, info->my_rank + half, 10, 0, NULL, 0);
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}
