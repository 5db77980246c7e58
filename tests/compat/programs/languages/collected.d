// A collector that stops the other threads by signals.
import core.thread, std.algorithm, std.array, std.conv, std.range, std.stdio;

void main(string[] args) {
    int[string] counts;
    foreach (i; 0 .. 50_000) counts[(i % 997).to!string]++;
    ulong[3] sums;
    auto threads = 3.iota.map!(k => new Thread({
        foreach (round; 0 .. 20) sums[k] += iota(10_000).map!(i => i * 7919 % 1009).array.sort!"a > b"[k];
    })).array;
    foreach (thread; threads) thread.start();
    foreach (thread; threads) thread.join();
    try writeln(args[9]); catch (Error e) writeln("out of range");
    writeln(counts.length, " ", sums);
}
