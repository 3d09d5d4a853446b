/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the tests of the libfabric provider: one rank's objects, exchange of names, calls, and waits for
 * completions.
 *
 * `operations --group NAME` runs one group. The source of a group has all its checks, so that their numbers are its
 * own. */
#ifndef OFI_TEST_H
#define OFI_TEST_H

#include "../../sdk/ofi/base/libfabric.h"
#include "../portals/harness.h"

#include <stdbool.h>

/* ---- libfabric.so.1, as far as the tests call it ---------------------------------------------------------------------- */

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
               struct fi_info **info);
void fi_freeinfo(struct fi_info *info);
struct fi_info *fi_dupinfo(const struct fi_info *info); /* NULL: an empty one */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* Calls a function of an object's table, such as ON(ep, tagged, send, buffer, ...) */
#define ON(object, table, call, ...) (object)->table->call((object), __VA_ARGS__)

/* ---- A rank's objects --------------------------------------------------------------------------------------------------- */

enum { RANKS = 8, NAME_SIZE = 64 };

/* Objects of a group; zeros are the usual choices. */
struct wish {
    uint32_t version;
    uint64_t caps;
    int mr_mode;
    enum fi_av_type av_type;
    enum fi_cq_format format;
    uint64_t tx_selective, rx_selective; /* FI_SELECTIVE_COMPLETION */
    uint64_t rx_op_flags;
};

struct net {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *tx, *rx;
    struct fid_ep *ep;
    fi_addr_t peers[RANKS];
};
extern struct net net;
extern int rank, ranks;

struct fi_info *get_info(const struct wish *wish);
/* Opens one endpoint, and inserts the names of all ranks' endpoints in their order. */
void open_net(const struct wish *wish);
void close_net(void);
struct fid_cq *open_cq(enum fi_cq_format format);
/* An endpoint of `net.domain` that is enabled. */
struct fid_ep *open_ep(struct fid_cq *tx, struct fid_cq *rx, const struct wish *wish);
size_t name_of(struct fid_ep *ep, void *name);
/* Every rank contributes a value, and gets those of all ranks. */
void exchange(const void *mine, size_t length, void *all);
void barrier(void);

/* ---- Completions ---------------------------------------------------------------------------------------------------------- */

/* Simulated milliseconds until a completion counts as missing */
enum { PATIENCE = 200 };

/* Waits for a completion; `source` may be NULL. Returns true if one arrives without an error. */
bool next_entry(struct fid_cq *cq, struct fi_cq_tagged_entry *entry, fi_addr_t *source);
/* Waits for a completion, which must be an error. */
bool next_error(struct fid_cq *cq, struct fi_cq_err_entry *error);
/* Returns true if the queue is empty now. */
bool is_empty(struct fid_cq *cq);
/* Lets the provider process arrivals. It takes no completions. */
void look(struct fid_cq *cq);
/* Result of a call that sends, repeated until there is room for its message. */
#define WHEN_THERE_IS_ROOM(call)                                                                                       \
    ({                                                                                                                 \
        ssize_t result_;                                                                                               \
        while ((result_ = (call)) == -EAGAIN)                                                                          \
            look(net.tx);                                                                                              \
        result_;                                                                                                       \
    })
/* Lets messages arrive, and the provider process them. */
void settle(void);

/* ---- Groups ---------------------------------------------------------------------------------------------------------------- */

/* Starts the source of a group: its checks are counted there. */
#define GROUP(name)                                                                                                    \
    static void name##_checks(void);                                                                                   \
    void name##_group(void) {                                                                                          \
        name##_checks();                                                                                               \
        barrier();                                                                                                     \
        leave();                                                                                                       \
    }                                                                                                                  \
    static void name##_checks(void)

#endif
