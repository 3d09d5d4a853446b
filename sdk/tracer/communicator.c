/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that make communicators. Each synchronizes, so its record is a barrier. */
#include "trace.h"

/* Records the new communicator, unless it is MPI_COMM_NULL, and a barrier of `through`, whose processes all take
 * part. */
static void note_new(MPI_Comm through, MPI_Comm made) {
    if (made != MPI_COMM_NULL)
        spt_comm_of(made);
    if (through != MPI_COMM_NULL)
        spt_note_barrier(through, SPT_BLOCKING);
}

#define UNPACK(...) __VA_ARGS__

#define CREATES(Name, Parameters, Arguments, through)                                                                  \
    SPT_API int MPI_##Name(UNPACK Parameters, MPI_Comm *made) {                                                        \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(UNPACK Arguments, made);                                                              \
        if (spt_leave(result))                                                                                         \
            note_new(through, *made);                                                                                  \
        return result;                                                                                                 \
    }

CREATES(Comm_dup, (MPI_Comm comm), (comm), comm)
CREATES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info), (comm, info), comm)
CREATES(Comm_split, (MPI_Comm comm, int color, int rank), (comm, color, rank), comm)
CREATES(Comm_split_type, (MPI_Comm comm, int type, int rank, MPI_Info info), (comm, type, rank, info), comm)
CREATES(Comm_create, (MPI_Comm comm, MPI_Group group), (comm, group), comm)
CREATES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag), (comm, group, tag), *made)
CREATES(Cart_create, (MPI_Comm comm, int dimensions, const int sides[], const int periodic[], int reorder),
        (comm, dimensions, sides, periodic, reorder), comm)
CREATES(Cart_sub, (MPI_Comm comm, const int remain[]), (comm, remain), comm)
CREATES(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder),
        (comm, nodes, index, edges, reorder), comm)
CREATES(Dist_graph_create,
        (MPI_Comm comm, int count, const int sources[], const int degrees[], const int targets[], const int weights[],
         MPI_Info info, int reorder),
        (comm, count, sources, degrees, targets, weights, info, reorder), comm)
CREATES(Dist_graph_create_adjacent,
        (MPI_Comm comm, int in, const int sources[], const int in_weights[], int out, const int targets[],
         const int out_weights[], MPI_Info info, int reorder),
        (comm, in, sources, in_weights, out, targets, out_weights, info, reorder), comm)
CREATES(Intercomm_create, (MPI_Comm local, int leader, MPI_Comm peers, int remote_leader, int tag),
        (local, leader, peers, remote_leader, tag), *made)
CREATES(Intercomm_merge, (MPI_Comm comm, int high), (comm, high), *made)
#if SPT_HAS_MPI_4
CREATES(Comm_create_from_group, (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler),
        (group, tag, info, handler), *made)
CREATES(Intercomm_create_from_groups,
        (MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char *tag, MPI_Info info,
         MPI_Errhandler handler),
        (local, leader, remote, remote_leader, tag, info, handler), *made)
#endif

/* Records the start of a barrier. The communicator exists after its end, but all ranks number it now. */
static void note_idup(MPI_Comm comm, MPI_Comm *made, const MPI_Request *request) {
    struct spt_comm *copy = spt_comm_like(comm);
    spt_note_barrier(comm, (struct spt_how){request, false});
    struct spt_request *entry = spt_request(spt_request_find(*request));
    entry->comm = copy;
    entry->made = made;
}

#define CREATES_LATER(Name, Parameters, Arguments)                                                                     \
    SPT_API int MPI_##Name(UNPACK Parameters, MPI_Comm *made, MPI_Request *request) {                                  \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(UNPACK Arguments, made, request);                                                     \
        if (spt_leave(result))                                                                                         \
            note_idup(comm, made, request);                                                                            \
        return result;                                                                                                 \
    }

CREATES_LATER(Comm_idup, (MPI_Comm comm), (comm))
#if SPT_HAS_MPI_4
CREATES_LATER(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info), (comm, info))
#endif
