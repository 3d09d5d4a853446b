/* SPDX-License-Identifier: Apache-2.0 */
/* Collective access to files. environment.c includes this file for each type of counts: COUNT is the type, MPI(name)
 * the function. */

#define PASTED_OTHER(...) OTHER(__VA_ARGS__)

#define FILE_DATA(Name, Buffer)                                                                                        \
    PASTED_OTHER(MPI(Name), (MPI_File file, Buffer buffer, COUNT count, MPI_Datatype type, MPI_Status * status),       \
                 (file, buffer, count, type, status))
FILE_DATA(File_read_all, void *)
FILE_DATA(File_read_ordered, void *)
FILE_DATA(File_write_all, const void *)
FILE_DATA(File_write_ordered, const void *)

#define FILE_DATA_AT(Name, Buffer)                                                                                     \
    PASTED_OTHER(                                                                                                      \
        MPI(Name),                                                                                                     \
        (MPI_File file, MPI_Offset offset, Buffer buffer, COUNT count, MPI_Datatype type, MPI_Status * status),        \
        (file, offset, buffer, count, type, status))
FILE_DATA_AT(File_read_at_all, void *)
FILE_DATA_AT(File_write_at_all, const void *)

#define FILE_LATER(Name, Buffer)                                                                                       \
    PASTED_OTHER(MPI(Name), (MPI_File file, Buffer buffer, COUNT count, MPI_Datatype type, MPI_Request * request),     \
                 (file, buffer, count, type, request))
FILE_LATER(File_iread_all, void *)
FILE_LATER(File_iwrite_all, const void *)

#define FILE_LATER_AT(Name, Buffer)                                                                                    \
    PASTED_OTHER(                                                                                                      \
        MPI(Name),                                                                                                     \
        (MPI_File file, MPI_Offset offset, Buffer buffer, COUNT count, MPI_Datatype type, MPI_Request * request),      \
        (file, offset, buffer, count, type, request))
FILE_LATER_AT(File_iread_at_all, void *)
FILE_LATER_AT(File_iwrite_at_all, const void *)

#define FILE_BEGIN(Name, Buffer)                                                                                       \
    PASTED_OTHER(MPI(Name), (MPI_File file, Buffer buffer, COUNT count, MPI_Datatype type), (file, buffer, count, type))
FILE_BEGIN(File_read_all_begin, void *)
FILE_BEGIN(File_read_ordered_begin, void *)
FILE_BEGIN(File_write_all_begin, const void *)
FILE_BEGIN(File_write_ordered_begin, const void *)

#define FILE_BEGIN_AT(Name, Buffer)                                                                                    \
    PASTED_OTHER(MPI(Name), (MPI_File file, MPI_Offset offset, Buffer buffer, COUNT count, MPI_Datatype type),         \
                 (file, offset, buffer, count, type))
FILE_BEGIN_AT(File_read_at_all_begin, void *)
FILE_BEGIN_AT(File_write_at_all_begin, const void *)

#undef PASTED_OTHER
#undef FILE_DATA
#undef FILE_DATA_AT
#undef FILE_LATER
#undef FILE_LATER_AT
#undef FILE_BEGIN
#undef FILE_BEGIN_AT
#undef COUNT
#undef MPI
