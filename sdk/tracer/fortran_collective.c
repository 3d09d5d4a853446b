/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls and the creation of communicators in Fortran (see fortran.h). */
#include "fortran.h"

#if SPT_HAS_FORTRAN
#include <stdlib.h>

#if SPT_HAS_MPI_4
#define PERSISTENT(lower, UPPER, Name, Parameters, Arguments)                                                          \
    MAKES(lower, UPPER, (UNPACK Parameters, F * info), Request, Name(UNPACK Arguments, I(info), &fresh))
#else
#define PERSISTENT(lower, UPPER, Name, Parameters, Arguments)
#endif

#define COLLECTIVE(lower, UPPER, Blocking, Nonblocking, Parameters, Arguments)                                         \
    CALL(lower, UPPER, Parameters, MPI_##Blocking(UNPACK Arguments))                                                   \
    MAKES(i##lower, I##UPPER, Parameters, Request, MPI_##Nonblocking(UNPACK Arguments, &fresh))                        \
    PERSISTENT(lower##_init, UPPER##_INIT, MPI_##Blocking##_init, Parameters, Arguments)

#define EVEN void *out, F *n, F *t, void *in, F *n2, F *t2
#define EVEN_C at(out), *n, T(t), at(in), *n2, T(t2)
#define REDUCTION_C at(out), at(in), *n, T(t), O(op)

COLLECTIVE(barrier, BARRIER, Barrier, Ibarrier, (F * c), (C(c)))
COLLECTIVE(bcast, BCAST, Bcast, Ibcast, (void *b, F *n, F *t, F *root, F *c), (at(b), *n, T(t), *root, C(c)))
COLLECTIVE(reduce, REDUCE, Reduce, Ireduce, (void *out, void *in, F *n, F *t, F *op, F *root, F *c),
           (REDUCTION_C, *root, C(c)))
COLLECTIVE(allreduce, ALLREDUCE, Allreduce, Iallreduce, (void *out, void *in, F *n, F *t, F *op, F *c),
           (REDUCTION_C, C(c)))
COLLECTIVE(scan, SCAN, Scan, Iscan, (void *out, void *in, F *n, F *t, F *op, F *c), (REDUCTION_C, C(c)))
COLLECTIVE(exscan, EXSCAN, Exscan, Iexscan, (void *out, void *in, F *n, F *t, F *op, F *c), (REDUCTION_C, C(c)))
COLLECTIVE(reduce_scatter_block, REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block,
           (void *out, void *in, F *n, F *t, F *op, F *c), (REDUCTION_C, C(c)))
COLLECTIVE(reduce_scatter, REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter,
           (void *out, void *in, F *counts, F *t, F *op, F *c), (at(out), at(in), counts, T(t), O(op), C(c)))
COLLECTIVE(allgather, ALLGATHER, Allgather, Iallgather, (EVEN, F *c), (EVEN_C, C(c)))
COLLECTIVE(alltoall, ALLTOALL, Alltoall, Ialltoall, (EVEN, F *c), (EVEN_C, C(c)))
COLLECTIVE(gather, GATHER, Gather, Igather, (EVEN, F *root, F *c), (EVEN_C, *root, C(c)))
COLLECTIVE(scatter, SCATTER, Scatter, Iscatter, (EVEN, F *root, F *c), (EVEN_C, *root, C(c)))

#define TO_V void *out, F *n, F *t, void *in, F *counts, F *places, F *t2
#define TO_V_C at(out), *n, T(t), at(in), counts, places, T(t2)

COLLECTIVE(allgatherv, ALLGATHERV, Allgatherv, Iallgatherv, (TO_V, F *c), (TO_V_C, C(c)))
COLLECTIVE(gatherv, GATHERV, Gatherv, Igatherv, (TO_V, F *root, F *c), (TO_V_C, *root, C(c)))
COLLECTIVE(scatterv, SCATTERV, Scatterv, Iscatterv,
           (void *out, F *counts, F *places, F *t, void *in, F *n, F *t2, F *root, F *c),
           (at(out), counts, places, T(t), at(in), *n, T(t2), *root, C(c)))

#define V void *out, F *counts, F *places, F *t, void *in, F *counts2, F *places2, F *t2, F *c
#define V_C at(out), counts, places, T(t), at(in), counts2, places2, T(t2), C(c)

COLLECTIVE(alltoallv, ALLTOALLV, Alltoallv, Ialltoallv, (V), (V_C))
COLLECTIVE(neighbor_allgather, NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather, (EVEN, F *c),
           (EVEN_C, C(c)))
COLLECTIVE(neighbor_alltoall, NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall, (EVEN, F *c), (EVEN_C, C(c)))
COLLECTIVE(neighbor_allgatherv, NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv, (TO_V, F *c),
           (TO_V_C, C(c)))
COLLECTIVE(neighbor_alltoallv, NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv, (V), (V_C))

/* ---- Collectives with datatypes of their own for each peer ---- */

/* Returns the datatypes to send, followed from index `*received` by those to receive. */
static MPI_Datatype *types_of(F *c, bool of_neighbors, bool in_place, const F *send, const F *recv, int *received) {
    int sent, count, is_inter;
    if (of_neighbors) {
        spt_count_neighbors(C(c), &count, &sent);
    } else {
        PMPI_Comm_test_inter(C(c), &is_inter);
        is_inter ? PMPI_Comm_remote_size(C(c), &count) : PMPI_Comm_size(C(c), &count);
        sent = in_place ? 0 : count;
    }
    MPI_Datatype *all = spt_allocate((size_t)(sent + count), sizeof *all);
    for (int peer = 0; peer < sent; peer++)
        all[peer] = T(&send[peer]);
    for (int peer = 0; peer < count; peer++)
        all[sent + peer] = T(&recv[peer]);
    *received = sent;
    return all;
}

/* A call with a request reads its datatypes until the request is complete. */
static void keep(MPI_Datatype *types, int result, MPI_Request request, F *made) {
    int number = result == MPI_SUCCESS ? spt_request_find(request) : -1;
    if (result == MPI_SUCCESS)
        *made = PMPI_Request_c2f(request);
    if (number >= 0)
        spt_request(number)->kept = types;
}

#define TYPED(Place) void *out, F *n, Place *places, F *t, void *in, F *n2, Place *places2, F *t2, F *c
#define TYPED_C at(out), n, places, types, at(in), n2, places2, types + received, C(c)
#define TYPES(of_neighbors)                                                                                            \
    int received;                                                                                                      \
    MPI_Datatype *types = types_of(c, of_neighbors, at(out) == MPI_IN_PLACE, t, t2, &received)

#define TYPED_LATER(lower, UPPER, of_neighbors, Parameters, call)                                                      \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * made, F * e), {                                                      \
        TYPES(of_neighbors);                                                                                           \
        MPI_Request request;                                                                                           \
        int result = call;                                                                                             \
        keep(types, result, request, made);                                                                            \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

#define TYPED_COLLECTIVE(lower, UPPER, Blocking, Nonblocking, of_neighbors, Place)                                     \
    FORTRAN(lower, UPPER, (TYPED(Place), F * e), {                                                                     \
        TYPES(of_neighbors);                                                                                           \
        int result = MPI_##Blocking(TYPED_C);                                                                          \
        free(types);                                                                                                   \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })                                                                                                                 \
    TYPED_LATER(i##lower, I##UPPER, of_neighbors, (TYPED(Place)), MPI_##Nonblocking(TYPED_C, &request))

TYPED_COLLECTIVE(alltoallw, ALLTOALLW, Alltoallw, Ialltoallw, false, F)
TYPED_COLLECTIVE(neighbor_alltoallw, NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw, true, MPI_Aint)
#if SPT_HAS_MPI_4
TYPED_LATER(alltoallw_init, ALLTOALLW_INIT, false, (TYPED(F), F *info), MPI_Alltoallw_init(TYPED_C, I(info), &request))
TYPED_LATER(neighbor_alltoallw_init, NEIGHBOR_ALLTOALLW_INIT, true, (TYPED(MPI_Aint), F *info),
            MPI_Neighbor_alltoallw_init(TYPED_C, I(info), &request))
#endif

/* ---- Communicators ---- */

/* Variables with addresses that stand for constants. MPICH uses the names of gfortran. */
#ifdef OPEN_MPI
#define UNWEIGHTED mpi_fortran_unweighted_
#define WEIGHTS_EMPTY mpi_fortran_weights_empty_
#else
#define UNWEIGHTED __mpi_f08_link_constants_MOD_mpi_unweighted
#define WEIGHTS_EMPTY __mpi_f08_link_constants_MOD_mpi_weights_empty
#endif
extern int UNWEIGHTED __attribute__((weak));
extern int WEIGHTS_EMPTY __attribute__((weak));

static int *weights(F *address) {
    if ((void *)address == &UNWEIGHTED)
        return MPI_UNWEIGHTED;
    return (void *)address == &WEIGHTS_EMPTY ? MPI_WEIGHTS_EMPTY : address;
}

enum { MOST_DIMENSIONS = 64 };

/* Some compilers represent true by -1. */
static int *logicals(int count, const F *values) {
    static int copy[MOST_DIMENSIONS];
    for (int index = 0; index < count && index < MOST_DIMENSIONS; index++)
        copy[index] = values[index] != 0;
    return copy;
}

static int dimensions(F *c) {
    int count;
    PMPI_Cartdim_get(C(c), &count);
    return count;
}

MAKES(comm_dup, COMM_DUP, (F * c), Comm, MPI_Comm_dup(C(c), &fresh))
MAKES(comm_dup_with_info, COMM_DUP_WITH_INFO, (F * c, F *info), Comm, MPI_Comm_dup_with_info(C(c), I(info), &fresh))
MAKES(comm_split, COMM_SPLIT, (F * c, F *color, F *rank), Comm, MPI_Comm_split(C(c), *color, *rank, &fresh))
MAKES(comm_split_type, COMM_SPLIT_TYPE, (F * c, F *type, F *rank, F *info), Comm,
      MPI_Comm_split_type(C(c), *type, *rank, I(info), &fresh))
MAKES(comm_create, COMM_CREATE, (F * c, F *group), Comm, MPI_Comm_create(C(c), G(group), &fresh))
MAKES(comm_create_group, COMM_CREATE_GROUP, (F * c, F *group, F *tag), Comm,
      MPI_Comm_create_group(C(c), G(group), *tag, &fresh))
MAKES(cart_create, CART_CREATE, (F * c, F *n, F *sides, F *periodic, F *reorder), Comm,
      MPI_Cart_create(C(c), *n, sides, logicals(*n, periodic), *reorder != 0, &fresh))
MAKES(cart_sub, CART_SUB, (F * c, F *remain), Comm, MPI_Cart_sub(C(c), logicals(dimensions(c), remain), &fresh))
MAKES(graph_create, GRAPH_CREATE, (F * c, F *n, F *index, F *edges, F *reorder), Comm,
      MPI_Graph_create(C(c), *n, index, edges, *reorder != 0, &fresh))
MAKES(dist_graph_create, DIST_GRAPH_CREATE,
      (F * c, F *n, F *sources, F *degrees, F *targets, F *w, F *info, F *reorder), Comm,
      MPI_Dist_graph_create(C(c), *n, sources, degrees, targets, weights(w), I(info), *reorder != 0, &fresh))
MAKES(dist_graph_create_adjacent, DIST_GRAPH_CREATE_ADJACENT,
      (F * c, F *in, F *sources, F *w, F *out, F *targets, F *w2, F *info, F *reorder), Comm,
      MPI_Dist_graph_create_adjacent(C(c), *in, sources, weights(w), *out, targets, weights(w2), I(info), *reorder != 0,
                                     &fresh))
MAKES(intercomm_create, INTERCOMM_CREATE, (F * c, F *leader, F *peers, F *remote, F *tag), Comm,
      MPI_Intercomm_create(C(c), *leader, C(peers), *remote, *tag, &fresh))
MAKES(intercomm_merge, INTERCOMM_MERGE, (F * c, F *high), Comm, MPI_Intercomm_merge(C(c), *high != 0, &fresh))

/* The C call may write the communicator to this place until its request is complete. */
#define MAKES_LATER(lower, UPPER, Parameters, call)                                                                    \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * made, F * r, F * e), {                                               \
        MPI_Request request;                                                                                           \
        MPI_Comm *fresh = spt_allocate(1, sizeof *fresh);                                                              \
        int result = call;                                                                                             \
        int number = result == MPI_SUCCESS ? spt_request_find(request) : -1;                                           \
        if (result == MPI_SUCCESS) {                                                                                   \
            *made = PMPI_Comm_c2f(*fresh);                                                                             \
            *r = PMPI_Request_c2f(request);                                                                            \
        }                                                                                                              \
        if (number >= 0)                                                                                               \
            spt_request(number)->kept = fresh;                                                                         \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

MAKES_LATER(comm_idup, COMM_IDUP, (F * c), MPI_Comm_idup(C(c), fresh, &request))
#if SPT_HAS_MPI_4
MAKES_LATER(comm_idup_with_info, COMM_IDUP_WITH_INFO, (F * c, F *info),
            MPI_Comm_idup_with_info(C(c), I(info), fresh, &request))

#define MAKES_FROM_GROUPS(lower, UPPER, Parameters, call)                                                              \
    FORTRAN(lower, UPPER, (UNPACK Parameters, char *tag, F *info, F *handler, F *made, F *e, size_t length), {         \
        MPI_Comm fresh;                                                                                                \
        char *text = spt_fortran_text(tag, length);                                                                    \
        int result = call;                                                                                             \
        free(text);                                                                                                    \
        if (result == MPI_SUCCESS)                                                                                     \
            *made = PMPI_Comm_c2f(fresh);                                                                              \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

MAKES_FROM_GROUPS(comm_create_from_group, COMM_CREATE_FROM_GROUP, (F * group),
                  MPI_Comm_create_from_group(G(group), text, I(info), PMPI_Errhandler_f2c(*handler), &fresh))
MAKES_FROM_GROUPS(intercomm_create_from_groups, INTERCOMM_CREATE_FROM_GROUPS,
                  (F * local, F *leader, F *remote, F *remote_leader),
                  MPI_Intercomm_create_from_groups(G(local), *leader, G(remote), *remote_leader, text, I(info),
                                                   PMPI_Errhandler_f2c(*handler), &fresh))
#endif

#endif
