/* SPDX-License-Identifier: Apache-2.0 */
/* Strided datatype with the constructs of sPIN App. C.3.4: DMA from within a packet. */
typedef struct {
    ptl_size_t vlen, stride, offset;
} ddtvec_info_t;

__handler int ddtvec_payload_handler(const ptl_payload_t p, void *state) {
    const ddtvec_info_t *info = state;
    for (ptl_size_t done = 0; done < p.length;) {
        ptl_size_t at = info->offset + p.offset + done, inside = at % info->vlen;
        ptl_size_t size = info->vlen - inside < p.length - done ? info->vlen - inside : p.length - done;
        PtlHandlerDMAToHostB(p.base + done, at / info->vlen * (info->vlen + info->stride) + inside, size,
                             PTL_ME_HOST_MEM);
        done += size;
    }
    return SUCCESS;
}
