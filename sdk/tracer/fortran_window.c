/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided calls in Fortran (see fortran.h). */
#include "fortran.h"

#if SPT_HAS_FORTRAN

/* ---- Windows ---- */

MAKES(win_create, WIN_CREATE, (void *b, MPI_Aint *size, F *unit, F *info, F *c), Win,
      MPI_Win_create(at(b), *size, *unit, I(info), C(c), &fresh))
MAKES(win_create_dynamic, WIN_CREATE_DYNAMIC, (F * info, F *c), Win, MPI_Win_create_dynamic(I(info), C(c), &fresh))

/* The address of the memory is an integer or a C pointer. The variant with a pointer has another name, except in
 * `mpi_f08`. */
#define ALLOCATES(lower, UPPER, Name)                                                                                  \
    MAKES(lower, UPPER, (MPI_Aint * size, F * unit, F * info, F * c, void *memory), Win,                               \
          Name(*size, *unit, I(info), C(c), memory, &fresh))
ALLOCATES(win_allocate, WIN_ALLOCATE, MPI_Win_allocate)
ALLOCATES(win_allocate_cptr, WIN_ALLOCATE_CPTR, MPI_Win_allocate)
ALLOCATES(win_allocate_shared, WIN_ALLOCATE_SHARED, MPI_Win_allocate_shared)
ALLOCATES(win_allocate_shared_cptr, WIN_ALLOCATE_SHARED_CPTR, MPI_Win_allocate_shared)

/* Variants with a unit of more than 32 bits, as far as MPICH has them. */
#if !defined OPEN_MPI && SPT_HAS_LARGE_COUNTS
#define ALLOCATES_LARGE(lower, Name)                                                                                   \
    SPT_API void mpi_##lower##_f08_large_(MPI_Aint *size, MPI_Aint *unit, F *info, F *c, void *memory, F *made, F *e); \
    void mpi_##lower##_f08_large_(MPI_Aint *size, MPI_Aint *unit, F *info, F *c, void *memory, F *made, F *e) {        \
        MPI_Win fresh;                                                                                                 \
        int result = Name(*size, *unit, I(info), C(c), memory, &fresh);                                                \
        if (result == MPI_SUCCESS)                                                                                     \
            *made = PMPI_Win_c2f(fresh);                                                                               \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    }
ALLOCATES_LARGE(win_allocate, MPI_Win_allocate_c)
ALLOCATES_LARGE(win_allocate_shared, MPI_Win_allocate_shared_c)
#endif

FORTRAN(win_free, WIN_FREE, (F * w, F *e), {
    MPI_Win window = W(w);
    int result = MPI_Win_free(&window);
    if (result == MPI_SUCCESS)
        *w = PMPI_Win_c2f(window);
    if (e)
        *e = result;
})

/* ---- Epochs ---- */

CALL(win_fence, WIN_FENCE, (F * mode, F *w), MPI_Win_fence(*mode, W(w)))
CALL(win_post, WIN_POST, (F * group, F *mode, F *w), MPI_Win_post(G(group), *mode, W(w)))
CALL(win_start, WIN_START, (F * group, F *mode, F *w), MPI_Win_start(G(group), *mode, W(w)))
CALL(win_complete, WIN_COMPLETE, (F * w), MPI_Win_complete(W(w)))
CALL(win_wait, WIN_WAIT, (F * w), MPI_Win_wait(W(w)))
CALL(win_test, WIN_TEST, (F * w, F *flag), MPI_Win_test(W(w), flag))
CALL(win_lock, WIN_LOCK, (F * type, F *rank, F *mode, F *w), MPI_Win_lock(*type, *rank, *mode, W(w)))
CALL(win_lock_all, WIN_LOCK_ALL, (F * mode, F *w), MPI_Win_lock_all(*mode, W(w)))
CALL(win_unlock, WIN_UNLOCK, (F * rank, F *w), MPI_Win_unlock(*rank, W(w)))
CALL(win_unlock_all, WIN_UNLOCK_ALL, (F * w), MPI_Win_unlock_all(W(w)))
CALL(win_flush, WIN_FLUSH, (F * rank, F *w), MPI_Win_flush(*rank, W(w)))
CALL(win_flush_all, WIN_FLUSH_ALL, (F * w), MPI_Win_flush_all(W(w)))
CALL(win_flush_local, WIN_FLUSH_LOCAL, (F * rank, F *w), MPI_Win_flush_local(*rank, W(w)))
CALL(win_flush_local_all, WIN_FLUSH_LOCAL_ALL, (F * w), MPI_Win_flush_local_all(W(w)))

/* ---- Accesses ---- */

#define ACCESS(lower, UPPER, Name, Rname, Parameters, Arguments)                                                       \
    CALL(lower, UPPER, (UNPACK Parameters, F * w), MPI_##Name(UNPACK Arguments, W(w)))                                 \
    MAKES(r##lower, R##UPPER, (UNPACK Parameters, F * w), Request, MPI_##Rname(UNPACK Arguments, W(w), &fresh))

#define PLACE F *rank, MPI_Aint *place, F *n2, F *t2
#define PLACE_C *rank, *place, *n2, T(t2)

ACCESS(put, PUT, Put, Rput, (void *b, F *n, F *t, PLACE), (at(b), *n, T(t), PLACE_C))
ACCESS(get, GET, Get, Rget, (void *b, F *n, F *t, PLACE), (at(b), *n, T(t), PLACE_C))
ACCESS(accumulate, ACCUMULATE, Accumulate, Raccumulate, (void *b, F *n, F *t, PLACE, F *op),
       (at(b), *n, T(t), PLACE_C, O(op)))
ACCESS(get_accumulate, GET_ACCUMULATE, Get_accumulate, Rget_accumulate,
       (void *b, F *n, F *t, void *into, F *n3, F *t3, PLACE, F *op),
       (at(b), *n, T(t), at(into), *n3, T(t3), PLACE_C, O(op)))
CALL(fetch_and_op, FETCH_AND_OP, (void *b, void *into, F *t, F *rank, MPI_Aint *place, F *op, F *w),
     MPI_Fetch_and_op(at(b), at(into), T(t), *rank, *place, O(op), W(w)))
CALL(compare_and_swap, COMPARE_AND_SWAP, (void *b, void *compared, void *into, F *t, F *rank, MPI_Aint *place, F *w),
     MPI_Compare_and_swap(at(b), at(compared), at(into), T(t), *rank, *place, W(w)))

#endif
