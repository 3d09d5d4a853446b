/* Collective calls. A kind is recorded by one function, whichever of its calls made it. */
#include <stddef.h>

#include "trace.h"

/* What a collective's record starts with. */
static struct spt_comm *begin(int kind, MPI_Comm comm, const MPI_Request *request) {
    struct spt_comm *known = spt_comm_of(comm);
    spt_begin(request ? kind | SPT_NONBLOCKING : kind);
    spt_put(known->number);
    if (request) {
        int number = spt_request_new(*request);
        spt_request(number)->active = true;
        spt_put((uint64_t)number);
    }
    return known;
}

static void put_root(const struct spt_comm *comm, int root) {
    spt_put(root == MPI_ROOT ? 0 : root == MPI_PROC_NULL ? (uint64_t)comm->size + 1 : (uint64_t)root + 1);
}

/* Sizes for or from each peer; the datatypes are one for all, or one for each. */
static void put_sizes(int count, const int *counts, MPI_Datatype type, const MPI_Datatype *types) {
    spt_put((uint64_t)count);
    for (int peer = 0; peer < count; peer++)
        spt_put(spt_bytes(counts[peer], types ? types[peer] : type));
}

static void note_plain(int kind, uint64_t bytes, MPI_Comm comm, const MPI_Request *request) {
    begin(kind, comm, request);
    spt_put(bytes);
    spt_commit();
}

static void note_rooted(int kind, int root, uint64_t bytes, MPI_Comm comm, const MPI_Request *request) {
    put_root(begin(kind, comm, request), root);
    spt_put(bytes);
    spt_commit();
}

void spt_note_barrier(MPI_Comm comm, const MPI_Request *request) {
    begin(SPT_BARRIER, comm, request);
    spt_commit();
}

static bool is_root(int root, MPI_Comm comm) {
    const struct spt_comm *known = spt_comm_of(comm);
    return known->inter ? root == MPI_ROOT : root == known->me;
}

static void note_one_to_all(int kind, int root, uint64_t at_root, uint64_t elsewhere, MPI_Comm comm,
                            const MPI_Request *request) {
    note_rooted(kind, root, is_root(root, comm) ? at_root : elsewhere, comm, request);
}

static void note_one_to_all_v(int kind, int root, const int *counts, MPI_Datatype root_type, int count,
                              MPI_Datatype type, MPI_Comm comm, const MPI_Request *request) {
    bool here = is_root(root, comm);
    const struct spt_comm *known = begin(kind, comm, request);
    put_root(known, root);
    if (root == MPI_PROC_NULL)
        spt_put(0);
    else if (!here)
        spt_put(spt_bytes(count, type));
    else
        spt_put(known->inter ? 0 : spt_bytes(counts[known->me], root_type));
    put_sizes(here ? known->size : 0, counts, root_type, NULL);
    spt_commit();
}

static void note_allgatherv(const int *counts, MPI_Datatype type, MPI_Comm comm, const MPI_Request *request) {
    const struct spt_comm *known = begin(SPT_ALLGATHERV, comm, request);
    put_sizes(known->size, counts, type, NULL);
    spt_commit();
}

static void note_reduce_scatter(const int *counts, MPI_Datatype type, MPI_Comm comm, const MPI_Request *request) {
    int size;
    PMPI_Comm_size(comm, &size);
    begin(SPT_REDUCE_SCATTER, comm, request);
    put_sizes(size, counts, type, NULL);
    spt_commit();
}

static void note_alltoallv(const void *out, const int *send_counts, MPI_Datatype send_type,
                           const MPI_Datatype *send_types, const int *recv_counts, MPI_Datatype recv_type,
                           const MPI_Datatype *recv_types, MPI_Comm comm, const MPI_Request *request) {
    const struct spt_comm *known = begin(SPT_ALLTOALLV, comm, request);
    if (out == MPI_IN_PLACE)
        put_sizes(known->size, recv_counts, recv_type, recv_types);
    else
        put_sizes(known->size, send_counts, send_type, send_types);
    put_sizes(known->size, recv_counts, recv_type, recv_types);
    spt_commit();
}

