; Continuations.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (call/cc (lambda (leave) (for-each (lambda (x) (if (negative? x) (leave x))) '(1 -2 3)) 0)))
(newline)
(display (fib 23))
(newline)
