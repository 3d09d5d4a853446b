! One-sided and other rarer calls with a known pattern, by `use mpi_f08`; 4 ranks.
program fortran08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: me, ranks, next, last, value, before
  integer :: counts(4), places(4), ones(2)
  integer(MPI_ADDRESS_KIND) :: apart(2)
  integer, target :: memory(100)
  integer, pointer :: shared(:)
  integer :: sent(100), got(100)
  type(c_ptr) :: base
  type(MPI_Win) :: window, other
  type(MPI_Comm) :: copy, ring
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Datatype) :: types(4)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(me + 1, ranks)
  last = mod(me + ranks - 1, ranks)
  sent = me
  memory = -1
  ! 100 bytes to the next between two fences; 200 bytes of the next by a lock.
  call MPI_Win_create(memory, 400_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  call MPI_Win_fence(0, window)
  call MPI_Put(sent, 25, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 25, MPI_INTEGER, window)
  call MPI_Win_fence(0, window)
  if (memory(25) /= last) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_Win_lock_all(0, window)
  call MPI_Rget(got, 50, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 50, MPI_INTEGER, window, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (got(25) /= me .or. got(26) /= -1) call MPI_Abort(MPI_COMM_WORLD, 2)
  call MPI_Win_unlock_all(window)
  call MPI_Barrier(MPI_COMM_WORLD)
  value = 1
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window)
  call MPI_Fetch_and_op(value, before, MPI_INTEGER, 0, 99_MPI_ADDRESS_KIND, MPI_SUM, window)
  call MPI_Win_unlock(0, window)
  call MPI_Win_free(window)
  if (me == 0 .and. memory(100) /= 3) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Win_allocate(400_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, other)
  call c_f_pointer(base, shared, [100])
  shared(1) = me
  call MPI_Win_free(other)
  ! 44 bytes around the ring of a copy, 8 bytes to the next and 12 to the last by datatypes of their own.
  call MPI_Comm_idup(MPI_COMM_WORLD, copy, request)
  call MPI_Wait(request, status)
  call MPI_Sendrecv(sent, 11, MPI_INTEGER, next, 1, got, 11, MPI_INTEGER, last, 1, copy, MPI_STATUS_IGNORE)
  counts = 0
  places = 0
  types = MPI_INTEGER
  counts(next + 1) = 2
  counts(last + 1) = counts(last + 1) + 3
  places(next + 1) = 40
  got = -1
  ! All to all: from the next come 3, from the last 2.
  call MPI_Ialltoallw(sent, counts, [0, 0, 0, 0], types, got, swapped(counts), places, types, copy, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (got(11) /= next) call MPI_Abort(MPI_COMM_WORLD, 4)
  call MPI_Dist_graph_create_adjacent(copy, 2, [last, next], MPI_UNWEIGHTED, 2, [last, next], MPI_UNWEIGHTED, &
                                      MPI_INFO_NULL, .false., ring)
  ones = 7
  apart = [0_MPI_ADDRESS_KIND, 80_MPI_ADDRESS_KIND]
  call MPI_Neighbor_alltoallw(sent, ones, [0_MPI_ADDRESS_KIND, 0_MPI_ADDRESS_KIND], types(1:2), got, ones, apart, &
                              types(1:2), ring)
  if (got(1) /= last .or. got(21) /= next) call MPI_Abort(MPI_COMM_WORLD, 5)
  call MPI_Comm_free(ring)
  call MPI_Comm_free(copy)
  call MPI_Finalize()
contains
  ! Counts of what comes, from those of what goes: around the ring they change sides.
  function swapped(all) result(other)
    integer, intent(in) :: all(4)
    integer :: other(4)
    other = all
    other(next + 1) = all(last + 1)
    other(last + 1) = all(next + 1)
  end function
end program fortran08
