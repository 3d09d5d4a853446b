/* SPDX-License-Identifier: Apache-2.0 */
#include "send.h"

#include <string.h>

/* Place of a message at its target. */
struct destination {
    ptl_process_t process;
    ptl_pt_index_t pt;
    uint64_t tag;
};

/* Puts data that the caller may change as soon as the call returns. Only a failure makes an event. */
static int put_volatile(const struct endpoint *ep, const struct send *call, const struct destination *to,
                        uint64_t header) {
    unsigned char gathered[INJECT_MAX];
    const void *data = call->count > 0 ? call->iov->iov_base : NULL;
    if (call->count > 1) {
        size_t at = 0;
        for (size_t i = 0; i < call->count; i++) {
            memcpy(gathered + at, call->iov[i].iov_base, call->iov[i].iov_len);
            at += call->iov[i].iov_len;
        }
        data = gathered;
    }
    return PtlPut(ep->domain->card.md_volatile, (uintptr_t)data, call->length, PTL_NO_ACK_REQ, to->process, to->pt,
                  to->tag, 0, NULL, header);
}

/* Puts a short message, whose operation ends with the SEND event or the acknowledgement. */
static int put_short(struct operation *op, const struct destination *to, uint64_t header, bool acknowledged) {
    const struct card *card = &op->ep->domain->card;
    ptl_handle_md_t md;
    ptl_size_t offset;
    int rc = spin_ofi_operation_descriptor(op, acknowledged ? card->md_quiet : card->md_send,
                                           acknowledged ? PTL_MD_EVENT_SEND_DISABLE : 0, &md, &offset);
    if (rc != PTL_OK)
        return rc;
    return PtlPut(md, offset, op->length, acknowledged ? PTL_ACK_REQ : PTL_NO_ACK_REQ, to->process, to->pt, to->tag, 0,
                  op, header);
}

/* Exposes a long message and announces it. */
static int put_long(struct operation *op, const struct destination *to, uint64_t header, unsigned owed) {
    struct endpoint *ep = op->ep;
    const struct card *card = &ep->domain->card;
    const bool spin = card->protocol == PROTOCOL_SPIN;
    uint32_t cookie = ++ep->cookies & COOKIES;
    ptl_pt_index_t data_pt = spin && op->kind == TAGGED ? ep->pts[TAGGED] : ep->data_pt;
    ptl_me_t me = {.start = op->count == 1 ? op->pieces[0].iov_base : &op->pieces[0],
                   .length = op->count == 1 ? op->length : op->count,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE | (op->count == 1 ? 0 : PTL_IOVEC),
                   .match_id = to->process,
                   .match_bits = spin ? LONG_BITS(cookie) : cookie,
                   .hpu_memory = PTL_INVALID_HANDLE};
    int rc = spin_ofi_operation_append(op, data_pt, &me);
    if (rc != PTL_OK)
        return rc;
    header |= HEADER_IS_LONG | (uint64_t)cookie << 32;
    /* Only a failure, in which no receiver gets the message, posts an event. */
    rc = PtlPut(card->md_volatile, 0, 0, PTL_ACK_REQ, to->process, to->pt, to->tag,
                LONG_OFFSET(op->length, owed, data_pt), op, header);
    if (rc != PTL_OK)
        spin_ofi_operation_unlink(op);
    return rc;
}

/* Sends a message without an operation, and completes it. */
static int send_now(struct endpoint *ep, const struct send *call, const struct destination *to, uint64_t header,
                    uint64_t sent) {
    int rc = put_volatile(ep, call, to, header);
    if (rc != PTL_OK)
        return rc;
    spin_ofi_counter_count(ep->sent, false);
    if (call->report)
        spin_ofi_cq_push(
            ep->tx_cq,
            &(struct completion){
                .entry = {.op_context = call->context, .flags = sent, .len = call->length, .tag = call->tag}});
    return PTL_OK;
}

unsigned spin_ofi_send_units(const struct endpoint *ep, const struct send *call) {
    return spin_ofi_credit_is_short(ep, call->name, call->length) ? spin_ofi_credit_units(call->length) : 1;
}

int spin_ofi_send(struct endpoint *ep, const struct send *call) {
    const struct name *name = call->name;
    const struct destination to = {.process.phys = {name->nid, name->pid},
                                   .pt = call->kind == TAGGED ? name->tagged_pt : name->message_pt,
                                   .tag = call->tag};
    const uint64_t header =
        HEADER_FROM(ep->number) | (call->flags & FI_REMOTE_CQ_DATA ? HEADER_HAS_DATA | (uint32_t)call->data : 0);
    const uint64_t sent = FI_SEND | (call->kind == TAGGED ? FI_TAGGED : FI_MSG);
    const bool acknowledged = call->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) && (call->report || ep->sent);
    struct peer *peer = spin_ofi_credit_peer(ep, name);
    const unsigned owed = peer ? peer->flows[call->kind].owed : 0;
    int rc;
    if (call->length <= spin_ofi_inject_size(&ep->domain->card.limits) && (!acknowledged || call->flags & FI_INJECT)) {
        rc = send_now(ep, call, &to, header | HEADER_WITH_OWED(owed), sent);
    } else {
        struct operation *op =
            spin_ofi_operation_new(ep, SEND, spin_ofi_initiator_event, call->context, sent, call->report);
        if (!op)
            return PTL_NO_SPACE;
        spin_ofi_operation_memory(op, call->iov, call->count);
        op->kind = call->kind;
        op->tag = call->tag;
        rc = spin_ofi_credit_is_short(ep, name, call->length)
                 ? put_short(op, &to, header | HEADER_WITH_OWED(owed), acknowledged)
                 : put_long(op, &to, header, owed);
        if (rc != PTL_OK)
            spin_ofi_operation_free(op);
    }
    if (rc == PTL_OK && peer) {
        peer->flows[call->kind].under_way += spin_ofi_send_units(ep, call);
        peer->flows[call->kind].owed = 0;
    }
    return rc;
}
