/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of the endpoint (fi_getinfo(3)). */
#include "../rx/bounce.h"
#include "fi.h"

#include <stdlib.h>
#include <string.h>

/* Newer versions of libfabric append to its structures, and free or copy the bytes of their own version. */
enum { GROWTH = 256 };
enum { QUEUE_SIZE = 1024 }; /* operations; a hint to programs, because the provider has no limit */

static void free_info(struct fi_info *info) {
    if (!info)
        return;
    if (info->fabric_attr) {
        free(info->fabric_attr->name);
        free(info->fabric_attr->prov_name);
    }
    if (info->domain_attr)
        free(info->domain_attr->name);
    free(info->fabric_attr);
    free(info->domain_attr);
    free(info->ep_attr);
    free(info->rx_attr);
    free(info->tx_attr);
    free(info->src_addr);
    free(info->dest_addr);
    free(info);
}

static struct fi_info *new_info(void) {
    struct fi_info *info = calloc(1, sizeof *info + GROWTH);
    if (!info)
        return NULL;
    info->tx_attr = calloc(1, sizeof *info->tx_attr + GROWTH);
    info->rx_attr = calloc(1, sizeof *info->rx_attr + GROWTH);
    info->ep_attr = calloc(1, sizeof *info->ep_attr + GROWTH);
    info->domain_attr = calloc(1, sizeof *info->domain_attr + GROWTH);
    info->fabric_attr = calloc(1, sizeof *info->fabric_attr + GROWTH);
    if (info->fabric_attr)
        info->fabric_attr->name = strdup(SPIN_NAME);
    if (info->domain_attr)
        info->domain_attr->name = strdup(SPIN_NAME);
    if (!info->tx_attr || !info->rx_attr || !info->ep_attr || !info->fabric_attr || !info->fabric_attr->name ||
        !info->domain_attr || !info->domain_attr->name) {
        free_info(info);
        return NULL;
    }
    return info;
}

/* Returns the registration modes (fi_mr(3)). A program uses offsets and its own keys, unless its hints allow only
 * FI_MR_BASIC: virtual addresses and keys of the provider. */
static int registration(uint32_t version, const struct fi_domain_attr *hints) {
    int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    if (version >= FI_VERSION(1, 5))
        return hints && hints->mr_mode == FI_MR_BASIC ? basic : 0;
    return hints && hints->mr_mode == FI_MR_BASIC ? FI_MR_BASIC : FI_MR_SCALABLE;
}

/* ---- Capabilities ------------------------------------------------------------------------------------------------ */

/* Capabilities of endpoints. Remote CQ data needs none. */
#define SPIN_CAPS                                                                                                      \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_RECV | FI_SEND | FI_REMOTE_READ |               \
     FI_REMOTE_WRITE | FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SOURCE | FI_DIRECTED_RECV)
#define SPIN_OP_FLAGS                                                                                                  \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MULTI_RECV)
#define DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MESSAGE_DIRECTIONS (FI_SEND | FI_RECV)
#define RMA_DIRECTIONS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define TX_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
#define RX_CAPS                                                                                                        \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |            \
     FI_SOURCE | FI_DIRECTED_RECV)

/* Returns the capabilities of an endpoint for a program that requests `asked`: all directions of messages, or of
 * remote memory, unless it names some. */
static uint64_t granted(uint64_t asked) {
    if (asked == 0)
        return SPIN_CAPS;
    if (asked & (FI_MSG | FI_TAGGED) && !(asked & MESSAGE_DIRECTIONS))
        asked |= MESSAGE_DIRECTIONS;
    if (asked & (FI_RMA | FI_ATOMIC) && !(asked & RMA_DIRECTIONS))
        asked |= RMA_DIRECTIONS;
    return asked | DOMAIN_CAPS;
}

/* ---- Hints ------------------------------------------------------------------------------------------------------- */

/* Returns true if the program requests another name. */
static bool differs(const char *asked, const char *ours) { return asked && strcmp(asked, ours) != 0; }

