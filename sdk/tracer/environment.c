/* Start and end, and the calls that are not recorded but named: a schedule made from the trace lacks them. */
#include <stdio.h>

#include "trace.h"

SPT_API int MPI_Init(int *argc, char ***argv) {
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        spt_start();
    return result;
}

/* Records of several threads at a time would have no order that a schedule could keep. */
SPT_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    bool lowered = required == MPI_THREAD_MULTIPLE;
    int result = PMPI_Init_thread(argc, argv, lowered ? MPI_THREAD_SERIALIZED : required, provided);
    if (result != MPI_SUCCESS)
        return result;
    if (*provided == MPI_THREAD_MULTIPLE)
        *provided = MPI_THREAD_SERIALIZED;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (lowered && rank == 0)
        fprintf(stderr, "spintrace: MPI_THREAD_MULTIPLE cannot be traced; the program gets MPI_THREAD_SERIALIZED\n");
    spt_start();
    return result;
}

SPT_API int MPI_Query_thread(int *provided) {
    int result = PMPI_Query_thread(provided);
    if (*provided == MPI_THREAD_MULTIPLE)
        *provided = MPI_THREAD_SERIALIZED;
    return result;
}

SPT_API int MPI_Finalize(void) {
    spt_end();
    return PMPI_Finalize();
}

SPT_API int MPI_Abort(MPI_Comm comm, int status) {
    spt_flush();
    return PMPI_Abort(comm, status);
}

static void note_other(bool *known, const char *name) {
    if (*known)
        return;
    *known = true;
    spt_begin(SPT_OTHER);
    spt_put_text(name);
    spt_commit();
}

#define UNPACK(...) __VA_ARGS__

#define OTHER(Name, Parameters, Arguments)                                                                             \
    SPT_API int MPI_##Name(UNPACK Parameters) {                                                                        \
        static bool known;                                                                                             \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(UNPACK Arguments);                                                                    \
        if (spt_leave(result))                                                                                         \
            note_other(&known, "MPI_" #Name);                                                                          \
        return result;                                                                                                 \
    }

OTHER(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request))
OTHER(Comm_spawn,
      (const char *command, char *arguments[], int count, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made,
       int errors[]),
      (command, arguments, count, info, root, comm, made, errors))
OTHER(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
OTHER(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))

#define ONE_SIDED(Name, Buffer)                                                                                        \
    OTHER(Name,                                                                                                        \
          (Buffer origin, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,                  \
           MPI_Datatype target_type, MPI_Win window),                                                                  \
          (origin, count, type, target, place, target_count, target_type, window))
ONE_SIDED(Put, const void *)
ONE_SIDED(Get, void *)
OTHER(Accumulate,
      (const void *origin, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
       MPI_Datatype target_type, MPI_Op op, MPI_Win window),
      (origin, count, type, target, place, target_count, target_type, op, window))
OTHER(Get_accumulate,
      (const void *origin, int count, MPI_Datatype type, void *into, int result_count, MPI_Datatype result_type,
       int target, MPI_Aint place, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window),
      (origin, count, type, into, result_count, result_type, target, place, target_count, target_type, op, window))
OTHER(Fetch_and_op,
      (const void *origin, void *into, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op, MPI_Win window),
      (origin, into, type, target, place, op, window))
OTHER(Compare_and_swap,
      (const void *origin, const void *compared, void *into, MPI_Datatype type, int target, MPI_Aint place,
       MPI_Win window),
      (origin, compared, into, type, target, place, window))
OTHER(Win_fence, (int mode, MPI_Win window), (mode, window))
OTHER(Win_start, (MPI_Group group, int mode, MPI_Win window), (group, mode, window))
OTHER(Win_complete, (MPI_Win window), (window))
OTHER(Win_post, (MPI_Group group, int mode, MPI_Win window), (group, mode, window))
OTHER(Win_wait, (MPI_Win window), (window))
OTHER(Win_lock, (int type, int rank, int mode, MPI_Win window), (type, rank, mode, window))
OTHER(Win_unlock, (int rank, MPI_Win window), (rank, window))
OTHER(Win_lock_all, (int mode, MPI_Win window), (mode, window))
OTHER(Win_unlock_all, (MPI_Win window), (window))

#define FILE_DATA(Name, Buffer)                                                                                        \
    OTHER(Name, (MPI_File file, Buffer buffer, int count, MPI_Datatype type, MPI_Status *status),                      \
          (file, buffer, count, type, status))
FILE_DATA(File_read_all, void *)
FILE_DATA(File_write_all, const void *)
#define FILE_DATA_AT(Name, Buffer)                                                                                     \
    OTHER(Name, (MPI_File file, MPI_Offset offset, Buffer buffer, int count, MPI_Datatype type, MPI_Status *status),   \
          (file, offset, buffer, count, type, status))
FILE_DATA_AT(File_read_at_all, void *)
FILE_DATA_AT(File_write_at_all, const void *)
