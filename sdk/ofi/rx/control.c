/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

static void control_event(struct event_sink *sink, const ptl_event_t *event) {
    struct endpoint *ep = CONTAINER(sink, struct control, sink)->ep;
    if (event->type != PTL_EVENT_PUT) {
        spin_ofi_event_unexpected(event);
        return;
    }
    if (spin_ofi_credit_event(ep, event) || !ep->rx_cq)
        return;
    const struct completion completion = {
        .entry = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                  .len = event->remote_offset,
                  .data = HEADER_DATA(event->hdr_data)},
        .source = spin_ofi_av_address(ep->av, event->initiator, HEADER_NUMBER(event->hdr_data))};
    spin_ofi_cq_push(ep->rx_cq, &completion);
}

int spin_ofi_control_start(struct endpoint *ep) {
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~0ull,
                   .hpu_memory = PTL_INVALID_HANDLE};
    ep->control = (struct control){.sink.handle = control_event, .ep = ep};
    return PtlMEAppend(ep->domain->card.ni, ep->control_pt, &me, PTL_PRIORITY_LIST, &ep->control, &ep->control.entry);
}

void spin_ofi_control_stop(struct endpoint *ep) { PtlMEUnlink(ep->control.entry); }
