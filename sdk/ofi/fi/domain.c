/* Fabrics, domains, event queues, address vectors and memory regions. */
#include "../core/domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 1 << 16 }; /* places of a domain's event queue */

int no_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)other, (void)flags;
    return -ENOSYS;
}

int no_control(struct fid *fid, int command, void *arg) {
    (void)fid, (void)command, (void)arg;
    return -ENOSYS;
}

int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) {
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -ENOSYS;
}

/* ---- The card -------------------------------------------------------------------------------------------------------------- */

int card_open(ptl_handle_ni_t *ni, ptl_ni_limits_t *limits) {
    if (PtlInit() != PTL_OK)
        return -ENODATA;
    int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, limits, ni);
    if (rc != PTL_OK) {
        PtlFini();
        return -error_of(rc);
    }
    return 0;
}

void card_close(ptl_handle_ni_t ni) {
    PtlNIFini(ni);
    PtlFini();
}

enum protocol card_protocol(const ptl_ni_limits_t *limits) {
    static const char *const names[] = {"cpu", "portals4", "spin"};
    const char *asked = getenv("SPIN_FI_PROTOCOL");
    const char *nic = getenv("SPIN_NIC");
    enum protocol best = limits->max_handler_mem > 0 ? PROTOCOL_SPIN : PROTOCOL_CPU;
    if (nic)
        best = strcmp(nic, "spin") == 0       ? PROTOCOL_SPIN
               : strcmp(nic, "portals4") == 0 ? PROTOCOL_PORTALS4
                                              : PROTOCOL_CPU;
    for (enum protocol p = PROTOCOL_CPU; asked && p <= best; p++)
        if (strcmp(asked, names[p]) == 0)
            return p;
    if (asked)
        complain("SPIN_FI_PROTOCOL=%s: this card knows %s%s%s; it uses %s", asked, names[0],
                 best >= PROTOCOL_PORTALS4 ? ", portals4" : "", best >= PROTOCOL_SPIN ? ", spin" : "", names[best]);
    return best;
}

/* ---- Event queues: nothing happens on them, as addresses and regions are there when their call returns --------------------------- */

static int eq_close(struct fid *fid) {
    free(CONTAINER(fid, struct event_queue, fid.fid));
    return 0;
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags) {
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags) {
    (void)eq, (void)buf, (void)flags;
    return -EAGAIN;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags) {
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -ENOSYS;
}

static ssize_t eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags) {
    (void)timeout;
    return eq_read(eq, event, buf, len, flags);
}

static const char *eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len) {
    (void)eq, (void)prov_errno, (void)err_data, (void)buf, (void)len;
    return "no error";
}

static int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context) {
    static struct fi_ops ops = {sizeof ops, eq_close, no_bind, no_control, no_ops_open};
    static struct fi_ops_eq eq_ops = {sizeof eq_ops, eq_read, eq_readerr, eq_write, eq_sread, eq_strerror};
    (void)fabric;
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -ENOSYS;
    struct event_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->fid = (struct fid_eq){.fid = {FI_CLASS_EQ, context, &ops}, .ops = &eq_ops};
    *eq = &queue->fid;
    return 0;
}

/* ---- Address vectors ----------------------------------------------------------------------------------------------------------- */

static int av_close(struct fid *fid) {
    struct address_vector *av = CONTAINER(fid, struct address_vector, fid.fid);
    pthread_mutex_lock(&av->domain->lock);
    av->domain->objects--;
    pthread_mutex_unlock(&av->domain->lock);
    free(av->names);
    free(av);
    return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EQ ? 0 : -EINVAL;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
                     void *context) {
    struct address_vector *av = CONTAINER(fid, struct address_vector, fid);
    pthread_mutex_lock(&av->domain->lock);
    if (av->count + count > av->room) {
        size_t room = 2 * (av->count + count);
        struct name *names = realloc(av->names, room * sizeof *names);
        if (!names) {
            pthread_mutex_unlock(&av->domain->lock);
            return -ENOMEM;
        }
        av->names = names;
        av->room = room;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(&av->names[av->count], (const char *)addr + i * sizeof(struct name), sizeof(struct name));
        if (fi_addr)
            fi_addr[i] = av->count;
        av->count++;
    }
    if (flags & FI_SYNC_ERR && context)
        memset(context, 0, count * sizeof(int)); /* an error number for each address */
    pthread_mutex_unlock(&av->domain->lock);
    return (int)count;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
                        void *context) {
    const struct address_vector *av = CONTAINER(fid, struct address_vector, fid);
    struct host host;
    const char *why = host_find(node, service, flags, &host);
    if (why) {
        complain("fi_av_insertsvc: %s: %s", node ? node : service, why);
        return -EINVAL;
    }
    const struct name name = first_name((ptl_process_t){.phys = {host.rank, av->domain->self.phys.pid}});
    return av_insert(fid, &name, 1, fi_addr, flags, context);
}

