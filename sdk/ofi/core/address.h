/* SPDX-License-Identifier: Apache-2.0 */
/* Names of endpoints, address vectors, and hosts that stand for ranks (fi_getinfo(3), fi_av(3)).
 *
 * The name of an endpoint holds the portal table indices at which it takes messages. They follow from its number, so
 * a rank alone names the first endpoint of another process. All ranks run on this computer, whose loopback network
 * has an address for each: rank r has 127.1.0.0 plus r, to which sockets connect as well. */
#ifndef OFI_ADDRESS_H
#define OFI_ADDRESS_H

#include "../base/card.h"

/* Name of an endpoint, as fi_getname(3) returns it. */
struct name {
    ptl_nid_t nid;
    ptl_pid_t pid;
    uint16_t message_pt, tagged_pt, remote_pt, control_pt;
    uint16_t number; /* among the endpoints of its process */
};

struct domain;
struct address_vector {
    struct fid_av fid;
    struct domain *domain;
    enum fi_av_type type;
    struct name *names; /* removed ones have nid PTL_NID_ANY */
    size_t count, room;
};

/* Returns the name behind an address, or NULL. It is valid until the next fi_av_insert. */
const struct name *spin_ofi_av_name(const struct address_vector *av, fi_addr_t address);
/* Returns the address of the endpoint `number` of a process, or FI_ADDR_NOTAVAIL. */
fi_addr_t spin_ofi_av_address(const struct address_vector *av, ptl_process_t process, unsigned number);

/* Returns the name of the first endpoint in the first domain of a process. */
struct name spin_ofi_first_name(ptl_process_t process);

struct host {
    bool names_rank; /* the address belongs to the ranks' network */
    unsigned rank;   /* 0 for other addresses of this computer */
};
/* Returns the name of the first endpoint of the rank that a host stands for; `pid` is that of all ranks with a node
 * each. */
struct name spin_ofi_name_of_host(struct host host, ptl_pid_t pid);
/* Resolves a host and a service (one may be NULL) with the flags of fi_getinfo(3). Returns NULL, or the
 * reason of a failure as static text. */
const char *spin_ofi_host_find(const char *node, const char *service, uint64_t flags, struct host *host);

#endif