/* Returns NULL if the endpoint `ours` serves the hints, or the reason against it. */
static const char *objection(const struct fi_info *hints, const struct fi_info *ours) {
    const struct fi_tx_attr *tx = hints->tx_attr;
    const struct fi_rx_attr *rx = hints->rx_attr;
    const struct fi_ep_attr *ep = hints->ep_attr;
    const struct fi_domain_attr *domain = hints->domain_attr;
    if (hints->caps & ~ours->caps)
        return "capabilities";
    if (hints->dest_addr && hints->dest_addrlen != sizeof(struct name))
        return "length of the destination's address";
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != ours->addr_format)
        return "address format";
    if (ep && ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)
        return "endpoint type: only FI_EP_RDM";
    if (ep && ep->protocol != 0 && ep->protocol != ours->ep_attr->protocol)
        return "endpoint protocol";
    if (ep && (ep->max_msg_size > ours->ep_attr->max_msg_size || ep->tx_ctx_cnt > 1 || ep->rx_ctx_cnt > 1 ||
               ep->max_order_raw_size > ours->ep_attr->max_order_raw_size ||
               ep->max_order_war_size > ours->ep_attr->max_order_war_size ||
               ep->max_order_waw_size > ours->ep_attr->max_order_waw_size))
        return "endpoint limits";
    if (tx && (tx->op_flags & ~ours->tx_attr->op_flags || tx->msg_order & ~ours->tx_attr->msg_order ||
               tx->comp_order & ~ours->tx_attr->comp_order || tx->caps & ~(ours->tx_attr->caps | DOMAIN_CAPS)))
        return "transmit flags, order or capabilities";
    if (tx && (tx->inject_size > ours->tx_attr->inject_size || tx->iov_limit > IOV_LIMIT || tx->rma_iov_limit > 1))
        return "transmit limits";
    if (rx && (rx->op_flags & ~ours->rx_attr->op_flags || rx->msg_order & ~ours->rx_attr->msg_order ||
               rx->comp_order & ~ours->rx_attr->comp_order || rx->caps & ~(ours->rx_attr->caps | DOMAIN_CAPS) ||
               rx->iov_limit > IOV_LIMIT))
        return "receive flags, order, capabilities or limits";
    if (domain && differs(domain->name, SPIN_NAME))
        return "domain name";
    if (domain && domain->caps & ~ours->domain_attr->caps)
        return "domain capabilities";
    if (domain && (domain->cq_data_size > ours->domain_attr->cq_data_size ||
                   domain->mr_key_size > ours->domain_attr->mr_key_size))
        return "sizes of CQ data or keys";
    if (domain && (domain->data_progress == FI_PROGRESS_AUTO || domain->control_progress == FI_PROGRESS_AUTO))
        return "progress: only FI_PROGRESS_MANUAL";
    if (hints->fabric_attr && differs(hints->fabric_attr->name, SPIN_NAME))
        return "fabric name";
    return NULL;
}

/* Describes the endpoint for a program with or without `hints`. */
static void describe(struct fi_info *info, uint32_t version, const struct fi_info *hints, const struct card *card) {
    const ptl_ni_limits_t *limits = &card->limits;
    const uint64_t order = FI_ORDER_STRICT | FI_ORDER_DATA | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
                           FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                           FI_ORDER_ATOMIC_WAW;
    const struct fi_domain_attr *asked = hints ? hints->domain_attr : NULL;
    info->caps = SPIN_CAPS;
    info->addr_format = FI_PROV_SPECIFIC | 0x5350;
    *info->tx_attr = (struct fi_tx_attr){
        .caps = TX_CAPS,
        .op_flags = SPIN_OP_FLAGS & ~FI_MULTI_RECV,
        .msg_order = order,
        .comp_order = FI_ORDER_NONE,
        .inject_size = spin_ofi_inject_size(limits),
        .size = QUEUE_SIZE,
        .iov_limit = IOV_LIMIT,
        .rma_iov_limit = 1,
    };
    *info->rx_attr = (struct fi_rx_attr){
        .caps = RX_CAPS,
        .op_flags = FI_COMPLETION | FI_MULTI_RECV,
        .msg_order = order,
        .comp_order = FI_ORDER_NONE,
        .total_buffered_recv = (size_t)(ANY_BUFFERS - 1) * BUFFER_SIZE,
        .size = QUEUE_SIZE,
        .iov_limit = IOV_LIMIT,
    };
    *info->ep_attr = (struct fi_ep_attr){
        .type = FI_EP_RDM,
        .protocol = FI_PROV_SPECIFIC | 0x5350,
        .protocol_version = 1,
        .max_msg_size = limits->max_msg_size,
        .max_order_raw_size = limits->max_waw_ordered_size,
        .max_order_war_size = limits->max_war_ordered_size,
        .max_order_waw_size = limits->max_waw_ordered_size,
        .mem_tag_format = spin_ofi_tag_mask(card->protocol),
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
    };
    struct fi_domain_attr *domain = info->domain_attr;
    domain->threading = asked && asked->threading ? asked->threading : FI_THREAD_SAFE;
    domain->control_progress = domain->data_progress = FI_PROGRESS_MANUAL;
    domain->resource_mgmt = asked && asked->resource_mgmt ? asked->resource_mgmt : FI_RM_ENABLED;
    domain->av_type = asked && asked->av_type ? asked->av_type : FI_AV_TABLE;
    domain->mr_mode = registration(version, asked);
    domain->mr_key_size = sizeof(uint64_t);
    domain->cq_data_size = sizeof(uint32_t);
    domain->cq_cnt = domain->cntr_cnt = QUEUE_SIZE;
    domain->ep_cnt = domain->tx_ctx_cnt = domain->rx_ctx_cnt = ENDPOINTS;
    domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = 1;
    domain->mr_iov_limit = IOV_LIMIT;
    domain->mr_cnt = (size_t)limits->max_entries / 2;
    domain->caps = DOMAIN_CAPS;
    info->fabric_attr->prov_version = SPIN_VERSION;
    info->fabric_attr->api_version = version;
}

