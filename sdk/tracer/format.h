/* SPDX-License-Identifier: Apache-2.0 */
/* The trace file of one rank, `rank-N.spintrace`. docs/goal.md ("MPI traces") has the same in prose; the importer of
 * `spinkit goal import` reads it.
 *
 *   file    = magic blocks
 *   magic   = "SPINTRC1"
 *   block   = length (u32, little endian: bytes of the payload), payload
 *   payload = whole records, one after the other
 *
 * A number is a LEB128 varint, at most 64 bits. The first record is START, the last END: a file without END was cut off
 * (the program ended without MPI_Finalize) and holds all records up to its last whole block.
 *
 *   record  = kind (one byte) [gap wall] fields
 *
 * The kinds from SPT_SEND on have `gap`, the CPU time in ns that this thread used between the end of its last call and
 * the start of this one, and `wall`, the time in us that the call took. Calls that moved no data and completed nothing
 * (a failed MPI_Test, anything with MPI_PROC_NULL) leave no record: their times are added to those of the next one.
 *
 *   peer    = 0 any source | 1 + rank in MPI_COMM_WORLD
 *   tag     = 0 any tag | 1 + tag
 *   actual  = peer tag of the message received, only after a `peer` or `tag` that is 0; a `peer` of 0 in it means that
 *             the message is not known
 *   comm    = number given by a COMM record of this file; 0 is MPI_COMM_WORLD, 1 MPI_COMM_SELF
 *   request = number of an open request; free again for others when completed
 *   root    = 1 + rank in the communicator; of an intercommunicator: 0 this rank | 1 + rank in the remote group | 1 + size
 *             of the remote group: none, this rank takes no part
 *   sizes   = count, then one number of bytes for each
 */
#ifndef SPINTRACE_FORMAT_H
#define SPINTRACE_FORMAT_H

#define SPT_MAGIC "SPINTRC1"

enum {
    SPT_START = 1, /* rank, ranks, length of a name, the name of the MPI library */
    SPT_END = 2,   /* gap, ns since MPI_Init, ns of CPU time since MPI_Init */
    SPT_COMM = 3, /* comm, 1 if it is an intercommunicator else 0, group [remote group]; group = number of runs, and for
                      each first rank, number of ranks, stride (zigzag) */
    SPT_OTHER = 4, /* length of a name, the name: a call that is not recorded otherwise, each name once */

    SPT_SEND = 16,      /* comm peer tag bytes */
    SPT_ISEND = 17,     /* comm peer tag bytes request */
    SPT_RECV = 18,      /* comm peer tag bytes [actual] */
    SPT_IRECV = 19,     /* comm peer tag bytes request */
    SPT_SENDRECV = 20,  /* comm, peer tag bytes of the send, peer tag bytes [actual] of the receive */
    SPT_WAIT = 21,      /* count, and for each: request * 4 + 1 if it was cancelled + 2 if `actual` follows, [actual] */
    SPT_FREE = 22,      /* request: no call waits for it */
    SPT_ISENDRECV = 23, /* comm, peer tag bytes of the send, peer tag bytes of the receive, request */

    /* Collective calls: comm [request, with SPT_NONBLOCKING], then: */
    SPT_BARRIER = 32,              /* nothing */
    SPT_BCAST = 33,                /* root bytes */
    SPT_REDUCE = 34,               /* root bytes */
    SPT_ALLREDUCE = 35,            /* bytes */
    SPT_SCAN = 36,                 /* bytes */
    SPT_EXSCAN = 37,               /* bytes */
    SPT_ALLGATHER = 38,            /* bytes of one rank */
    SPT_ALLTOALL = 39,             /* bytes for one rank */
    SPT_GATHER = 40,               /* root, bytes of one rank */
    SPT_SCATTER = 41,              /* root, bytes of one rank */
    SPT_REDUCE_SCATTER_BLOCK = 42, /* bytes of one rank */
    SPT_ALLGATHERV = 43,           /* sizes */
    SPT_GATHERV = 44,              /* root, bytes of this rank, sizes (none where this is not the root) */
    SPT_SCATTERV = 45,             /* root, bytes of this rank, sizes (none where this is not the root) */
    SPT_ALLTOALLV = 46,            /* sizes sent, sizes received */
    SPT_REDUCE_SCATTER = 47,       /* sizes */
    SPT_NEIGHBOR = 48,             /* for sends and then for receives: count, and for each peer bytes */

    /* One-sided calls. A window has a number as a communicator does, and a COMM record before its WIN_CREATE.
     * group as in COMM; peer here is 1 + rank in MPI_COMM_WORLD, or 0 for all ranks of the window. */
    SPT_RMA = 50, /* comm [request, with SPT_NONBLOCKING] peer, bytes to it, 0 if nothing comes back | 1 + bytes back */
    SPT_WIN_CREATE = 51,      /* comm */
    SPT_WIN_FREE = 52,        /* comm */
    SPT_WIN_FENCE = 53,       /* comm */
    SPT_WIN_POST = 54,        /* comm group */
    SPT_WIN_START = 55,       /* comm group */
    SPT_WIN_COMPLETE = 56,    /* comm */
    SPT_WIN_WAIT = 57,        /* comm */
    SPT_WIN_LOCK = 58,        /* comm peer */
    SPT_WIN_UNLOCK = 59,      /* comm peer */
    SPT_WIN_FLUSH = 60,       /* comm peer */
    SPT_WIN_FLUSH_LOCAL = 61, /* comm peer */

    SPT_NONBLOCKING = 64 /* added to the kind of a collective, or SPT_RMA */
};

#endif
