<?php // Generators and exceptions, in code that the JIT compiles if there is one.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function upto($n) { for ($i = 0; $i < $n; $i++) yield $i; }
$last = [];
for ($i = 0; $i < 100000; $i++) $last[$i * $i % 997] = $i;
echo fib(22), " ", count($last), " ", array_sum(iterator_to_array(upto(100))), "\n";
try { intdiv(1, count($last) - count($last)); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
