/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls. One function records all calls of a kind. */
#include "trace.h"

/* Counts for all ranks, of either type. Two NULL pointers mean a call without counts. */
struct counts {
    const int *small;
    const MPI_Count *large;
};

static int64_t count_of(struct counts counts, int index) {
    return counts.large ? (int64_t)counts.large[index] : counts.small[index];
}

/* Begins the record of a collective. The request of a persistent one keeps its record until a start. */
static struct spt_comm *begin(int kind, MPI_Comm comm, struct spt_how how) {
    struct spt_comm *known = spt_comm_of(comm);
    if (how.persistent) {
        spt_keep(kind, comm, how.request);
        return known;
    }
    spt_begin(how.request ? kind | SPT_NONBLOCKING : kind);
    spt_put(known->number);
    if (how.request) {
        int number = spt_request_new(*how.request);
        spt_request(number)->active = true;
        spt_put((uint64_t)number);
    }
    return known;
}

static void end(struct spt_how how) {
    if (how.persistent) {
        struct spt_request *entry = spt_request(spt_request_find(*how.request));
        entry->fields = spt_take(&entry->length);
    } else {
        spt_commit();
    }
}

static void put_root(const struct spt_comm *comm, int root) {
    spt_put(root == MPI_ROOT ? 0 : root == MPI_PROC_NULL ? (uint64_t)comm->size + 1 : (uint64_t)root + 1);
}

/* Puts the bytes for or from each peer. `types` has a datatype for each; without it `type` is that of all. */
static void put_sizes(int count, struct counts counts, MPI_Datatype type, const MPI_Datatype *types) {
    spt_put((uint64_t)count);
    for (int peer = 0; peer < count; peer++)
        spt_put(spt_bytes(count_of(counts, peer), types ? types[peer] : type));
}

static void note_plain(int kind, uint64_t bytes, MPI_Comm comm, struct spt_how how) {
    begin(kind, comm, how);
    spt_put(bytes);
    end(how);
}

static void note_rooted(int kind, int root, uint64_t bytes, MPI_Comm comm, struct spt_how how) {
    put_root(begin(kind, comm, how), root);
    spt_put(bytes);
    end(how);
}

void spt_note_barrier(MPI_Comm comm, struct spt_how how) {
    begin(SPT_BARRIER, comm, how);
    end(how);
}

static bool is_root(int root, MPI_Comm comm) {
    const struct spt_comm *known = spt_comm_of(comm);
    return known->inter ? root == MPI_ROOT : root == known->me;
}

static void note_one_to_all_v(int kind, int root, struct counts counts, MPI_Datatype root_type, int64_t count,
                              MPI_Datatype type, MPI_Comm comm, struct spt_how how) {
    bool here = is_root(root, comm);
    const struct spt_comm *known = begin(kind, comm, how);
    put_root(known, root);
    if (root == MPI_PROC_NULL)
        spt_put(0);
    else if (!here)
        spt_put(spt_bytes(count, type));
    else
        spt_put(known->inter ? 0 : spt_bytes(count_of(counts, known->me), root_type));
    put_sizes(here ? known->size : 0, counts, root_type, NULL);
    end(how);
}

static void note_allgatherv(struct counts counts, MPI_Datatype type, MPI_Comm comm, struct spt_how how) {
    const struct spt_comm *known = begin(SPT_ALLGATHERV, comm, how);
    put_sizes(known->size, counts, type, NULL);
    end(how);
}

static void note_reduce_scatter(struct counts counts, MPI_Datatype type, MPI_Comm comm, struct spt_how how) {
    int size;
    PMPI_Comm_size(comm, &size);
    begin(SPT_REDUCE_SCATTER, comm, how);
    put_sizes(size, counts, type, NULL);
    end(how);
}

static void note_alltoallv(const void *out, struct counts send_counts, MPI_Datatype send_type,
                           const MPI_Datatype *send_types, struct counts recv_counts, MPI_Datatype recv_type,
                           const MPI_Datatype *recv_types, MPI_Comm comm, struct spt_how how) {
    const struct spt_comm *known = begin(SPT_ALLTOALLV, comm, how);
    if (out == MPI_IN_PLACE)
        put_sizes(known->size, recv_counts, recv_type, recv_types);
    else
        put_sizes(known->size, send_counts, send_type, send_types);
    put_sizes(known->size, recv_counts, recv_type, recv_types);
    end(how);
}