/* Bytes for or from each neighbour: `counts` times `type`, or `types`, or `all` to each. */
static void put_neighbors(const struct spt_neighbors *neighbors, uint64_t all, const int *counts, MPI_Datatype type,
                          const MPI_Datatype *types) {
    uint64_t there = 0;
    for (int index = 0; index < neighbors->count; index++)
        there += neighbors->peers[index] >= 0;
    spt_put(there);
    for (int index = 0; index < neighbors->count; index++)
        if (neighbors->peers[index] >= 0) {
            spt_put((uint64_t)neighbors->peers[index] + 1);
            spt_put(counts ? spt_bytes(counts[index], types ? types[index] : type) : all);
        }
}

static void note_neighbor(uint64_t out, const int *send_counts, MPI_Datatype send_type, const MPI_Datatype *send_types,
                          uint64_t in, const int *recv_counts, MPI_Datatype recv_type, const MPI_Datatype *recv_types,
                          MPI_Comm comm, const MPI_Request *request) {
    struct spt_comm *known = spt_comm_of(comm);
    spt_find_neighbors(comm, known);
    begin(SPT_NEIGHBOR, comm, request);
    put_neighbors(&known->out, out, send_counts, send_type, send_types);
    put_neighbors(&known->in, in, recv_counts, recv_type, recv_types);
    spt_commit();
}

#define UNPACK(...) __VA_ARGS__

/* The blocking and the non-blocking call of a collective; `note` uses `request`, which is NULL in the first. */
#define COLLECTIVE(Blocking, Nonblocking, Parameters, Arguments, note)                                                 \
    SPT_API int MPI_##Blocking(UNPACK Parameters) {                                                                    \
        const MPI_Request *request = NULL;                                                                             \
        spt_enter();                                                                                                   \
        int result = PMPI_##Blocking(UNPACK Arguments);                                                                \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }                                                                                                                  \
    SPT_API int MPI_##Nonblocking(UNPACK Parameters, MPI_Request *request) {                                           \
        spt_enter();                                                                                                   \
        int result = PMPI_##Nonblocking(UNPACK Arguments, request);                                                    \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), spt_note_barrier(comm, request))

COLLECTIVE(Bcast, Ibcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm),
           note_rooted(SPT_BCAST, root, root == MPI_PROC_NULL ? 0 : spt_bytes(count, type), comm, request))

COLLECTIVE(Reduce, Ireduce,
           (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, count, type, op, root, comm),
           note_rooted(SPT_REDUCE, root, root == MPI_PROC_NULL ? 0 : spt_bytes(count, type), comm, request))

#define REDUCTION(Blocking, Nonblocking, Kind)                                                                         \
    COLLECTIVE(Blocking, Nonblocking,                                                                                  \
               (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                    \
               (out, in, count, type, op, comm), note_plain(Kind, spt_bytes(count, type), comm, request))

REDUCTION(Allreduce, Iallreduce, SPT_ALLREDUCE)
REDUCTION(Scan, Iscan, SPT_SCAN)
REDUCTION(Exscan, Iexscan, SPT_EXSCAN)
REDUCTION(Reduce_scatter_block, Ireduce_scatter_block, SPT_REDUCE_SCATTER_BLOCK)

COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, counts, type, op, comm), note_reduce_scatter(counts, type, comm, request))

#define EVEN_PARAMETERS                                                                                                \
    const void *out, int send_count, MPI_Datatype send_type, void *in, int recv_count, MPI_Datatype recv_type
#define EVEN_ARGUMENTS out, send_count, send_type, in, recv_count, recv_type
#define SENT spt_bytes(send_count, send_type)
#define RECEIVED spt_bytes(recv_count, recv_type)

