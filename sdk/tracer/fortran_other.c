/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran calls that a trace only names: collective ones on files, and those that create processes. */
#include "fortran.h"

#if SPT_HAS_FORTRAN
#include <stdlib.h>

#define FILE_OF(file) PMPI_File_f2c(*(file))

#define FILE_DATA(lower, UPPER, Name)                                                                                  \
    WITH_STATUS(file_##lower, FILE_##UPPER, (F * f, void *b, F *n, F *t),                                              \
                MPI_File_##Name(FILE_OF(f), at(b), *n, T(t), &status))
FILE_DATA(read_all, READ_ALL, read_all)
FILE_DATA(read_ordered, READ_ORDERED, read_ordered)
FILE_DATA(write_all, WRITE_ALL, write_all)
FILE_DATA(write_ordered, WRITE_ORDERED, write_ordered)

#define FILE_DATA_AT(lower, UPPER, Name)                                                                               \
    WITH_STATUS(file_##lower, FILE_##UPPER, (F * f, MPI_Offset * place, void *b, F *n, F *t),                          \
                MPI_File_##Name(FILE_OF(f), *place, at(b), *n, T(t), &status))
FILE_DATA_AT(read_at_all, READ_AT_ALL, read_at_all)
FILE_DATA_AT(write_at_all, WRITE_AT_ALL, write_at_all)

#define FILE_LATER(lower, UPPER, Name)                                                                                 \
    MAKES(file_##lower, FILE_##UPPER, (F * f, void *b, F *n, F *t), Request,                                           \
          MPI_File_##Name(FILE_OF(f), at(b), *n, T(t), &fresh))
FILE_LATER(iread_all, IREAD_ALL, iread_all)
FILE_LATER(iwrite_all, IWRITE_ALL, iwrite_all)

#define FILE_LATER_AT(lower, UPPER, Name)                                                                              \
    MAKES(file_##lower, FILE_##UPPER, (F * f, MPI_Offset * place, void *b, F *n, F *t), Request,                       \
          MPI_File_##Name(FILE_OF(f), *place, at(b), *n, T(t), &fresh))
FILE_LATER_AT(iread_at_all, IREAD_AT_ALL, iread_at_all)
FILE_LATER_AT(iwrite_at_all, IWRITE_AT_ALL, iwrite_at_all)

#define FILE_SPLIT(lower, UPPER, Name)                                                                                 \
    CALL(file_##lower##_begin, FILE_##UPPER##_BEGIN, (F * f, void *b, F *n, F *t),                                     \
         MPI_File_##Name##_begin(FILE_OF(f), at(b), *n, T(t)))                                                         \
    WITH_STATUS(file_##lower##_end, FILE_##UPPER##_END, (F * f, void *b),                                              \
                MPI_File_##Name##_end(FILE_OF(f), at(b), &status))
FILE_SPLIT(read_all, READ_ALL, read_all)
FILE_SPLIT(read_ordered, READ_ORDERED, read_ordered)
FILE_SPLIT(write_all, WRITE_ALL, write_all)
FILE_SPLIT(write_ordered, WRITE_ORDERED, write_ordered)

#define FILE_SPLIT_AT(lower, UPPER, Name)                                                                              \
    CALL(file_##lower##_begin, FILE_##UPPER##_BEGIN, (F * f, MPI_Offset * place, void *b, F *n, F *t),                 \
         MPI_File_##Name##_begin(FILE_OF(f), *place, at(b), *n, T(t)))                                                 \
    WITH_STATUS(file_##lower##_end, FILE_##UPPER##_END, (F * f, void *b),                                              \
                MPI_File_##Name##_end(FILE_OF(f), at(b), &status))
FILE_SPLIT_AT(read_at_all, READ_AT_ALL, read_at_all)
FILE_SPLIT_AT(write_at_all, WRITE_AT_ALL, write_at_all)

CALL(file_set_size, FILE_SET_SIZE, (F * f, MPI_Offset *size), MPI_File_set_size(FILE_OF(f), *size))
CALL(file_preallocate, FILE_PREALLOCATE, (F * f, MPI_Offset *size), MPI_File_preallocate(FILE_OF(f), *size))
CALL(file_sync, FILE_SYNC, (F * f), MPI_File_sync(FILE_OF(f)))
CALL(file_set_atomicity, FILE_SET_ATOMICITY, (F * f, F *atomic), MPI_File_set_atomicity(FILE_OF(f), *atomic != 0))
CALL(file_seek_shared, FILE_SEEK_SHARED, (F * f, MPI_Offset *place, F *whence),
     MPI_File_seek_shared(FILE_OF(f), *place, *whence))

FORTRAN(file_close, FILE_CLOSE, (F * f, F *e), {
    MPI_File file = FILE_OF(f);
    int result = MPI_File_close(&file);
    if (result == MPI_SUCCESS)
        *f = PMPI_File_c2f(file);
    if (e)
        *e = result;
})

FORTRAN(file_open, FILE_OPEN, (F * c, char *name, F *mode, F *info, F *f, F *e, size_t length), {
    MPI_File file;
    char *text = spt_fortran_text(name, length);
    int result = MPI_File_open(C(c), text, *mode, I(info), &file);
    free(text);
    if (result == MPI_SUCCESS)
        *f = PMPI_File_c2f(file);
    if (e)
        *e = result;
})

FORTRAN(file_set_view, FILE_SET_VIEW,
        (F * f, MPI_Offset *place, F *unit, F *type, char *form, F *info, F *e, size_t length), {
            char *text = spt_fortran_text(form, length);
            int result = MPI_File_set_view(FILE_OF(f), *place, T(unit), T(type), text, I(info));
            free(text);
            if (e)
                *e = result;
        })

#define MAKES_BY_PORT(lower, UPPER, Name)                                                                              \
    FORTRAN(lower, UPPER, (char *port, F *info, F *root, F *c, F *made, F *e, size_t length), {                        \
        MPI_Comm fresh;                                                                                                \
        char *text = spt_fortran_text(port, length);                                                                   \
        int result = Name(text, I(info), *root, C(c), &fresh);                                                         \
        free(text);                                                                                                    \
        if (result == MPI_SUCCESS)                                                                                     \
            *made = PMPI_Comm_c2f(fresh);                                                                              \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })
MAKES_BY_PORT(comm_accept, COMM_ACCEPT, MPI_Comm_accept)
MAKES_BY_PORT(comm_connect, COMM_CONNECT, MPI_Comm_connect)
MAKES(comm_join, COMM_JOIN, (F * socket), Comm, MPI_Comm_join(*socket, &fresh))

#endif
