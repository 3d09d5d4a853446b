/* SPDX-License-Identifier: Apache-2.0 */
/* Results of fi_getinfo, and hints that it refuses. */
#include "ofi.h"

#define FI_RMA_EVENT FI_BIT(56)
enum { FI_SOCKADDR_IN = 2, FI_PROTO_RDMA_CM_IB_RC = 1 };

static const uint32_t versions[] = {FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 17), FI_VERSION(2, 0),
                                    FI_VERSION(2, 5)};

/* Without hints: everything. */
static struct fi_info *describe(uint32_t version) {
    struct fi_info *info = NULL;
    EXPECT(fi_getinfo(version, NULL, NULL, 0, NULL, &info) == 0);
    TRUE("one way to communicate", !info->next);
    TRUE("fabric", strcmp(info->fabric_attr->prov_name, "spin") == 0 && strcmp(info->fabric_attr->name, "spin") == 0);
    TRUE("domain", strcmp(info->domain_attr->name, "spin") == 0);
    EQUAL("version", info->fabric_attr->api_version, version);
    EQUAL("type", info->ep_attr->type, FI_EP_RDM);
    const uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND | FI_RECV |
                          FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV |
                          FI_LOCAL_COMM | FI_REMOTE_COMM;
    EQUAL("capabilities", info->caps, caps);
    EQUAL("no demands on the program", info->mode, 0);
    EQUAL("capabilities of sends", info->tx_attr->caps,
          FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND);
    EQUAL("capabilities of receives", info->rx_attr->caps,
          FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
              FI_SOURCE | FI_DIRECTED_RECV);
    EQUAL("capabilities of domains", info->domain_attr->caps, FI_LOCAL_COMM | FI_REMOTE_COMM);
    TRUE("own address", info->src_addr && info->src_addrlen > 0);
    TRUE("no destination", !info->dest_addr && info->dest_addrlen == 0);
    EQUAL("registration", info->domain_attr->mr_mode, version < FI_VERSION(1, 5) ? FI_MR_SCALABLE : 0);
    EQUAL("size of CQ data", info->domain_attr->cq_data_size, 4);
    EQUAL("size of keys", info->domain_attr->mr_key_size, 8);
    EQUAL("progress", info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
    EQUAL("threads", info->domain_attr->threading, FI_THREAD_SAFE);
    TRUE("limits",
         info->tx_attr->inject_size >= 8 && info->tx_attr->iov_limit >= 4 && info->ep_attr->max_msg_size >= 1 << 30);
    return info;
}

typedef void (*change)(struct fi_info *hints, const struct fi_info *ours);

static int ask(change change, const struct fi_info *ours, struct fi_info **info) {
    struct fi_info *hints = fi_dupinfo(NULL);
    EXPECT(hints);
    change(hints, ours);
    int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, info);
    free(hints->domain_attr->name);
    free(hints->fabric_attr->name);
    hints->domain_attr->name = hints->fabric_attr->name = NULL;
    fi_freeinfo(hints);
    return rc;
}

#define HINT(name, ...)                                                                                                \
    static void name(struct fi_info *hints, const struct fi_info *ours) {                                              \
        (void)ours;                                                                                                    \
        __VA_ARGS__;                                                                                                   \
    }
HINT(other_capability, hints->caps = FI_MSG | FI_RMA_EVENT)
HINT(other_addresses, hints->addr_format = FI_SOCKADDR_IN)
HINT(connections, hints->ep_attr->type = FI_EP_MSG)
HINT(datagrams, hints->ep_attr->type = FI_EP_DGRAM)
HINT(other_protocol, hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC)
HINT(longer_messages, hints->ep_attr->max_msg_size = ours->ep_attr->max_msg_size + 1)
HINT(more_contexts, hints->ep_attr->tx_ctx_cnt = 2)
HINT(more_contexts_of_receives, hints->ep_attr->rx_ctx_cnt = 2)
HINT(longer_injects, hints->tx_attr->inject_size = ours->tx_attr->inject_size + 1)
HINT(more_pieces, hints->tx_attr->iov_limit = ours->tx_attr->iov_limit + 1)
HINT(more_pieces_of_receives, hints->rx_attr->iov_limit = ours->rx_attr->iov_limit + 1)
HINT(remote_pieces, hints->tx_attr->rma_iov_limit = 2)
HINT(flags_of_receives_for_sends, hints->tx_attr->op_flags = FI_MULTI_RECV)
HINT(flags_of_sends_for_receives, hints->rx_attr->op_flags = FI_INJECT)
HINT(ordered_completions, hints->tx_attr->comp_order = FI_ORDER_STRICT)
HINT(ordered_completions_of_receives, hints->rx_attr->comp_order = FI_ORDER_STRICT)
HINT(capabilities_of_receives_for_sends, hints->tx_attr->caps = FI_RECV)
HINT(capabilities_of_sends_for_receives, hints->rx_attr->caps = FI_SEND)
HINT(unknown_order, hints->tx_attr->msg_order = FI_BIT(60))
HINT(larger_ordered_reads, hints->ep_attr->max_order_raw_size = ours->ep_attr->max_order_raw_size + 1)
HINT(larger_ordered_reads_first, hints->ep_attr->max_order_war_size = ours->ep_attr->max_order_war_size + 1)
HINT(larger_ordered_writes, hints->ep_attr->max_order_waw_size = ours->ep_attr->max_order_waw_size + 1)
HINT(other_capability_of_domains, hints->domain_attr->caps = FI_RMA_EVENT)
HINT(short_destination, hints->dest_addr = calloc(1, 4); hints->dest_addrlen = 4)
HINT(another_domain, hints->domain_attr->name = strdup("eth0"))
HINT(another_fabric, hints->fabric_attr->name = strdup("eth0"))
HINT(longer_data, hints->domain_attr->cq_data_size = 8)
HINT(longer_keys, hints->domain_attr->mr_key_size = 9)
HINT(threads_of_its_own, hints->domain_attr->data_progress = FI_PROGRESS_AUTO)
HINT(threads_for_control, hints->domain_attr->control_progress = FI_PROGRESS_AUTO)

