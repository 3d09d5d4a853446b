/* SPDX-License-Identifier: Apache-2.0 */
/* Counters (fi_cntr(3)). */
#include "fi.h"

#include <stdlib.h>

/* Makes progress. Returns true if that has changed `value`, a value of the counter. */
static bool cntr_poll(struct counter *counter, const uint64_t *value) {
    pthread_mutex_lock(&counter->domain->lock);
    uint64_t before = *value;
    spin_ofi_progress(counter->domain);
    bool changed = *value != before;
    pthread_mutex_unlock(&counter->domain->lock);
    return changed;
}

/* Reads a value. A program that polls it waits for a change (spin_idle). */
static uint64_t cntr_value(struct counter *counter, const uint64_t *value) {
    if (!cntr_poll(counter, value))
        spin_ofi_idle(counter->domain);
    return *value;
}

static uint64_t cntr_read(struct fid_cntr *fid) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    return cntr_value(counter, &counter->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    return cntr_value(counter, &counter->errors);
}

static void cntr_change(struct counter *counter, uint64_t *value, bool adds, uint64_t operand) {
    pthread_mutex_lock(&counter->domain->lock);
    *value = (adds ? *value : 0) + operand;
    pthread_mutex_unlock(&counter->domain->lock);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    cntr_change(counter, &counter->value, true, value);
    return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    cntr_change(counter, &counter->value, false, value);
    return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    cntr_change(counter, &counter->errors, true, value);
    return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    cntr_change(counter, &counter->errors, false, value);
    return 0;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout) {
    struct counter *counter = CONTAINER(fid, struct counter, fid);
    const uint64_t errors = counter->errors, end = spin_ofi_wait_end(timeout);
    for (bool over = timeout == 0;;) {
        cntr_poll(counter, &counter->value);
        if (counter->value >= threshold)
            return 0;
        if (counter->errors != errors)
            return -FI_EAVAIL;
        if (spin_ofi_lost(counter->domain))
            return (int)spin_ofi_lost(counter->domain);
        if (over)
            return -ETIMEDOUT;
        over = !spin_ofi_await(counter->domain, end);
    }
}

static int cntr_close(struct fid *fid) {
    struct counter *counter = CONTAINER(fid, struct counter, fid.fid);
    spin_ofi_domain_drop(counter->domain);
    free(counter);
    return 0;
}

int spin_ofi_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context) {
    static struct fi_ops ops = {sizeof ops, cntr_close, spin_ofi_no_bind, spin_ofi_no_control, spin_ofi_no_ops_open};
    static struct fi_ops_cntr cntr_ops = {sizeof cntr_ops, cntr_read, cntr_readerr, cntr_add,
                                          cntr_set,        cntr_wait, cntr_adderr,  cntr_seterr};
    struct domain *domain = CONTAINER(fid, struct domain, fid);
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -ENOSYS;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -ENOMEM;
    counter->fid = (struct fid_cntr){.fid = {FI_CLASS_CNTR, context, &ops}, .ops = &cntr_ops};
    counter->domain = domain;
    spin_ofi_domain_hold(domain);
    *cntr = &counter->fid;
    return 0;
}
