/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* struct addrinfo */

#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const in_addr_t RANKS_NETWORK = 0x7f010000, RANKS_MASK = 0xffff0000;

/* ---- Names ------------------------------------------------------------------------------------------------------- */

struct name spin_ofi_first_name(ptl_process_t process) {
    return (struct name){.nid = process.phys.nid,
                         .pid = process.phys.pid,
                         .message_pt = (uint16_t)ENDPOINT_PT(0, PT_MESSAGE),
                         .tagged_pt = (uint16_t)ENDPOINT_PT(0, PT_TAGGED),
                         .remote_pt = FIRST_REMOTE_PT,
                         .control_pt = (uint16_t)ENDPOINT_PT(0, PT_CONTROL)};
}

struct name spin_ofi_name_of_host(struct host host, ptl_pid_t pid) {
    ptl_process_t process = {.phys = {host.rank, pid}};
    spin_process_of((int)host.rank, pid, &process); /* a host's rank exists */
    return spin_ofi_first_name(process);
}

const struct name *spin_ofi_av_name(const struct address_vector *av, fi_addr_t address) {
    return av && address < av->count && av->names[address].nid != PTL_NID_ANY ? &av->names[address] : NULL;
}

fi_addr_t spin_ofi_av_address(const struct address_vector *av, ptl_process_t process, unsigned number) {
    const int rank = spin_rank_of(process.phys.nid, process.phys.pid);
    for (size_t i = 0; av && i < av->count; i++) {
        /* Programs mostly insert ranks in order. */
        size_t k = ((size_t)(rank < 0 ? 0 : rank) + i) % av->count;
        const struct name *name = &av->names[k];
        if (name->nid == process.phys.nid && name->pid == process.phys.pid && name->number == number)
            return k;
    }
    return FI_ADDR_NOTAVAIL;
}

/* ---- Hosts ------------------------------------------------------------------------------------------------------- */

/* Returns true if a socket can have the address, so that it belongs to this computer. */
static bool is_here(const struct addrinfo *address) {
    const int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool bound = fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

const char *spin_ofi_host_find(const char *node, const char *service, uint64_t flags, struct host *host) {
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0};
    struct addrinfo *found;
    const int rc = getaddrinfo(node, service, &hints, &found);
    if (rc != 0)
        return gai_strerror(rc);
    const char *why = "not an address of this computer, on which all ranks run";
    for (struct addrinfo *address = found; why && address; address = address->ai_next) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address->ai_addr;
        const in_addr_t number = address->ai_family == AF_INET ? ntohl(ipv4->sin_addr.s_addr) : 0;
        if ((number & RANKS_MASK) == RANKS_NETWORK) {
            *host = (struct host){.names_rank = true, .rank = number & ~RANKS_MASK};
            why = host->rank < (unsigned)spin_size() ? NULL : "the address of a rank that the job does not have";
        } else {
            /* The port has the same offset in all address families. */
            ((struct sockaddr_in *)address->ai_addr)->sin_port = 0;
            *host = (struct host){0};
            if (is_here(address))
                why = NULL;
        }
    }
    freeaddrinfo(found);
    return why;
}
