/* Fortran calls, which reach C calls in MPICH, but in Open MPI do not: there they are turned into C calls here. */
#include <stdlib.h>

#include "trace.h"

#ifdef OPEN_MPI

typedef MPI_Fint F;

/* What Fortran compilers make of a name; the last is that of `use mpi_f08`. */
#define ALIAS(name, other) SPT_API extern __typeof__(name) other __attribute__((alias(#name)));
#define FORTRAN(lower, UPPER, Parameters, ...)                                                                         \
    SPT_API void mpi_##lower Parameters;                                                                               \
    void mpi_##lower Parameters __VA_ARGS__ ALIAS(mpi_##lower, mpi_##lower##_) ALIAS(mpi_##lower, mpi_##lower##__)     \
        ALIAS(mpi_##lower, mpi_##lower##_f08_) ALIAS(mpi_##lower, MPI_##UPPER)

#define UNPACK(...) __VA_ARGS__

/* A routine that is one C call; `e` is its last parameter, which `use mpi_f08` may leave out. */
#define CALL(lower, UPPER, Parameters, call)                                                                           \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * e), {                                                                \
        int result = call;                                                                                             \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* The same for one whose last parameter before `e` is a handle that the call makes. */
#define MAKES(lower, UPPER, Parameters, Type, call)                                                                    \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * made, F * e), {                                                      \
        MPI_##Type fresh;                                                                                              \
        int result = call;                                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            *made = PMPI_##Type##_c2f(fresh);                                                                          \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Variables whose addresses stand for constants. */
extern int mpi_fortran_bottom_ __attribute__((weak));
extern int mpi_fortran_in_place_ __attribute__((weak));
extern int mpi_fortran_unweighted_ __attribute__((weak));
extern int mpi_fortran_weights_empty_ __attribute__((weak));

static void *at(void *address) {
    if (address == &mpi_fortran_bottom_)
        return MPI_BOTTOM;
    return address == &mpi_fortran_in_place_ ? MPI_IN_PLACE : address;
}

static int *weights(F *address) {
    if ((void *)address == &mpi_fortran_unweighted_)
        return MPI_UNWEIGHTED;
    return (void *)address == &mpi_fortran_weights_empty_ ? MPI_WEIGHTS_EMPTY : address;
}

#define C(comm) PMPI_Comm_f2c(*(comm))
#define T(type) PMPI_Type_f2c(*(type))
#define O(op) PMPI_Op_f2c(*(op))
#define G(group) PMPI_Group_f2c(*(group))
#define I(info) PMPI_Info_f2c(*(info))

static bool ignored(const F *status) {
    const void *address = status;
    return address == MPI_F_STATUS_IGNORE || address == MPI_F_STATUSES_IGNORE;
}

static void give(const MPI_Status *status, F *to) {
    if (!ignored(to))
        PMPI_Status_c2f(status, to);
}

/* ---- environment ---- */

FORTRAN(init, INIT, (F * e), {
    int result = MPI_Init(NULL, NULL);
    if (e)
        *e = result;
})
CALL(init_thread, INIT_THREAD, (F * required, F *provided), MPI_Init_thread(NULL, NULL, *required, provided))
CALL(query_thread, QUERY_THREAD, (F * provided), MPI_Query_thread(provided))
FORTRAN(finalize, FINALIZE, (F * e), {
    int result = MPI_Finalize();
    if (e)
        *e = result;
})
CALL(abort, ABORT, (F * c, F *status), MPI_Abort(C(c), *status))

/* ---- point-to-point ---- */

#define MESSAGE void *b, F *n, F *t, F *peer, F *tag, F *c
#define MESSAGE_C at(b), *n, T(t), *peer, *tag, C(c)

CALL(send, SEND, (MESSAGE), MPI_Send(MESSAGE_C))
CALL(bsend, BSEND, (MESSAGE), MPI_Bsend(MESSAGE_C))
CALL(ssend, SSEND, (MESSAGE), MPI_Ssend(MESSAGE_C))
CALL(rsend, RSEND, (MESSAGE), MPI_Rsend(MESSAGE_C))

#define MESSAGE_REQUEST(lower, UPPER, Name) MAKES(lower, UPPER, (MESSAGE), Request, MPI_##Name(MESSAGE_C, &fresh))
MESSAGE_REQUEST(isend, ISEND, Isend)
MESSAGE_REQUEST(ibsend, IBSEND, Ibsend)
MESSAGE_REQUEST(issend, ISSEND, Issend)
MESSAGE_REQUEST(irsend, IRSEND, Irsend)
MESSAGE_REQUEST(irecv, IRECV, Irecv)
MESSAGE_REQUEST(send_init, SEND_INIT, Send_init)
MESSAGE_REQUEST(bsend_init, BSEND_INIT, Bsend_init)
MESSAGE_REQUEST(ssend_init, SSEND_INIT, Ssend_init)
MESSAGE_REQUEST(rsend_init, RSEND_INIT, Rsend_init)
MESSAGE_REQUEST(recv_init, RECV_INIT, Recv_init)

/* A routine that fills in a status. */
#define WITH_STATUS(lower, UPPER, Parameters, call)                                                                    \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * s, F * e), {                                                         \
        MPI_Status status;                                                                                             \
        int result = call;                                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            give(&status, s);                                                                                          \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

WITH_STATUS(recv, RECV, (MESSAGE), MPI_Recv(MESSAGE_C, &status))
WITH_STATUS(sendrecv, SENDRECV, (void *out, F *n, F *t, F *to, F *tag, void *in, F *n2, F *t2, F *from, F *tag2, F *c),
            MPI_Sendrecv(at(out), *n, T(t), *to, *tag, at(in), *n2, T(t2), *from, *tag2, C(c), &status))
WITH_STATUS(sendrecv_replace, SENDRECV_REPLACE, (void *b, F *n, F *t, F *to, F *tag, F *from, F *tag2, F *c),
            MPI_Sendrecv_replace(at(b), *n, T(t), *to, *tag, *from, *tag2, C(c), &status))
WITH_STATUS(probe, PROBE, (F * from, F *tag, F *c), MPI_Probe(*from, *tag, C(c), &status))

FORTRAN(iprobe, IPROBE, (F * from, F *tag, F *c, F *flag, F *s, F *e), {
    MPI_Status status;
    int result = MPI_Iprobe(*from, *tag, C(c), flag, &status);
    if (result == MPI_SUCCESS && *flag)
        give(&status, s);
    if (e)
        *e = result;
})

FORTRAN(mprobe, MPROBE, (F * from, F *tag, F *c, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message;
    int result = MPI_Mprobe(*from, *tag, C(c), &message, &status);
    if (result == MPI_SUCCESS) {
        *m = PMPI_Message_c2f(message);
        give(&status, s);
    }
    if (e)
        *e = result;
})

FORTRAN(improbe, IMPROBE, (F * from, F *tag, F *c, F *flag, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message;
    int result = MPI_Improbe(*from, *tag, C(c), flag, &message, &status);
    if (result == MPI_SUCCESS && *flag) {
        *m = PMPI_Message_c2f(message);
        give(&status, s);
    }
    if (e)
        *e = result;
})

FORTRAN(mrecv, MRECV, (void *b, F *n, F *t, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message = PMPI_Message_f2c(*m);
    int result = MPI_Mrecv(at(b), *n, T(t), &message, &status);
    *m = PMPI_Message_c2f(message);
    if (result == MPI_SUCCESS)
        give(&status, s);
    if (e)
        *e = result;
})

FORTRAN(imrecv, IMRECV, (void *b, F *n, F *t, F *m, F *r, F *e), {
    MPI_Request request;
    MPI_Message message = PMPI_Message_f2c(*m);
    int result = MPI_Imrecv(at(b), *n, T(t), &message, &request);
    *m = PMPI_Message_c2f(message);
    if (result == MPI_SUCCESS)
        *r = PMPI_Request_c2f(request);
    if (e)
        *e = result;
})

/* ---- requests ---- */

/* An array of requests in C, and of statuses for them; released by `finish`. */
struct several {
    int count;
    MPI_Request *requests;
    MPI_Status *statuses;
};

static struct several begin(int count, const F *requests) {
    struct several all = {count, NULL, NULL};
    all.requests = malloc(((size_t)count + 1) * sizeof *all.requests);
    all.statuses = malloc(((size_t)count + 1) * sizeof *all.statuses);
    if (!all.requests || !all.statuses)
        abort();
    for (int index = 0; index < count; index++)
        all.requests[index] = PMPI_Request_f2c(requests[index]);
    return all;
}

/* Gives the requests back, and the first `filled` statuses. */
static void finish(struct several all, F *requests, int filled, F *statuses) {
    for (int index = 0; index < all.count; index++)
        requests[index] = PMPI_Request_c2f(all.requests[index]);
    for (int index = 0; index < filled && !ignored(statuses); index++)
        PMPI_Status_c2f(&all.statuses[index], statuses + (size_t)index * (sizeof(MPI_Status) / sizeof(F)));
    free(all.requests);
    free(all.statuses);
}

#define COMPLETES(lower, UPPER, Parameters, count, call, requests, filled, statuses)                                   \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * e), {                                                                \
        struct several all = begin(count, requests);                                                                   \
        int result = call;                                                                                             \
        finish(all, requests, result == MPI_SUCCESS ? (filled) : 0, statuses);                                         \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Fortran counts from 1. */
static void count_from_one(int count, F *indices) {
    for (int index = 0; index < count; index++)
        indices[index] += indices[index] != MPI_UNDEFINED;
}

COMPLETES(wait, WAIT, (F * r, F *s), 1, MPI_Wait(all.requests, all.statuses), r, 1, s)
COMPLETES(test, TEST, (F * r, F *flag, F *s), 1, MPI_Test(all.requests, flag, all.statuses), r, *flag, s)
COMPLETES(waitall, WAITALL, (F * n, F *r, F *s), *n, MPI_Waitall(*n, all.requests, all.statuses), r, *n, s)
COMPLETES(testall, TESTALL, (F * n, F *r, F *flag, F *s), *n, MPI_Testall(*n, all.requests, flag, all.statuses), r,
          *flag ? *n : 0, s)

static int wait_any(int n, struct several all, F *index) {
    int result = MPI_Waitany(n, all.requests, index, all.statuses);
    count_from_one(1, index);
    return result;
}

static int test_any(int n, struct several all, F *index, F *flag) {
    int result = MPI_Testany(n, all.requests, index, flag, all.statuses);
    if (*flag)
        count_from_one(1, index);
    return result;
}

typedef int some_call(int, MPI_Request *, int *, int *, MPI_Status *);

static int some(some_call *call, int n, struct several all, F *completed, F *indices) {
    int result = call(n, all.requests, completed, indices, all.statuses);
    count_from_one(*completed == MPI_UNDEFINED ? 0 : *completed, indices);
    return result;
}

#define COMPLETED (*completed == MPI_UNDEFINED ? 0 : *completed)

COMPLETES(waitany, WAITANY, (F * n, F *r, F *index, F *s), *n, wait_any(*n, all, index), r, 1, s)
COMPLETES(testany, TESTANY, (F * n, F *r, F *index, F *flag, F *s), *n, test_any(*n, all, index, flag), r, *flag, s)
COMPLETES(waitsome, WAITSOME, (F * n, F *r, F *completed, F *indices, F *s), *n,
          some(MPI_Waitsome, *n, all, completed, indices), r, COMPLETED, s)
COMPLETES(testsome, TESTSOME, (F * n, F *r, F *completed, F *indices, F *s), *n,
          some(MPI_Testsome, *n, all, completed, indices), r, COMPLETED, s)
COMPLETES(start, START, (F * r), 1, MPI_Start(all.requests), r, 0, NULL)
COMPLETES(startall, STARTALL, (F * n, F *r), *n, MPI_Startall(*n, all.requests), r, 0, NULL)
COMPLETES(cancel, CANCEL, (F * r), 1, MPI_Cancel(all.requests), r, 0, NULL)
COMPLETES(request_free, REQUEST_FREE, (F * r), 1, MPI_Request_free(all.requests), r, 0, NULL)

/* ---- collectives ---- */

#define COLLECTIVE(lower, UPPER, Blocking, Nonblocking, Parameters, Arguments)                                         \
    CALL(lower, UPPER, Parameters, MPI_##Blocking(UNPACK Arguments))                                                   \
    MAKES(i##lower, I##UPPER, Parameters, Request, MPI_##Nonblocking(UNPACK Arguments, &fresh))

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

/* Datatypes of all ranks; kept, as a non-blocking call reads them until it is complete. */
static MPI_Datatype *types_of(F *c, const F *types) {
    int count, is_inter;
    PMPI_Comm_test_inter(C(c), &is_inter);
    is_inter ? PMPI_Comm_remote_size(C(c), &count) : PMPI_Comm_size(C(c), &count);
    MPI_Datatype *all = malloc((size_t)count * sizeof *all);
    if (!all)
        abort();
    for (int rank = 0; rank < count; rank++)
        all[rank] = PMPI_Type_f2c(types[rank]);
    return all;
}

FORTRAN(alltoallw, ALLTOALLW,
        (void *out, F *counts, F *places, F *t, void *in, F *counts2, F *places2, F *t2, F *c, F *e), {
            bool in_place = at(out) == MPI_IN_PLACE;
            MPI_Datatype *send = in_place ? NULL : types_of(c, t), *recv = types_of(c, t2);
            int result = MPI_Alltoallw(at(out), counts, places, send, at(in), counts2, places2, recv, C(c));
            free(send);
            free(recv);
            if (e)
                *e = result;
        })

/* ---- communicators ---- */

enum { MOST_DIMENSIONS = 64 };

/* Truth is -1 for some compilers. */
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

#endif