COLLECTIVE(Allgather, Iallgather, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_plain(SPT_ALLGATHER, RECEIVED, comm, request))
COLLECTIVE(Alltoall, Ialltoall, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_plain(SPT_ALLTOALL, RECEIVED, comm, request))
/* At the root its own side counts, as the other may be MPI_IN_PLACE; beside it, nothing does. */
#define OF_ROOT(at_root, elsewhere) (is_root(root, comm) ? (at_root) : root == MPI_PROC_NULL ? 0 : (elsewhere))

COLLECTIVE(Gather, Igather, (EVEN_PARAMETERS, int root, MPI_Comm comm), (EVEN_ARGUMENTS, root, comm),
           note_rooted(SPT_GATHER, root, OF_ROOT(RECEIVED, SENT), comm, request))
COLLECTIVE(Scatter, Iscatter, (EVEN_PARAMETERS, int root, MPI_Comm comm), (EVEN_ARGUMENTS, root, comm),
           note_rooted(SPT_SCATTER, root, OF_ROOT(SENT, RECEIVED), comm, request))

COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *out, int send_count, MPI_Datatype send_type, void *in, const int recv_counts[],
            const int places[], MPI_Datatype recv_type, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, comm),
           note_allgatherv(recv_counts, recv_type, comm, request))

COLLECTIVE(Gatherv, Igatherv,
           (const void *out, int send_count, MPI_Datatype send_type, void *in, const int recv_counts[],
            const int places[], MPI_Datatype recv_type, int root, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, root, comm),
           note_one_to_all_v(SPT_GATHERV, root, recv_counts, recv_type, send_count, send_type, comm, request))

COLLECTIVE(Scatterv, Iscatterv,
           (const void *out, const int send_counts[], const int places[], MPI_Datatype send_type, void *in,
            int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm),
           (out, send_counts, places, send_type, in, recv_count, recv_type, root, comm),
           note_one_to_all_v(SPT_SCATTERV, root, send_counts, send_type, recv_count, recv_type, comm, request))

#define V_PARAMETERS                                                                                                   \
    const void *out, const int send_counts[], const int out_places[], MPI_Datatype send_type, void *in,                \
        const int recv_counts[], const int in_places[], MPI_Datatype recv_type, MPI_Comm comm
#define V_ARGUMENTS out, send_counts, out_places, send_type, in, recv_counts, in_places, recv_type, comm

COLLECTIVE(Alltoallv, Ialltoallv, (V_PARAMETERS), (V_ARGUMENTS),
           note_alltoallv(out, send_counts, send_type, NULL, recv_counts, recv_type, NULL, comm, request))

COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *out, const int send_counts[], const int out_places[], const MPI_Datatype send_types[], void *in,
            const int recv_counts[], const int in_places[], const MPI_Datatype recv_types[], MPI_Comm comm),
           (out, send_counts, out_places, send_types, in, recv_counts, in_places, recv_types, comm),
           note_alltoallv(out, send_counts, MPI_BYTE, send_types, recv_counts, MPI_BYTE, recv_types, comm, request))

#define NO_COUNTS NULL, MPI_BYTE, NULL

COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_neighbor(SENT, NO_COUNTS, RECEIVED, NO_COUNTS, comm, request))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_neighbor(SENT, NO_COUNTS, RECEIVED, NO_COUNTS, comm, request))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void *out, int send_count, MPI_Datatype send_type, void *in, const int recv_counts[],
            const int places[], MPI_Datatype recv_type, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, comm),
           note_neighbor(SENT, NO_COUNTS, 0, recv_counts, recv_type, NULL, comm, request))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, (V_PARAMETERS), (V_ARGUMENTS),
           note_neighbor(0, send_counts, send_type, NULL, 0, recv_counts, recv_type, NULL, comm, request))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void *out, const int send_counts[], const MPI_Aint out_places[], const MPI_Datatype send_types[],
            void *in, const int recv_counts[], const MPI_Aint in_places[], const MPI_Datatype recv_types[],
            MPI_Comm comm),
           (out, send_counts, out_places, send_types, in, recv_counts, in_places, recv_types, comm),
           note_neighbor(0, send_counts, MPI_BYTE, send_types, 0, recv_counts, MPI_BYTE, recv_types, comm, request))
