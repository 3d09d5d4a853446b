/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided calls. Windows and communicators share one numbering. docs/goal.md describes the messages of a schedule
 * for them. */
#include <stdlib.h>

#include "trace.h"

/* Attribute of a window that holds its description. */
static int keyval = MPI_KEYVAL_INVALID;

static void note_opened(MPI_Comm comm, MPI_Win window) {
    struct spt_comm *known = spt_comm_like(comm);
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
    PMPI_Win_set_attr(window, keyval, known);
    spt_begin(SPT_WIN_CREATE);
    spt_put(known->number);
    spt_commit();
}

/* Returns NULL for a window that was created before tracing started. */
static struct spt_comm *window_of(MPI_Win window) {
    struct spt_comm *known = NULL;
    int found = 0;
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Win_get_attr(window, keyval, &known, &found);
    return found ? known : NULL;
}

static void note(int kind, MPI_Win window) {
    const struct spt_comm *known = window_of(window);
    if (!known)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_commit();
}

static void note_group(int kind, MPI_Group group, MPI_Win window) {
    const struct spt_comm *known = window_of(window);
    if (!known)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put_group(group);
    spt_commit();
}

enum { ALL = -1 };

static void note_peer(int kind, int rank, MPI_Win window) {
    const struct spt_comm *known = window_of(window);
    if (!known || (rank != ALL && spt_world(known, rank) < 0))
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put(rank == ALL ? 0 : (uint64_t)spt_world(known, rank) + 1);
    spt_commit();
}

/* Field "bytes back" of an access. */
#define NOTHING_BACK 0
#define BACK(bytes) (1 + (bytes))

static void note_access(int target, uint64_t bytes, uint64_t back, MPI_Win window, const MPI_Request *request) {
    const struct spt_comm *known = window_of(window);
    if (!known || spt_world(known, target) < 0)
        return;
    spt_begin(request ? SPT_RMA | SPT_NONBLOCKING : SPT_RMA);
    spt_put(known->number);
    if (request) {
        int number = spt_request_new(*request);
        spt_request(number)->active = true;
        spt_put((uint64_t)number);
    }
    spt_put((uint64_t)spt_world(known, target) + 1);
    spt_put(bytes);
    spt_put(back);
    spt_commit();
}

/* Returns the bytes that an accumulate operation sends. */
static uint64_t sent(int64_t count, MPI_Datatype type, MPI_Op op) {
    return op == MPI_NO_OP ? 0 : spt_bytes(count, type);
}

#define UNPACK(...) __VA_ARGS__

/* Defines a call that `note` records if it succeeds. */
#define CALL(Name, Parameters, Arguments, note)                                                                        \
    SPT_API int Name(UNPACK Parameters) {                                                                              \
        spt_enter();                                                                                                   \
        int result = P##Name(UNPACK Arguments);                                                                        \
        if (spt_leave(result))                                                                                         \
            note;                                                                                                      \
        return result;                                                                                                 \
    }

/* ---- Windows ---- */

CALL(MPI_Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *window), (info, comm, window),
     note_opened(comm, *window))

SPT_API int MPI_Win_free(MPI_Win *window) {
    struct spt_comm *known = window_of(*window);
    spt_enter();
    int result = PMPI_Win_free(window);
    if (spt_leave(result) && known) {
        spt_begin(SPT_WIN_FREE);
        spt_put(known->number);
        spt_commit();
        spt_comm_release(known);
    }
    return result;
}

/* ---- Epochs ---- */

CALL(MPI_Win_fence, (int mode, MPI_Win window), (mode, window), note(SPT_WIN_FENCE, window))
CALL(MPI_Win_post, (MPI_Group group, int mode, MPI_Win window), (group, mode, window),
     note_group(SPT_WIN_POST, group, window))
CALL(MPI_Win_start, (MPI_Group group, int mode, MPI_Win window), (group, mode, window),
     note_group(SPT_WIN_START, group, window))
CALL(MPI_Win_complete, (MPI_Win window), (window), note(SPT_WIN_COMPLETE, window))
CALL(MPI_Win_wait, (MPI_Win window), (window), note(SPT_WIN_WAIT, window))

SPT_API int MPI_Win_test(MPI_Win window, int *flag) {
    spt_enter();
    int result = PMPI_Win_test(window, flag);
    if (spt_leave(result) && *flag)
        note(SPT_WIN_WAIT, window);
    return result;
}

CALL(MPI_Win_lock, (int type, int rank, int mode, MPI_Win window), (type, rank, mode, window),
     note_peer(SPT_WIN_LOCK, rank, window))
CALL(MPI_Win_lock_all, (int mode, MPI_Win window), (mode, window), note_peer(SPT_WIN_LOCK, ALL, window))
CALL(MPI_Win_unlock, (int rank, MPI_Win window), (rank, window), note_peer(SPT_WIN_UNLOCK, rank, window))
CALL(MPI_Win_unlock_all, (MPI_Win window), (window), note_peer(SPT_WIN_UNLOCK, ALL, window))
CALL(MPI_Win_flush, (int rank, MPI_Win window), (rank, window), note_peer(SPT_WIN_FLUSH, rank, window))
CALL(MPI_Win_flush_all, (MPI_Win window), (window), note_peer(SPT_WIN_FLUSH, ALL, window))
CALL(MPI_Win_flush_local, (int rank, MPI_Win window), (rank, window), note_peer(SPT_WIN_FLUSH_LOCAL, rank, window))
CALL(MPI_Win_flush_local_all, (MPI_Win window), (window), note_peer(SPT_WIN_FLUSH_LOCAL, ALL, window))

/* ---- Accesses ---- */

CALL(MPI_Fetch_and_op,
     (const void *origin, void *result_at, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op, MPI_Win window),
     (origin, result_at, type, target, place, op, window),
     note_access(target, sent(1, type, op), BACK(spt_bytes(1, type)), window, NULL))
/* The new value and the comparand travel to the target. */
CALL(MPI_Compare_and_swap,
     (const void *origin, const void *compared, void *result_at, MPI_Datatype type, int target, MPI_Aint place,
      MPI_Win window),
     (origin, compared, result_at, type, target, place, window),
     note_access(target, spt_bytes(2, type), BACK(spt_bytes(1, type)), window, NULL))

#define COUNT int
#define UNIT int
#define MPI(name) MPI_##name
#include "window_calls.h"

#if SPT_HAS_LARGE_COUNTS
#define COUNT MPI_Count
#define UNIT MPI_Aint
#define MPI(name) MPI_##name##_c
#include "window_calls.h"
#endif