static int av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt,
                        fi_addr_t *fi_addr, uint64_t flags, void *context) {
    (void)av, (void)node, (void)nodecnt, (void)service, (void)svccnt, (void)fi_addr, (void)flags, (void)context;
    return -ENOSYS;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags) {
    struct address_vector *av = CONTAINER(fid, struct address_vector, fid);
    (void)flags;
    int rc = 0;
    pthread_mutex_lock(&av->domain->lock);
    for (size_t i = 0; i < count; i++) {
        if (av_name(av, fi_addr[i]))
            av->names[fi_addr[i]].nid = PTL_NID_ANY;
        else
            rc = -EINVAL;
    }
    pthread_mutex_unlock(&av->domain->lock);
    return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen) {
    struct address_vector *av = CONTAINER(fid, struct address_vector, fid);
    pthread_mutex_lock(&av->domain->lock);
    const struct name *name = av_name(av, fi_addr);
    if (name)
        memcpy(addr, name, *addrlen < sizeof *name ? *addrlen : sizeof *name);
    pthread_mutex_unlock(&av->domain->lock);
    *addrlen = sizeof *name;
    return name ? 0 : -EINVAL;
}

static const char *av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len) {
    struct name name;
    (void)av;
    memcpy(&name, addr, sizeof name);
    int length = snprintf(buf, *len, "spin://%u:%u/%u", name.nid, name.pid, name.message_pt);
    *len = (size_t)length + 1;
    return buf;
}

const struct name *av_name(const struct address_vector *av, fi_addr_t address) {
    return av && address < av->count && av->names[address].nid != PTL_NID_ANY ? &av->names[address] : NULL;
}

fi_addr_t av_address(const struct address_vector *av, ptl_process_t process, unsigned number) {
    for (size_t i = 0; av && i < av->count; i++) {
        /* Programs insert ranks in their order more often than not. */
        size_t k = (process.phys.nid + i) % av->count;
        const struct name *name = &av->names[k];
        if (name->nid == process.phys.nid && name->pid == process.phys.pid && name->number == number)
            return k;
    }
    return FI_ADDR_NOTAVAIL;
}

static int av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **av, void *context) {
    static struct fi_ops ops = {sizeof ops, av_close, av_bind, no_control, no_ops_open};
    static struct fi_ops_av av_ops = {sizeof av_ops, av_insert, av_insertsvc, av_insertsym,
                                      av_remove,     av_lookup, av_straddr};
    struct domain *domain = CONTAINER(fid, struct domain, fid);
    if (attr && (attr->name || attr->rx_ctx_bits))
        return -ENOSYS;
    struct address_vector *vector = calloc(1, sizeof *vector);
    if (!vector)
        return -ENOMEM;
    vector->fid = (struct fid_av){.fid = {FI_CLASS_AV, context, &ops}, .ops = &av_ops};
    vector->domain = domain;
    vector->type = attr && attr->type ? attr->type : FI_AV_TABLE;
    if (attr)
        attr->type = vector->type;
    pthread_mutex_lock(&domain->lock);
    domain->objects++;
    pthread_mutex_unlock(&domain->lock);
    *av = &vector->fid;
    return 0;
}

/* ---- Memory regions -------------------------------------------------------------------------------------------------------------- */

static int mr_close(struct fid *fid) {
    struct region *region = CONTAINER(fid, struct region, fid.fid);
    struct domain *domain = region->domain;
    /* An operation that is using the entry ends in a finite simulated time. */
    int rc;
    while ((rc = PtlMEUnlink(region->entry)) == PTL_IN_USE)
        await_progress(domain, end_of_wait(1));
    pthread_mutex_lock(&domain->lock);
    domain->objects--;
    struct region **at = &domain->regions;
    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
    pthread_mutex_unlock(&domain->lock);
    free(region->pieces);
    free(region);
    return -error_of(rc);
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)flags;
    /* Regions belong to all endpoints. Counters of what others do would need events of each access. */
    return other->fclass == FI_CLASS_EP ? 0 : -ENOSYS;
}

