/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of the tracer's files. Each file uses only those above it here: record.c, handles.c, fields.c,
 * persistent.c, collective.c; then the files that define calls of MPI in C, and those in Fortran. */
#ifndef SPINTRACE_TRACE_H
#define SPINTRACE_TRACE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

/* Attribute of exported symbols. All others stay hidden (-fvisibility=hidden). */
#define SPT_API __attribute__((visibility("default")))

/* Features of the MPI. Open MPI 5 has persistent collectives, partitions and more of MPI 4, though it reports MPI
 * 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define SPT_HAS_MPI_4 1
#else
#define SPT_HAS_MPI_4 0
#endif
/* Calls with names in `_c`, which have counts of type MPI_Count. */
#define SPT_HAS_LARGE_COUNTS (MPI_VERSION >= 4)

/* ---- record.c: clocks, records and the file ---- */

/* Opens the file of this rank, after MPI_Init, and begins it. Returns false if the program cannot be traced. */
bool spt_open(void);
/* Starts the clocks of the program's calls. */
void spt_run(void);
/* Ends the file. */
void spt_end(void);
/* Closes the file of a program that aborts, as if it were killed here. MPI_Abort may return before the launcher ends
 * the program; calls after it do not belong to the trace. */
void spt_cut_off(void);

/* Every wrapper calls `spt_enter` before and `spt_leave` after the call. `spt_leave` returns true if the wrapper
 * must record the call: tracing runs, the program has made the call, not another call, and it has succeeded. The
 * timeline of a simulated run shows the wrapper's name. */
#define spt_enter() spt_enter_call(__func__)
void spt_enter_call(const char *name);
bool spt_leave(int result);

/* Begins a record, which its fields follow (format.h). Records of kinds from SPT_SEND get the times of the call that
 * has ended. */
void spt_begin(int kind);
/* Appends a number, a text with its length, or bytes to the record. */
void spt_put(uint64_t number);
void spt_put_text(const char *text);
void spt_put_bytes(const void *bytes, size_t count);
/* Ends a record. */
void spt_commit(void);
/* Removes the `*count` bytes since the last commit and returns a copy. The caller frees it. */
void *spt_take(size_t *count);
/* Allocates zeroed memory. Ends the program without memory. */
void *spt_allocate(size_t count, size_t size);

/* ---- handles.c: communicators and requests ---- */

struct spt_neighbors {
    int count;
    int *peers; /* ranks in MPI_COMM_WORLD, -1 for none */
};

struct spt_comm {
    uint64_t number;
    int references;
    bool inter;
    int me;     /* rank in it (in the local group) */
    int size;   /* ranks, or those of the remote group of an intercommunicator */
    int *world; /* their ranks in MPI_COMM_WORLD, -1 for one outside of it */
    bool has_neighbors;
    struct spt_neighbors in, out;
};

/* Returns the description of a communicator, never NULL. Records a new communicator first. */
struct spt_comm *spt_comm_of(MPI_Comm comm);
/* Records a new object with the processes of `comm`, a copy of it or a window, and returns its description. */
struct spt_comm *spt_comm_like(MPI_Comm comm);
/* Attaches the description `known` to `comm`, which owns one reference. */
void spt_comm_is(MPI_Comm comm, struct spt_comm *known);
/* Drops one reference; the last one frees the description. */
void spt_comm_release(struct spt_comm *known);
/* Puts the processes of a group: runs of ranks in MPI_COMM_WORLD. */
void spt_put_group(MPI_Group group);
/* Counts the neighbours of this rank in a topology: sources in `*in`, targets in `*out`. */
void spt_count_neighbors(MPI_Comm comm, int *in, int *out);
/* Stores the ranks of these neighbours in `known`. */
void spt_find_neighbors(MPI_Comm comm, struct spt_comm *known);
/* Records MPI_COMM_WORLD and MPI_COMM_SELF. */
void spt_handles_start(void);

/* Returns the rank in MPI_COMM_WORLD of a rank in the communicator, or -1 for MPI_PROC_NULL and processes outside of
 * MPI_COMM_WORLD. */
int spt_world(const struct spt_comm *comm, int rank);

struct spt_request {
    uint64_t key;
    int next;
    bool active;     /* a message or collective is in progress */
    bool persistent; /* outlives its completion; each start uses the fields below */
    bool wild;       /* a receive from any source or with any tag */
    bool cancelled;
    bool claimed; /* by the present look-up of several requests, which may share a handle */
    int kind;
    struct spt_comm *comm;
    int peer, tag;
    uint64_t bytes;
    int parts, ready; /* parts of a partitioned send; 0 parts: an ordinary send */
    void *fields;     /* fields of a persistent collective's record after the request */
    size_t length;    /* bytes of these fields */
    void *kept;       /* memory that the call reads until the request is complete */
    MPI_Comm *made;   /* place for the communicator that MPI_Comm_idup creates, a copy of `comm` */
};

/* Returns the number of a new request. Its entry is zero except for the key. */
int spt_request_new(MPI_Request request);
/* Returns the number of a request, or -1. */
int spt_request_find(MPI_Request request);
/* Claims an active request that is not claimed. Returns its number, or -1. */
int spt_request_claim(MPI_Request request);
/* Variants of the first two functions for a matched message. */
int spt_message_new(MPI_Message message);
int spt_message_find(MPI_Message message);
/* Returns the entry of a request. It is valid until the next new request. */
struct spt_request *spt_request(int number);
/* Deletes a request and frees its memory. */
void spt_request_delete(int number);

/* Variant of a call. */
struct spt_how {
    const MPI_Request *request; /* NULL for a blocking call */
    bool persistent;
};
#define SPT_BLOCKING ((struct spt_how){NULL, false})

/* ---- fields.c: fields of records about messages ---- */

/* Puts the fields peer and tag. */
void spt_put_envelope(int peer, int tag);
/* Puts the field `actual` of a receive from `comm`. */
void spt_put_actual(const struct spt_comm *comm, const MPI_Status *status);
/* Returns true for a receive from any source or with any tag. */
bool spt_is_wild(int from, int tag);
/* Returns a rank in MPI_COMM_WORLD, or -1 for MPI_ANY_SOURCE. */
int spt_sender(const struct spt_comm *comm, int from);
/* Returns the bytes of `count` elements. */
uint64_t spt_bytes(int64_t count, MPI_Datatype type);

/* ---- persistent.c: persistent requests ---- */

/* Returns a new persistent request, which starts messages or collectives of this kind. */
struct spt_request *spt_keep(int kind, MPI_Comm comm, const MPI_Request *request);
void spt_keep_message(int kind, uint64_t bytes, int peer, int tag, MPI_Comm comm, const MPI_Request *request,
                      int parts);

/* ---- collective.c: collective calls ---- */

/* Records a barrier. */
void spt_note_barrier(MPI_Comm comm, struct spt_how how);

#endif
