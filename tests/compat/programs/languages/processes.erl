#!/usr/bin/env escript
%% Processes on several schedulers, and code that its JIT has compiled.
-mode(compile).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

main(_) ->
    Self = self(),
    [spawn(fun() -> Self ! {answer, fib(15)} end) || _ <- lists:seq(1, 50)],
    Sum = lists:sum([receive {answer, V} -> V end || _ <- lists:seq(1, 50)]),
    Caught = try hd([]) catch error:badarg -> caught end,
    io:format("~p ~p ~p~n", [fib(22), Sum, Caught]).