static int mr_control(struct fid *fid, int command, void *arg) {
    (void)fid, (void)arg;
    return command == FI_ENABLE ? 0 : -ENOSYS;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
                   uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context) {
    static struct fi_ops ops = {sizeof ops, mr_close, mr_bind, mr_control, no_ops_open};
    struct domain *domain = CONTAINER(fid, struct domain, fid.fid);
    (void)flags;
    if (count > IOV_LIMIT || offset != 0 || fid->fclass != FI_CLASS_DOMAIN)
        return -EINVAL;
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return -ENOMEM;
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                              PTL_ME_NO_TRUNCATE, /* an access beyond the end is refused */
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .hpu_memory = PTL_INVALID_HANDLE};
    if (access & FI_REMOTE_WRITE)
        me.options |= PTL_ME_OP_PUT;
    if (access & FI_REMOTE_READ)
        me.options |= PTL_ME_OP_GET;
    if (count == 1) {
        me.start = iov->iov_base;
        me.length = iov->iov_len;
        /* The whole address space (MPI_BOTTOM) */
        if (!me.start && me.length >= PTL_SIZE_MAX / 2)
            me.length = PTL_SIZE_MAX;
    } else {
        region->pieces = calloc(count, sizeof *region->pieces);
        if (!region->pieces) {
            free(region);
            return -ENOMEM;
        }
        for (size_t i = 0; i < count; i++)
            region->pieces[i] = (ptl_iovec_t){iov[i].iov_base, iov[i].iov_len};
        me.start = region->pieces;
        me.length = count;
        me.options |= PTL_IOVEC;
    }
    pthread_mutex_lock(&domain->lock);
    uint64_t key = requested_key;
    /* A key of the provider's names the first byte of its region, so that a virtual address becomes an offset at the initiator. */
    if (domain->virtual_addresses)
        key = (uint64_t)(uintptr_t)iov->iov_base << KEY_BITS | (domain->next_key++ & ((1u << KEY_BITS) - 1));
    me.match_bits = key;
    int rc = 0;
    for (struct region *other = domain->regions; other; other = other->next)
        if (other->fid.key == key)
            rc = -FI_ENOKEY;
    if (rc == 0)
        rc = -error_of(PtlMEAppend(domain->ni, domain->remote_pt, &me, PTL_PRIORITY_LIST, NULL, &region->entry));
    if (rc == 0) {
        domain->objects++;
        region->domain = domain;
        region->fid = (struct fid_mr){.fid = {FI_CLASS_MR, context, &ops}, .key = key};
        region->next = domain->regions;
        domain->regions = region;
    }
    pthread_mutex_unlock(&domain->lock);
    if (rc != 0) {
        free(region->pieces);
        free(region);
        return rc;
    }
    *mr = &region->fid;
    return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context) {
    const struct iovec iov = {(void *)buf, len};
    return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr) {
    return mr_regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key, flags, mr,
                   attr->context);
}

/* ---- Domains ------------------------------------------------------------------------------------------------------------------- */

static int domain_close(struct fid *fid) {
    struct domain *domain = CONTAINER(fid, struct domain, fid.fid);
    if (domain->objects > 0)
        return -EBUSY;
    PtlMDRelease(domain->md_send);
    PtlMDRelease(domain->md_quiet);
    PtlMDRelease(domain->md_volatile);
    if (domain->md_lossy != PTL_INVALID_HANDLE)
        PtlMDRelease(domain->md_lossy);
    PtlPTFree(domain->ni, domain->remote_pt);
    PtlEQFree(domain->eq);
    card_close(domain->ni);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        free(domain->peers[i]);
    while (domain->free) {
        struct operation *op = domain->free;
        domain->free = op->next;
        free(op);
    }
    pthread_mutex_destroy(&domain->lock);
    free(domain);
    return 0;
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EQ ? 0 : -EINVAL;
}

/* A descriptor of all memory. */
int bind_all(const struct domain *domain, unsigned options, ptl_handle_md_t *md) {
    ptl_md_t all = {.length = PTL_SIZE_MAX, .options = options, .eq_handle = domain->eq, .ct_handle = PTL_CT_NONE};
    return PtlMDBind(domain->ni, &all, md);
}