/* Puts the bytes for or from each neighbour: `counts` times `types` or `type`, or `all` for each. */
static void put_neighbors(const struct spt_neighbors *neighbors, uint64_t all, struct counts counts, MPI_Datatype type,
                          const MPI_Datatype *types) {
    bool has_counts = counts.small || counts.large;
    uint64_t there = 0;
    for (int index = 0; index < neighbors->count; index++)
        there += neighbors->peers[index] >= 0;
    spt_put(there);
    for (int index = 0; index < neighbors->count; index++)
        if (neighbors->peers[index] >= 0) {
            spt_put((uint64_t)neighbors->peers[index] + 1);
            spt_put(has_counts ? spt_bytes(count_of(counts, index), types ? types[index] : type) : all);
        }
}

static void note_neighbor(uint64_t out, struct counts send_counts, MPI_Datatype send_type,
                          const MPI_Datatype *send_types, uint64_t in, struct counts recv_counts,
                          MPI_Datatype recv_type, const MPI_Datatype *recv_types, MPI_Comm comm, struct spt_how how) {
    struct spt_comm *known = spt_comm_of(comm);
    spt_find_neighbors(comm, known);
    begin(SPT_NEIGHBOR, comm, how);
    put_neighbors(&known->out, out, send_counts, send_type, send_types);
    put_neighbors(&known->in, in, recv_counts, recv_type, recv_types);
    end(how);
}

#define UNPACK(...) __VA_ARGS__

#if SPT_HAS_MPI_4
#define PERSISTENT(Name, Parameters, Arguments, note)                                                                  \
    SPT_API int Name(UNPACK Parameters, MPI_Info info, MPI_Request *request) {                                         \
        const struct spt_how how = {request, true};                                                                    \
        spt_enter();                                                                                                   \
        int result = P##Name(UNPACK Arguments, info, request);                                                         \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }
#else
#define PERSISTENT(Name, Parameters, Arguments, note)
#endif

/* Defines the blocking, the non-blocking and the persistent call of a collective. `note` records it, with its
 * variant in `how`. */
#define COLLECTIVE_CALLS(Blocking, Nonblocking, Persistent, Parameters, Arguments, note)                               \
    SPT_API int Blocking(UNPACK Parameters) {                                                                          \
        const struct spt_how how = SPT_BLOCKING;                                                                       \
        spt_enter();                                                                                                   \
        int result = P##Blocking(UNPACK Arguments);                                                                    \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }                                                                                                                  \
    SPT_API int Nonblocking(UNPACK Parameters, MPI_Request *request) {                                                 \
        const struct spt_how how = {request, false};                                                                   \
        spt_enter();                                                                                                   \
        int result = P##Nonblocking(UNPACK Arguments, request);                                                        \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }                                                                                                                  \
    PERSISTENT(Persistent, Parameters, Arguments, note)

COLLECTIVE_CALLS(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, (MPI_Comm comm), (comm), spt_note_barrier(comm, how))

/* ---- Collectives with counts ---- */

#define COUNT int
#define PLACE int
#define COUNTS(all) ((struct counts){.small = (all)})
#define COLLECTIVE(Blocking, Nonblocking, Parameters, Arguments, note)                                                 \
    COLLECTIVE_CALLS(MPI_##Blocking, MPI_##Nonblocking, MPI_##Blocking##_init, Parameters, Arguments, note)
#include "collective_calls.h"

#if SPT_HAS_LARGE_COUNTS
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define COUNTS(all) ((struct counts){.large = (all)})
#define COLLECTIVE(Blocking, Nonblocking, Parameters, Arguments, note)                                                 \
    COLLECTIVE_CALLS(MPI_##Blocking##_c, MPI_##Nonblocking##_c, MPI_##Blocking##_init_c, Parameters, Arguments, note)
#include "collective_calls.h"
#endif
