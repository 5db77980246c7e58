#lang racket/base
; Continuations, winds and light threads.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define table (make-hash))
(for ([i 50000]) (hash-set! table (modulo (* i i) 997) i))
(for-each thread-wait (for/list ([k 4]) (thread (lambda () (fib 18)))))
(call/cc (lambda (leave) (dynamic-wind void (lambda () (leave 1)) (lambda () (displayln "left")))))
(printf "~a ~a\n" (fib 22) (hash-count table))
