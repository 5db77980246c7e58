// Exceptions that Mono makes of signals in code that it has compiled, and threads.
using System;
using System.Collections.Generic;
using System.Threading;

class Null {
    static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

    static void Main(string[] args) {
        var last = new Dictionary<int, string>();
        for (int i = 0; i < 100000; i++) last[i * 7 % 1009] = i.ToString();
        string nothing = args.Length > 0 ? "" : null;
        try { Console.WriteLine(nothing.Length); } catch (NullReferenceException) { Console.WriteLine("null"); }
        try { Console.WriteLine(1 / (last.Count - 1009)); } catch (DivideByZeroException) { Console.WriteLine("zero"); }
        int sum = 0;
        var threads = new List<Thread>();
        for (int i = 0; i < 4; i++) threads.Add(new Thread(() => Interlocked.Add(ref sum, Fib(20))));
        foreach (var thread in threads) thread.Start();
        foreach (var thread in threads) thread.Join();
        Console.WriteLine(sum + " " + last.Count);
    }
}
