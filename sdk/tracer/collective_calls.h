/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls with counts. collective.c includes this file for each type of counts: COUNT and PLACE are the
 * types of counts and displacements, COUNTS() passes counts on, COLLECTIVE() defines the calls of a name. */

COLLECTIVE(Bcast, Ibcast, (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm),
           note_rooted(SPT_BCAST, root, root == MPI_PROC_NULL ? 0 : spt_bytes(count, type), comm, how))

COLLECTIVE(Reduce, Ireduce,
           (const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, count, type, op, root, comm),
           note_rooted(SPT_REDUCE, root, root == MPI_PROC_NULL ? 0 : spt_bytes(count, type), comm, how))

#define REDUCTION(Blocking, Nonblocking, Kind)                                                                         \
    COLLECTIVE(Blocking, Nonblocking,                                                                                  \
               (const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                  \
               (out, in, count, type, op, comm), note_plain(Kind, spt_bytes(count, type), comm, how))

REDUCTION(Allreduce, Iallreduce, SPT_ALLREDUCE)
REDUCTION(Scan, Iscan, SPT_SCAN)
REDUCTION(Exscan, Iexscan, SPT_EXSCAN)
REDUCTION(Reduce_scatter_block, Ireduce_scatter_block, SPT_REDUCE_SCATTER_BLOCK)

COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *out, void *in, const COUNT counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, counts, type, op, comm), note_reduce_scatter(COUNTS(counts), type, comm, how))

#define EVEN_PARAMETERS                                                                                                \
    const void *out, COUNT send_count, MPI_Datatype send_type, void *in, COUNT recv_count, MPI_Datatype recv_type
#define EVEN_ARGUMENTS out, send_count, send_type, in, recv_count, recv_type
#define SENT spt_bytes(send_count, send_type)
#define RECEIVED spt_bytes(recv_count, recv_type)

COLLECTIVE(Allgather, Iallgather, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_plain(SPT_ALLGATHER, RECEIVED, comm, how))
COLLECTIVE(Alltoall, Ialltoall, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_plain(SPT_ALLTOALL, RECEIVED, comm, how))
/* The root counts its own side, because the other may be MPI_IN_PLACE. A rank with MPI_PROC_NULL counts nothing. */
#define OF_ROOT(at_root, elsewhere) (is_root(root, comm) ? (at_root) : root == MPI_PROC_NULL ? 0 : (elsewhere))

COLLECTIVE(Gather, Igather, (EVEN_PARAMETERS, int root, MPI_Comm comm), (EVEN_ARGUMENTS, root, comm),
           note_rooted(SPT_GATHER, root, OF_ROOT(RECEIVED, SENT), comm, how))
COLLECTIVE(Scatter, Iscatter, (EVEN_PARAMETERS, int root, MPI_Comm comm), (EVEN_ARGUMENTS, root, comm),
           note_rooted(SPT_SCATTER, root, OF_ROOT(SENT, RECEIVED), comm, how))

COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *out, COUNT send_count, MPI_Datatype send_type, void *in, const COUNT recv_counts[],
            const PLACE places[], MPI_Datatype recv_type, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, comm),
           note_allgatherv(COUNTS(recv_counts), recv_type, comm, how))

COLLECTIVE(Gatherv, Igatherv,
           (const void *out, COUNT send_count, MPI_Datatype send_type, void *in, const COUNT recv_counts[],
            const PLACE places[], MPI_Datatype recv_type, int root, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, root, comm),
           note_one_to_all_v(SPT_GATHERV, root, COUNTS(recv_counts), recv_type, send_count, send_type, comm, how))

COLLECTIVE(Scatterv, Iscatterv,
           (const void *out, const COUNT send_counts[], const PLACE places[], MPI_Datatype send_type, void *in,
            COUNT recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm),
           (out, send_counts, places, send_type, in, recv_count, recv_type, root, comm),
           note_one_to_all_v(SPT_SCATTERV, root, COUNTS(send_counts), send_type, recv_count, recv_type, comm, how))

#define V_PARAMETERS                                                                                                   \
    const void *out, const COUNT send_counts[], const PLACE out_places[], MPI_Datatype send_type, void *in,            \
        const COUNT recv_counts[], const PLACE in_places[], MPI_Datatype recv_type, MPI_Comm comm
#define V_ARGUMENTS out, send_counts, out_places, send_type, in, recv_counts, in_places, recv_type, comm

COLLECTIVE(Alltoallv, Ialltoallv, (V_PARAMETERS), (V_ARGUMENTS),
           note_alltoallv(out, COUNTS(send_counts), send_type, NULL, COUNTS(recv_counts), recv_type, NULL, comm, how))

COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *out, const COUNT send_counts[], const PLACE out_places[], const MPI_Datatype send_types[],
            void *in, const COUNT recv_counts[], const PLACE in_places[], const MPI_Datatype recv_types[],
            MPI_Comm comm),
           (out, send_counts, out_places, send_types, in, recv_counts, in_places, recv_types, comm),
           note_alltoallv(out, COUNTS(send_counts), MPI_BYTE, send_types, COUNTS(recv_counts), MPI_BYTE, recv_types,
                          comm, how))

#define NO_COUNTS ((struct counts){NULL, NULL}), MPI_BYTE, NULL

COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_neighbor(SENT, NO_COUNTS, RECEIVED, NO_COUNTS, comm, how))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, (EVEN_PARAMETERS, MPI_Comm comm), (EVEN_ARGUMENTS, comm),
           note_neighbor(SENT, NO_COUNTS, RECEIVED, NO_COUNTS, comm, how))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void *out, COUNT send_count, MPI_Datatype send_type, void *in, const COUNT recv_counts[],
            const PLACE places[], MPI_Datatype recv_type, MPI_Comm comm),
           (out, send_count, send_type, in, recv_counts, places, recv_type, comm),
           note_neighbor(SENT, NO_COUNTS, 0, COUNTS(recv_counts), recv_type, NULL, comm, how))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, (V_PARAMETERS), (V_ARGUMENTS),
           note_neighbor(0, COUNTS(send_counts), send_type, NULL, 0, COUNTS(recv_counts), recv_type, NULL, comm, how))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void *out, const COUNT send_counts[], const MPI_Aint out_places[], const MPI_Datatype send_types[],
            void *in, const COUNT recv_counts[], const MPI_Aint in_places[], const MPI_Datatype recv_types[],
            MPI_Comm comm),
           (out, send_counts, out_places, send_types, in, recv_counts, in_places, recv_types, comm),
           note_neighbor(0, COUNTS(send_counts), MPI_BYTE, send_types, 0, COUNTS(recv_counts), MPI_BYTE, recv_types,
                         comm, how))

#undef REDUCTION
#undef EVEN_PARAMETERS
#undef EVEN_ARGUMENTS
#undef SENT
#undef RECEIVED
#undef OF_ROOT
#undef V_PARAMETERS
#undef V_ARGUMENTS
#undef NO_COUNTS
#undef COUNT
#undef PLACE
#undef COUNTS
#undef COLLECTIVE
