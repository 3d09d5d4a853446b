/* SPDX-License-Identifier: Apache-2.0 */
/* Address vectors (fi_av(3)). */
#include "fi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int av_close(struct fid *fid) {
    struct address_vector *av = CONTAINER(fid, struct address_vector, fid.fid);
    spin_ofi_domain_drop(av->domain);
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
        memset(context, 0, count * sizeof(int)); /* one error number for each address */
    pthread_mutex_unlock(&av->domain->lock);
    return (int)count;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
                        void *context) {
    const struct address_vector *av = CONTAINER(fid, struct address_vector, fid);
    struct host host;
    const char *why = spin_ofi_host_find(node, service, flags, &host);
    if (why) {
        spin_ofi_complain("fi_av_insertsvc: %s: %s", node ? node : service, why);
        return -EINVAL;
    }
    const struct name name = spin_ofi_name_of_host(host, av->domain->card.self.phys.pid);
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
        if (spin_ofi_av_name(av, fi_addr[i]))
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
    const struct name *name = spin_ofi_av_name(av, fi_addr);
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

int spin_ofi_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **av, void *context) {
    static struct fi_ops ops = {sizeof ops, av_close, av_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
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
    spin_ofi_domain_hold(domain);
    *av = &vector->fid;
    return 0;
}