static const change refused[] = {
    other_capability,
    other_addresses,
    connections,
    datagrams,
    other_protocol,
    longer_messages,
    more_contexts,
    more_contexts_of_receives,
    longer_injects,
    more_pieces,
    more_pieces_of_receives,
    remote_pieces,
    flags_of_receives_for_sends,
    flags_of_sends_for_receives,
    ordered_completions,
    ordered_completions_of_receives,
    capabilities_of_receives_for_sends,
    capabilities_of_sends_for_receives,
    unknown_order,
    larger_ordered_reads,
    larger_ordered_reads_first,
    larger_ordered_writes,
    other_capability_of_domains,
    short_destination,
    another_domain,
    another_fabric,
    longer_data,
    longer_keys,
    threads_of_its_own,
    threads_for_control,
};

HINT(everything, hints->caps = ours->caps; hints->addr_format = ours->addr_format; *hints->ep_attr = *ours->ep_attr;
     *hints->tx_attr = *ours->tx_attr; *hints->rx_attr = *ours->rx_attr;
     hints->domain_attr->name = strdup(ours->domain_attr->name);
     hints->fabric_attr->name = strdup(ours->fabric_attr->name))
HINT(a_map_for_threads, hints->caps = FI_TAGGED; hints->domain_attr->av_type = FI_AV_MAP;
     hints->domain_attr->threading = FI_THREAD_DOMAIN; hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
     hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE)

/* A program gets the requested features, their directions, and those of the domain. */
static const struct {
    uint64_t asked, granted, tx, rx;
} capabilities[] = {
    {FI_MSG, FI_MSG | FI_SEND | FI_RECV, FI_MSG | FI_SEND, FI_MSG | FI_RECV},
    {FI_TAGGED | FI_RECV, FI_TAGGED | FI_RECV, FI_TAGGED, FI_TAGGED | FI_RECV},
    {FI_RMA, FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, FI_RMA | FI_READ | FI_WRITE,
     FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE},
    {FI_ATOMIC | FI_WRITE | FI_SOURCE, FI_ATOMIC | FI_WRITE | FI_SOURCE, FI_ATOMIC | FI_WRITE, FI_ATOMIC | FI_SOURCE},
    {FI_MSG | FI_DIRECTED_RECV | FI_MULTI_RECV, FI_MSG | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SEND | FI_RECV,
     FI_MSG | FI_SEND, FI_MSG | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_RECV},
};
static uint64_t asked_caps;
HINT(some_capabilities, hints->caps = asked_caps)
HINT(capabilities_of_sends, hints->caps = FI_MSG | FI_TAGGED; hints->tx_attr->caps = FI_TAGGED)

static void grants(const struct fi_info *ours) {
    struct fi_info *info = NULL;
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        asked_caps = capabilities[i].asked;
        EQUAL("capabilities", ask(some_capabilities, ours, &info), 0);
        EQUAL("capabilities", info->caps, capabilities[i].granted | FI_LOCAL_COMM | FI_REMOTE_COMM);
        EQUAL("capabilities", info->tx_attr->caps, capabilities[i].tx);
        EQUAL("capabilities", info->rx_attr->caps, capabilities[i].rx);
        fi_freeinfo(info);
    }
    EQUAL("capabilities of sends", ask(capabilities_of_sends, ours, &info), 0);
    EQUAL("capabilities of sends", info->tx_attr->caps, FI_TAGGED | FI_SEND);
    EQUAL("capabilities of sends", info->rx_attr->caps, FI_MSG | FI_TAGGED | FI_RECV);
    fi_freeinfo(info);
}

