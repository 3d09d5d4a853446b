/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran routines that call the C functions of the tracer: all routines of Open MPI, and MPICH's routines of `use
 * mpi_f08` without buffers. Neither calls the C functions of MPI. MPICH's routines with buffers have other names,
 * and call them. */
#ifndef SPINTRACE_FORTRAN_H
#define SPINTRACE_FORTRAN_H

#include "trace.h"

#if defined OPEN_MPI || defined MPICH_VERSION
#define SPT_HAS_FORTRAN 1
#else
#define SPT_HAS_FORTRAN 0
#endif

typedef MPI_Fint F;

#ifdef OPEN_MPI
/* Names that Fortran compilers generate, and the name of `use mpi_f08`. */
#define ALIAS(name, other) SPT_API extern __typeof__(name) other __attribute__((alias(#name)));
#define FORTRAN(lower, UPPER, Parameters, ...)                                                                         \
    SPT_API void mpi_##lower Parameters;                                                                               \
    void mpi_##lower Parameters __VA_ARGS__ ALIAS(mpi_##lower, mpi_##lower##_) ALIAS(mpi_##lower, mpi_##lower##__)     \
        ALIAS(mpi_##lower, mpi_##lower##_f08_) ALIAS(mpi_##lower, MPI_##UPPER)
#else
#define FORTRAN(lower, UPPER, Parameters, ...)                                                                         \
    SPT_API void mpi_##lower##_f08_ Parameters;                                                                        \
    void mpi_##lower##_f08_ Parameters __VA_ARGS__
#endif

#define UNPACK(...) __VA_ARGS__

/* Defines a routine that is one C call. Its last parameter is `e`, which `use mpi_f08` may leave out. */
#define CALL(lower, UPPER, Parameters, call)                                                                           \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * e), {                                                                \
        int result = call;                                                                                             \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Defines such a routine for a call that creates a handle, the last parameter before `e`. */
#define MAKES(lower, UPPER, Parameters, Type, call)                                                                    \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * made, F * e), {                                                      \
        MPI_##Type fresh;                                                                                              \
        int result = call;                                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            *made = PMPI_##Type##_c2f(fresh);                                                                          \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Returns the address of a buffer in C. Variables of Fortran stand for MPI_BOTTOM and MPI_IN_PLACE. */
void *spt_fortran_at(void *address);
#define at spt_fortran_at

/* Copies a status to Fortran, unless the caller ignores it. */
void spt_fortran_give(const MPI_Status *status, F *to);

/* Defines a routine that fills in a status. */
#define WITH_STATUS(lower, UPPER, Parameters, call)                                                                    \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * s, F * e), {                                                         \
        MPI_Status status;                                                                                             \
        int result = call;                                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            spt_fortran_give(&status, s);                                                                              \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Returns a copy of a string of `length` bytes without the spaces at its end. The caller frees it. */
char *spt_fortran_text(const char *text, size_t length);

#define C(comm) PMPI_Comm_f2c(*(comm))
#define T(type) PMPI_Type_f2c(*(type))
#define O(op) PMPI_Op_f2c(*(op))
#define G(group) PMPI_Group_f2c(*(group))
#define I(info) PMPI_Info_f2c(*(info))
#define W(window) PMPI_Win_f2c(*(window))

#endif
