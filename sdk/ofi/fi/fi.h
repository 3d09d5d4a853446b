/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and calls of libfabric. Each file is named by the object or the manual page that it implements. */
#ifndef OFI_FI_H
#define OFI_FI_H

#include "../core/domain.h"

/* Opens objects (fi_fabric(3), fi_domain(3), fi_eq(3), fi_av(3), fi_cq(3), fi_cntr(3), fi_endpoint(3)). Each returns
 * 0 or a negative error number. */
int spin_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int spin_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
int spin_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
int spin_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
int spin_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int spin_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
int spin_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/* Calls of open objects (fi_mr(3), fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3)). */
extern struct fi_ops_mr spin_ofi_mr_ops;
extern struct fi_ops_msg spin_ofi_msg_ops;
extern struct fi_ops_tagged spin_ofi_tagged_ops;
extern struct fi_ops_rma spin_ofi_rma_ops;
extern struct fi_ops_atomic spin_ofi_atomic_ops;
int spin_ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                          uint64_t flags);

/* Describes the endpoint that serves the hints (fi_getinfo(3)). Returns 0 or a negative error number: -FI_ENODATA
 * without one. */
int spin_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                     const struct fi_info *hints, struct fi_info **info);

/* Operations that an object does not have. They return -FI_ENOSYS. */
int spin_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int spin_ofi_no_control(struct fid *fid, int command, void *arg);
int spin_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* Count an object that keeps its domain open, from its opening to its close. They take the lock. */
void spin_ofi_domain_hold(struct domain *domain);
void spin_ofi_domain_drop(struct domain *domain);

/* Handles all events that the card has for the domain, and answers requests for credit. The lock is taken. */
void spin_ofi_progress(struct domain *domain);
/* Reports an unsuccessful round of polls to the simulator (spin_idle). Does not take the lock. */
void spin_ofi_idle(struct domain *domain);
#define FOREVER UINT64_MAX
/* Returns the simulated time in ps at which a wait of `milliseconds` from now ends, or FOREVER if they are negative. */
uint64_t spin_ofi_wait_end(int milliseconds);
/* Waits for an event until `end`, in ps, and handles it. For FOREVER, waits until something may have changed.
 * Returns false once `end` has passed. The lock is not taken. */
bool spin_ofi_await(struct domain *domain, uint64_t end);

/* Returns 0, or the negative error number of a domain whose card has lost events or does not work any more. Calls that
 * can return an error begin with it. */
static inline ssize_t spin_ofi_lost(const struct domain *domain) { return -domain->card.pump.failure; }

static inline struct endpoint *endpoint_of(struct fid_ep *fid) { return CONTAINER(fid, struct endpoint, fid); }

/* Returns true if the success of a call with these flags is put into the transmit queue (fi_endpoint(3),
 * FI_SELECTIVE_COMPLETION). */
static inline bool is_reported(const struct endpoint *ep, uint64_t flags) {
    return ep->tx_cq && (!ep->tx_selective || flags & FI_COMPLETION);
}

#endif