/* Names of hosts, including names without a rank. */
static void hosts(void) {
    static const struct {
        const char *node, *service;
        uint64_t flags;
    } known[] = {{"localhost", NULL, 0},
                 {"localhost", "5000", 0},
                 {NULL, "5000", 0},
                 {"127.1.0.0", "5000", FI_NUMERICHOST},
                 {"localhost", NULL, FI_SOURCE},
                 {NULL, "5000", FI_SOURCE},
                 {"127.1.0.0", NULL, FI_SOURCE}},
      unknown[] = {{"127.1.0.1", NULL, 0},
                   {"127.1.1.0", "5000", 0},
                   {"192.0.2.1", NULL, 0},
                   {"192.0.2.1", NULL, FI_SOURCE},
                   {"no host has.this name", NULL, 0},
                   {"localhost", NULL, FI_NUMERICHOST},
                   {"localhost", "no such service", 0}};
    struct fi_info *info = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int rc = fi_getinfo(FI_VERSION(1, 17), known[i].node, known[i].service, known[i].flags, NULL, &info);
        judge(rc == 0, __FILE__, __LINE__, "host", "host %zu: fi_getinfo returned %d", i, rc);
        if (rc != 0)
            continue;
        /* This is the only rank. */
        EQUAL("destination", info->dest_addrlen, known[i].flags & FI_SOURCE ? 0 : info->src_addrlen);
        if (info->dest_addr)
            SAME_BYTES("destination", info->dest_addr, info->src_addr, info->src_addrlen);
        fi_freeinfo(info);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        int rc = fi_getinfo(FI_VERSION(1, 17), unknown[i].node, unknown[i].service, unknown[i].flags, NULL, &info);
        judge(rc == -ENODATA, __FILE__, __LINE__, "unknown host", "host %zu: fi_getinfo returned %d", i, rc);
    }
}

/* A destination of the hints is kept, unless a host is named. */
static void destinations(void) {
    struct fi_info *info = NULL, *again = NULL, *hints = fi_dupinfo(NULL);
    EXPECT(fi_getinfo(FI_VERSION(1, 17), "localhost", NULL, 0, NULL, &info) == 0);
    hints->dest_addr = info->dest_addr;
    hints->dest_addrlen = info->dest_addrlen;
    ((unsigned char *)hints->dest_addr)[0] = 42;
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &again) == 0);
    SAME_BYTES("destination of the hints", again->dest_addr, hints->dest_addr, hints->dest_addrlen);
    fi_freeinfo(again);
    EXPECT(fi_getinfo(FI_VERSION(1, 17), "localhost", NULL, 0, hints, &again) == 0);
    SAME_BYTES("destination of the host", again->dest_addr, info->src_addr, info->src_addrlen);
    fi_freeinfo(again);
    hints->dest_addr = NULL;
    fi_freeinfo(hints);
    fi_freeinfo(info);
}

GROUP(info) {
    struct fi_info *info = NULL, *ours = describe(FI_VERSION(1, 17));
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        fi_freeinfo(describe(versions[i]));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int rc = ask(refused[i], ours, &info);
        judge(rc == -ENODATA, __FILE__, __LINE__, "refused hint", "hint %zu: fi_getinfo returned %d", i, rc);
    }
    EQUAL("what is told can be asked for", ask(everything, ours, &info), 0);
    EQUAL("what is told can be asked for", info->caps, ours->caps);
    EQUAL("what is told can be asked for", info->tx_attr->msg_order, ours->tx_attr->msg_order);
    fi_freeinfo(info);
    EQUAL("choices", ask(a_map_for_threads, ours, &info), 0);
    EQUAL("choices", info->domain_attr->av_type, FI_AV_MAP);
    EQUAL("choices", info->domain_attr->threading, FI_THREAD_DOMAIN);
    EQUAL("choices", info->domain_attr->resource_mgmt, FI_RM_DISABLED);
    EQUAL("choices", info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
    EQUAL("choices", info->caps & (FI_TAGGED | FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE), FI_TAGGED);
    fi_freeinfo(info);
    grants(ours);
    hosts();
    destinations();

    /* As many endpoints and regions as announced. */
    enum { ENDPOINTS = 64 };
    struct fid_ep *eps[ENDPOINTS];
    open_net(&(struct wish){0});
    const size_t endpoints = ours->domain_attr->ep_cnt, regions = ours->domain_attr->mr_cnt;
    EXPECT(endpoints > 1 && endpoints <= ENDPOINTS && regions > 1);
    for (size_t i = 1; i < endpoints; i++)
        eps[i] = open_ep(net.tx, net.rx, &(struct wish){0});
    struct fid_mr **mrs = calloc(regions, sizeof *mrs);
    EXPECT(mrs);
    size_t registered = 0;
    while (registered < regions &&
           net.domain->mr->reg(&net.domain->fid, mrs, 8, FI_REMOTE_READ, 0, registered, 0, &mrs[registered], NULL) == 0)
        registered++;
    EQUAL("regions", registered, regions);
    for (size_t i = 0; i < registered; i++)
        EQUAL("regions", mrs[i]->fid.ops->close(&mrs[i]->fid), 0);
    free(mrs);
    for (size_t i = 1; i < endpoints; i++)
        EQUAL("endpoints", eps[i]->fid.ops->close(&eps[i]->fid), 0);
    close_net();
    fi_freeinfo(ours);
}
