# Fibers, which have stacks of their own, threads and exceptions.
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
counts = Hash.new(0)
100_000.times { |i| counts[i * i % 997] += 1 }
fiber = Fiber.new { 3.times { |i| Fiber.yield i }; :end }
p fib(20), counts.size, 4.times.map { fiber.resume }, Array.new(3) { |i| Thread.new { fib(10 + i) } }.map(&:value)
begin
  raise "raised"
rescue => e
  puts e.message
end
