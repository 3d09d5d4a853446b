/* Calls that make communicators. All of them synchronise: each is recorded as a barrier. */
#include <stddef.h>

#include "trace.h"

/* `through` is the communicator whose processes all take part; the new one is recorded if it is not MPI_COMM_NULL. */
static void note_new(MPI_Comm through, MPI_Comm made) {
    if (made != MPI_COMM_NULL)
        spt_comm_of(made);
    if (through != MPI_COMM_NULL)
        spt_note_barrier(through, NULL);
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
