/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end, and calls that a trace only names: a schedule made from it does not contain them. */
#include <stdio.h>

#include "trace.h"

static void start(void) {
    if (spt_open()) {
        spt_handles_start();
        spt_run();
    }
}

SPT_API int MPI_Init(int *argc, char ***argv) {
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        start();
    return result;
}

/* A schedule needs an order of the records, which concurrent threads do not have. */
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
    start();
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
    spt_cut_off();
    return PMPI_Abort(comm, status);
}

#if SPT_HAS_MPI_4
SPT_API int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
    static bool told;
    int result = PMPI_Session_init(info, handler, session), initialized;
    PMPI_Initialized(&initialized);
    if (!initialized && !told)
        fprintf(stderr, "spintrace: sessions without MPI_Init are not traced: their ranks have no MPI_COMM_WORLD\n");
    told = true;
    return result;
}
#endif

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

OTHER(Comm_spawn,
      (const char *command, char *arguments[], int count, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made,
       int errors[]),
      (command, arguments, count, info, root, comm, made, errors))
OTHER(Comm_spawn_multiple,
      (int count, char *commands[], char **arguments[], const int most[], const MPI_Info infos[], int root,
       MPI_Comm comm, MPI_Comm *made, int errors[]),
      (count, commands, arguments, most, infos, root, comm, made, errors))
OTHER(Comm_join, (int socket, MPI_Comm *made), (socket, made))
OTHER(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
OTHER(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))

/* ---- Files: collective access ---- */

#define COUNT int
#define MPI(name) name
#include "file_calls.h"

#if SPT_HAS_LARGE_COUNTS
#define COUNT MPI_Count
#define MPI(name) name##_c
#include "file_calls.h"
#endif

#define FILE_END(Name, Buffer) OTHER(Name, (MPI_File file, Buffer buffer, MPI_Status * status), (file, buffer, status))
FILE_END(File_read_all_end, void *)
FILE_END(File_read_at_all_end, void *)
FILE_END(File_read_ordered_end, void *)
FILE_END(File_write_all_end, const void *)
FILE_END(File_write_at_all_end, const void *)
FILE_END(File_write_ordered_end, const void *)

OTHER(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
      (comm, name, mode, info, file))
OTHER(File_close, (MPI_File * file), (file))
OTHER(File_set_view,
      (MPI_File file, MPI_Offset place, MPI_Datatype unit, MPI_Datatype type, const char *form, MPI_Info info),
      (file, place, unit, type, form, info))
OTHER(File_set_size, (MPI_File file, MPI_Offset size), (file, size))
OTHER(File_preallocate, (MPI_File file, MPI_Offset size), (file, size))
OTHER(File_sync, (MPI_File file), (file))
OTHER(File_set_atomicity, (MPI_File file, int atomic), (file, atomic))
OTHER(File_seek_shared, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence))
