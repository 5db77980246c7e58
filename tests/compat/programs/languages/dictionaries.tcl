# Bytecode, dictionaries and coroutines.
proc fib n {if {$n < 2} {return $n}; expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]}}
proc upto n {yield; for {set i 0} {$i < $n} {incr i} {yield $i}}
for {set i 0} {$i < 20000} {incr i} {dict set last [expr {$i * $i % 97}] $i}
coroutine next upto 3
puts "[fib 18] [dict size $last] [next] [next] [catch {expr {1 / 0}} message] $message"
