/* Names of endpoints, and the hosts that stand for ranks (fi_getinfo(3), fi_av_insertsvc(3)).
 *
 * The name of an endpoint has the portal table indices at which it takes messages. They follow from its number, so the first endpoint of
 * another process, in that process's first domain, can be named by its rank alone. All ranks run on this computer, which has a network
 * of loopback addresses: rank r has the address 127.1.0.0 plus r, to which sockets connect as well. */
#define _GNU_SOURCE /* struct addrinfo */

#include "../core/domain.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENDPOINT_PTS = 4 }; /* portal table indices of an endpoint */
enum { FIRST_REMOTE_PT = 0, FURTHER_REMOTE_PTS = 1 + ENDPOINTS * ENDPOINT_PTS }; /* of domains */
static const in_addr_t RANKS_NETWORK = 0x7f010000, RANKS_MASK = 0xffff0000;

/* ---- Portal table indices ----------------------------------------------------------------------------------------------------- */

ptl_pt_index_t endpoint_pt(unsigned number, enum pt_use use) {
    return (ptl_pt_index_t)(1 + number * ENDPOINT_PTS + use);
}

int pt_alloc(struct domain *domain, ptl_pt_index_t wanted, ptl_pt_index_t *pt) {
    int rc = PtlPTAlloc(domain->ni, 0, domain->eq, wanted, pt);
    return rc == PTL_PT_IN_USE ? PtlPTAlloc(domain->ni, 0, domain->eq, PTL_PT_ANY, pt) : rc;
}

int remote_pt_alloc(struct domain *domain) {
    int rc = PtlPTAlloc(domain->ni, 0, domain->eq, FIRST_REMOTE_PT, &domain->remote_pt);
    for (ptl_pt_index_t pt = FURTHER_REMOTE_PTS; rc == PTL_PT_IN_USE; pt++)
        rc = PtlPTAlloc(domain->ni, 0, domain->eq, pt, &domain->remote_pt);
    return rc == PTL_ARG_INVALID ? PtlPTAlloc(domain->ni, 0, domain->eq, PTL_PT_ANY, &domain->remote_pt) : rc;
}

struct name first_name(ptl_process_t process) {
    return (struct name){.nid = process.phys.nid,
                         .pid = process.phys.pid,
                         .message_pt = (uint16_t)endpoint_pt(0, PT_MESSAGE),
                         .tagged_pt = (uint16_t)endpoint_pt(0, PT_TAGGED),
                         .remote_pt = FIRST_REMOTE_PT,
                         .control_pt = (uint16_t)endpoint_pt(0, PT_CONTROL)};
}

/* ---- Hosts -------------------------------------------------------------------------------------------------------------------- */

/* Whether an address is one of this computer: a socket can have it. */
static bool is_here(const struct addrinfo *address) {
    const int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool bound = fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

const char *host_find(const char *node, const char *service, uint64_t flags, struct host *host) {
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
            ((struct sockaddr_in *)address->ai_addr)->sin_port = 0; /* at the same place in all families */
            *host = (struct host){0};
            if (is_here(address))
                why = NULL;
        }
    }
    freeaddrinfo(found);
    return why;
}