/* ---- fi_getinfo -------------------------------------------------------------------------------------------------- */

/* Restricts a description to the capabilities and flags in the hints. */
static void narrow(struct fi_info *info, const struct fi_info *hints) {
    const struct fi_tx_attr *tx = hints->tx_attr;
    const struct fi_rx_attr *rx = hints->rx_attr;
    info->caps = granted(hints->caps);
    info->tx_attr->caps &= tx && tx->caps ? granted(tx->caps) & info->caps : info->caps;
    info->rx_attr->caps &= rx && rx->caps ? granted(rx->caps) & info->caps : info->caps;
    if (tx)
        info->tx_attr->op_flags = tx->op_flags;
    if (rx)
        info->rx_attr->op_flags = rx->op_flags;
    info->handle = hints->handle;
}

static bool set_address(void **address, size_t *length, const void *name) {
    *address = malloc(sizeof(struct name));
    if (!*address)
        return false;
    memcpy(*address, name, sizeof(struct name));
    *length = sizeof(struct name);
    return true;
}

/* Stores the addresses of this process and of the destination, which a host and a service, or the hints, name.
 * Returns 0, or a positive error number with the reason for the user. */
static int address(struct fi_info *info, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, ptl_process_t self, const char **why) {
    const bool is_source = flags & FI_SOURCE;
    struct host host = {0};
    if ((node || service) && (*why = spin_ofi_host_find(node, service, flags, &host)))
        return ENODATA;
    if (is_source && host.names_rank && (int)host.rank != spin_rank()) {
        *why = "the source is the address of another rank";
        return ENODATA;
    }
    const struct name own = spin_ofi_first_name(self);
    const struct name destination = spin_ofi_name_of_host(host, self.phys.pid);
    const void *to = NULL;
    if ((node || service) && !is_source)
        to = &destination;
    else if (hints)
        to = hints->dest_addr;
    const bool done = set_address(&info->src_addr, &info->src_addrlen, &own) &&
                      (!to || set_address(&info->dest_addr, &info->dest_addrlen, to));
    return done ? 0 : ENOMEM;
}

int spin_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                     const struct fi_info *hints, struct fi_info **info) {
    struct card card;
    /* Only ranks of spinrun have a card. */
    if (!getenv("SPIN_RANK") || spin_ofi_card_open(&card) != 0)
        return -ENODATA;
    spin_ofi_card_close(&card);
    struct fi_info *ours = new_info();
    if (!ours)
        return -ENOMEM;
    describe(ours, version, hints, &card);
    const char *why = hints ? objection(hints, ours) : NULL;
    int rc = why ? ENODATA : address(ours, node, service, flags, hints, card.self, &why);
    if (rc != 0) {
        if (why && getenv("FI_LOG_LEVEL"))
            spin_ofi_complain("fi_getinfo: the card does not serve this: %s", why);
        free_info(ours);
        return -rc;
    }
    if (hints)
        narrow(ours, hints);
    else
        ours->tx_attr->op_flags = ours->rx_attr->op_flags = 0;
    *info = ours;
    return 0;
}
