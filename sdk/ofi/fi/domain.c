/* SPDX-License-Identifier: Apache-2.0 */
/* Domains (fi_domain(3)). */
#include "fi.h"

#include <stdlib.h>

static int domain_close(struct fid *fid) {
    struct domain *domain = CONTAINER(fid, struct domain, fid.fid);
    if (domain->objects > 0)
        return -EBUSY;
    spin_ofi_card_stop(&domain->card);
    spin_ofi_card_close(&domain->card);
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

/* Reads a number of bytes, at most `max`, from the environment. */
static size_t size_variable(const char *name, size_t fallback, size_t max) {
    const char *text = getenv(name);
    if (!text)
        return fallback;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value > max) {
        spin_ofi_complain("%s=%s is not a number of bytes up to %zu; it stays %zu", name, text, max, fallback);
        return fallback;
    }
    return value;
}

int spin_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid, void *context) {
    static struct fi_ops ops = {sizeof ops, domain_close, domain_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
    static struct fi_ops_domain domain_ops = {
        sizeof domain_ops,  spin_ofi_av_open, spin_ofi_cq_open, spin_ofi_ep_open, scalable_ep,
        spin_ofi_cntr_open, poll_open,        stx_ctx,          srx_ctx,          spin_ofi_query_atomic};
    enum { EAGER = 8192, EAGER_MAX = 1 << 15 };
    (void)fabric;
    struct domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return -ENOMEM;
    int rc = spin_ofi_card_open(&domain->card);
    if (rc != 0) {
        free(domain);
        return rc;
    }
    domain->eager = size_variable("SPIN_FI_EAGER", EAGER, EAGER_MAX);
    domain->virtual_addresses =
        info->domain_attr->mr_mode == FI_MR_BASIC || info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    domain->tells_source = info->caps & FI_SOURCE;
    domain->ranks = spin_size();
    rc = spin_ofi_card_start(&domain->card);
    if (rc != PTL_OK) {
        spin_ofi_complain("fi_domain: the card's interface cannot be set up (Portals error %d)", rc);
        spin_ofi_card_close(&domain->card);
        free(domain);
        return -spin_ofi_errno(rc);
    }
    pthread_mutex_init(&domain->lock, NULL);
    domain->fid =
        (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &ops}, .ops = &domain_ops, .mr = &spin_ofi_mr_ops};
    *fid = &domain->fid;
    return 0;
}