static int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set) {
    (void)domain, (void)attr, (void)set;
    return -ENOSYS;
}

static int scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context) {
    (void)domain, (void)info, (void)sep, (void)context;
    return -ENOSYS;
}

static int stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context) {
    (void)domain, (void)attr, (void)stx, (void)context;
    return -ENOSYS;
}

static int srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) {
    (void)domain, (void)attr, (void)ep, (void)context;
    return -ENOSYS;
}

/* Reads a number of bytes from the environment. */
static size_t size_variable(const char *name, size_t fallback, size_t max) {
    const char *text = getenv(name);
    if (!text)
        return fallback;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value > max) {
        complain("%s=%s is not a number of bytes up to %zu; it stays %zu", name, text, max, fallback);
        return fallback;
    }
    return value;
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid, void *context) {
    static struct fi_ops ops = {sizeof ops, domain_close, domain_bind, no_control, no_ops_open};
    static struct fi_ops_domain domain_ops = {sizeof domain_ops, av_open,   cq_open, endpoint_open, scalable_ep,
                                              cntr_open,         poll_open, stx_ctx, srx_ctx,       query_atomic};
    static struct fi_ops_mr mr_ops = {sizeof mr_ops, mr_reg, mr_regv, mr_regattr};
    enum { EAGER = 8192, EAGER_MAX = 1 << 15 };
    struct domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return -ENOMEM;
    int rc = card_open(&domain->ni, &domain->limits);
    if (rc != 0) {
        free(domain);
        return rc;
    }
    domain->fabric = CONTAINER(fabric, struct fabric, fid);
    domain->protocol = card_protocol(&domain->limits);
    domain->eager = size_variable("SPIN_FI_EAGER", EAGER, EAGER_MAX);
    domain->virtual_addresses =
        info->domain_attr->mr_mode == FI_MR_BASIC || info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    domain->tells_source = info->caps & FI_SOURCE;
    domain->ranks = spin_size();
    domain->md_lossy = PTL_INVALID_HANDLE;
    pthread_mutex_init(&domain->lock, NULL);
    if ((rc = PtlGetPhysId(domain->ni, &domain->self)) != PTL_OK ||
        (rc = PtlEQAlloc(domain->ni, EVENTS, &domain->eq)) != PTL_OK || (rc = remote_pt_alloc(domain)) != PTL_OK ||
        (rc = bind_all(domain, 0, &domain->md_send)) != PTL_OK ||
        (rc = bind_all(domain, PTL_MD_EVENT_SEND_DISABLE, &domain->md_quiet)) != PTL_OK ||
        (rc = bind_all(domain, PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE, &domain->md_volatile)) != PTL_OK) {
        complain("fi_domain: the card's interface cannot be set up (Portals error %d)", rc);
        card_close(domain->ni);
        pthread_mutex_destroy(&domain->lock);
        free(domain);
        return -error_of(rc);
    }
    domain->fid = (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &ops}, .ops = &domain_ops, .mr = &mr_ops};
    *fid = &domain->fid;
    return 0;
}

/* ---- Fabrics ----------------------------------------------------------------------------------------------------------------- */

static int fabric_close(struct fid *fid) {
    free(CONTAINER(fid, struct fabric, fid.fid));
    return 0;
}

static int passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context) {
    (void)fabric, (void)info, (void)pep, (void)context;
    return -ENOSYS;
}

static int wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set) {
    (void)fabric, (void)attr, (void)set;
    return -ENOSYS;
}

static int trywait(struct fid_fabric *fabric, struct fid **fids, int count) {
    (void)fabric, (void)fids, (void)count;
    return -ENOSYS;
}

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context) {
    static struct fi_ops ops = {sizeof ops, fabric_close, no_bind, no_control, no_ops_open};
    static struct fi_ops_fabric fabric_ops = {sizeof fabric_ops, domain_open, passive_ep, eq_open, wait_open, trywait};
    if (attr->name && strcmp(attr->name, provider.name) != 0)
        return -ENODATA;
    struct fabric *opened = calloc(1, sizeof *opened);
    if (!opened)
        return -ENOMEM;
    opened->fid = (struct fid_fabric){
        .fid = {FI_CLASS_FABRIC, context, &ops}, .ops = &fabric_ops, .api_version = attr->api_version};
    *fabric = &opened->fid;
    return 0;
}
