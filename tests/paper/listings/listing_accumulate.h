/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulate with the constructs and the arithmetic of sPIN App. C.3.2. */
typedef struct {
    ptl_process_t source;
    ptl_size_t offset;
    bool pong;
} accumulate_info_t;

__handler int accumulate_header_handler(const ptl_header_t h, void *state) {
    ((accumulate_info_t *)state)->source = h.source_id;
    return PROCESS_DATA;
}

__handler int accumulate_payload_handler(const ptl_payload_t p, void *state) {
    const accumulate_info_t *info = state;
    const float *factor = (const float *)p.base;
    float *product = malloc(p.length / sizeof(float));
    ptl_size_t at = info->offset + p.offset;
    PtlHandlerDMAFromHostB(at, product, p.length, PTL_ME_HOST_MEM);
    for (float *pair = product; pair < product + p.length / sizeof(float); pair += 2, factor += 2) {
        pair[0] = factor[0] * pair[0] - factor[1] * pair[1];
        pair[1] = factor[0] * pair[1] - factor[1] * pair[0];
    }
    PtlHandlerDMAToHostB(product, at, p.length, PTL_ME_HOST_MEM);
    if (info->pong)
        PtlHandlerPutFromDevice(product, p.length, 1, 0, info->source, 10, 0, NULL, 0);
    free(product);
    return SUCCESS;
}
