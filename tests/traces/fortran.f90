! Calls with a known pattern, in Fortran: each of 4 ranks sends 80 bytes to the next and takes 80 from any.
program fortran
  include 'mpif.h'
  integer :: error, me, ranks, half, color, index
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
  double precision :: out(10), in(10), total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  out = me
  call MPI_Irecv(in, 10, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, requests(1), error)
  call MPI_Isend(out, 10, MPI_DOUBLE_PRECISION, mod(me + 1, ranks), 5, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, statuses, error)
  if (statuses(MPI_SOURCE, 1) /= mod(me + ranks - 1, ranks)) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  if (in(1) /= mod(me + ranks - 1, ranks)) call MPI_Abort(MPI_COMM_WORLD, 2, error)
  total = me
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (total /= ranks * (ranks - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  color = mod(me, 2)
  call MPI_Comm_split(MPI_COMM_WORLD, color, me, half, error)
  call MPI_Bcast(out, 10, MPI_DOUBLE_PRECISION, 0, half, error)
  if (out(1) /= color) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  call MPI_Send_init(out, 3, MPI_DOUBLE_PRECISION, mod(me + 1, ranks), 6, MPI_COMM_WORLD, requests(1), error)
  call MPI_Recv_init(in, 3, MPI_DOUBLE_PRECISION, mod(me + ranks - 1, ranks), 6, MPI_COMM_WORLD, requests(2), error)
  call MPI_Startall(2, requests, error)
  call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, error)
  if (index < 1 .or. index > 2) call MPI_Abort(MPI_COMM_WORLD, 5, error)
  call MPI_Wait(requests(3 - index), status, error)
  call MPI_Comm_free(half, error)
  call MPI_Finalize(error)
end program fortran
