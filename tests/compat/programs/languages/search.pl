% Backtracking, and a garbage collector of its own.
fib(0, 0).
fib(1, 1).
fib(N, F) :- N > 1, A is N - 1, B is N - 2, fib(A, X), fib(B, Y), F is X + Y.

main :- fib(18, F), findall(X, (between(1, 20000, X), 0 is X mod 7), L), length(L, N),
        catch(_ is F / 0, error(E, _), true), print([F, N, E]), nl, halt.
:- initialization(main).
