(* A stack that overflows, which the runtime learns from SIGSEGV. *)
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let rec deep n = if n = 0 then 0 else 1 + deep (n - 1)

let () =
  let table = Hashtbl.create 10 in
  for i = 1 to 100000 do Hashtbl.replace table (i * i mod 9973) (string_of_int i) done;
  (try ignore (deep 100000000) with Stack_overflow -> print_endline "overflow");
  Printf.printf "%d %d\n" (fib 25) (Hashtbl.length table)
