! Matrices, and a result that floating-point flags tell of.
program matrices
  use, intrinsic :: ieee_exceptions
  real(8) :: a(200, 200), b(200, 200), zero
  logical :: divided
  integer :: i, j
  do i = 1, 200
    do j = 1, 200
      a(i, j) = i * 0.5d0 + j
      b(i, j) = i - j * 0.25d0
    end do
  end do
  print '(F20.4)', sum(matmul(a, b))
  zero = a(1, 1) - 1.5d0
  a(1, 1) = 1 / zero
  call ieee_get_flag(ieee_divide_by_zero, divided)
  call ieee_set_flag(ieee_all, .false.)
  print *, divided
end program
