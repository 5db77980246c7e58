-- What LuaJIT compiles: loops with numbers, strings, tables and closures, side exits, calls of C
-- and back from it, coroutines.
local ffi = require "ffi"
ffi.cdef [[
double sqrt(double);
int abs(int);
void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));
]]

local function sieve(limit)
    local composite, count = {}, 0
    for i = 2, limit do
        if not composite[i] then
            count = count + 1
            for k = i * i, limit, i do composite[k] = true end
        end
    end
    return count
end

local function collatz(limit)
    local longest, where = 0, 0
    for start = 1, limit do
        local n, steps = start, 0
        while n ~= 1 do
            if n % 2 == 0 then n = n / 2 else n = 3 * n + 1 end
            steps = steps + 1
        end
        if steps > longest then longest, where = steps, start end
    end
    return longest, where
end

local function words(count)
    local seen, order = {}, {}
    for i = 1, count do
        local word = string.format("%x", i * 7919 % 977)
        if not seen[word] then order[#order + 1] = word end
        seen[word] = (seen[word] or 0) + #word
    end
    table.sort(order)
    return table.concat(order, ",", 1, 8), #order
end

local function structs(count)
    local points = ffi.new("struct { double x; int y; } [?]", count)
    for i = 0, count - 1 do
        points[i].x = ffi.C.sqrt(i)
        points[i].y = ffi.C.abs(-i)
    end
    local sum = 0
    for i = 0, count - 1 do sum = sum + points[i].x * points[i].y end
    return string.format("%.6f", sum)
end

local function callbacks(count)
    local values = ffi.new("int[?]", count)
    for i = 0, count - 1 do values[i] = i * 7919 % 1009 end
    local compare = ffi.cast("int (*)(const int *, const int *)",
                             function(a, b) return b[0] - a[0] end)
    ffi.C.qsort(values, count, 4, compare)
    compare:free()
    return values[0], values[count - 1]
end

local function coroutines(count)
    local sum = 0
    local make = function(n) return coroutine.wrap(function()
        for i = 1, n do coroutine.yield(i * n) end
    end) end
    for i = 1, count do
        for value in make(i % 10) do sum = sum + value end
    end
    return sum
end

-- A loop whose types change when it has long been compiled.
local function changing(count)
    local sum = 0
    for i = 1, count do
        local value = i
        if i > count / 2 then value = tostring(i) end
        if i % 1000 == 0 then value = setmetatable({}, {__add = function(a, b) return b end}) end
        sum = value + sum
    end
    return sum
end

print(sieve(200000))
print(collatz(20000))
print(words(100000))
print(structs(10000))
print(callbacks(2000))
print(coroutines(5000))
print(changing(100000))
for i = 1, 50 do  -- traces are thrown away and compiled again
    if jit.status() then jit.flush() end
    assert(sieve(2000) == 303)
end
print(pcall(error, "caught"))
