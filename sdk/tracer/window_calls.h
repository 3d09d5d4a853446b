/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided calls with counts. window.c includes this file for each type of counts: COUNT and UNIT are the types of
 * counts and of a window's unit, MPI(name) is the function. */

#define PASTED_CALL(...) CALL(__VA_ARGS__)

PASTED_CALL(MPI(Win_create), (void *base, MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
            (base, size, unit, info, comm, window), note_opened(comm, *window))
PASTED_CALL(MPI(Win_allocate), (MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
            (size, unit, info, comm, base, window), note_opened(comm, *window))
PASTED_CALL(MPI(Win_allocate_shared),
            (MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
            (size, unit, info, comm, base, window), note_opened(comm, *window))

/* Defines the call of an access, and the one with a request. */
#define ACCESS(Name, Rname, Parameters, Arguments, bytes, back)                                                        \
    PASTED_CALL(MPI(Name), (UNPACK Parameters, MPI_Win window), (UNPACK Arguments, window),                            \
                note_access(target, bytes, back, window, NULL))                                                        \
    PASTED_CALL(MPI(Rname), (UNPACK Parameters, MPI_Win window, MPI_Request * request),                                \
                (UNPACK Arguments, window, request), note_access(target, bytes, back, window, request))

ACCESS(Put, Rput,
       (const void *origin, COUNT count, MPI_Datatype type, int target, MPI_Aint place, COUNT target_count,
        MPI_Datatype target_type),
       (origin, count, type, target, place, target_count, target_type), spt_bytes(count, type), NOTHING_BACK)
ACCESS(Get, Rget,
       (void *origin, COUNT count, MPI_Datatype type, int target, MPI_Aint place, COUNT target_count,
        MPI_Datatype target_type),
       (origin, count, type, target, place, target_count, target_type), 0, BACK(spt_bytes(count, type)))
ACCESS(Accumulate, Raccumulate,
       (const void *origin, COUNT count, MPI_Datatype type, int target, MPI_Aint place, COUNT target_count,
        MPI_Datatype target_type, MPI_Op op),
       (origin, count, type, target, place, target_count, target_type, op), sent(count, type, op), NOTHING_BACK)
ACCESS(Get_accumulate, Rget_accumulate,
       (const void *origin, COUNT count, MPI_Datatype type, void *result_at, COUNT result_count,
        MPI_Datatype result_type, int target, MPI_Aint place, COUNT target_count, MPI_Datatype target_type, MPI_Op op),
       (origin, count, type, result_at, result_count, result_type, target, place, target_count, target_type, op),
       sent(count, type, op), BACK(spt_bytes(result_count, result_type)))

#undef PASTED_CALL
#undef ACCESS
#undef COUNT
#undef UNIT
#undef MPI
