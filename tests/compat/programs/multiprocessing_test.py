"""Processes of Python: forked, spawned, in pools, with shared memory."""

import multiprocessing
import os
from multiprocessing import shared_memory


def square(number: int) -> int:
    return number * number


def fill(name: str, value: int) -> None:
    memory = shared_memory.SharedMemory(name)
    memory.buf[value] = value
    memory.close()


def send(connection, count: int) -> None:
    for number in range(count):
        connection.send({"number": number, "own": os.getpid() != os.getppid()})
    connection.close()


def main() -> None:
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, sum(pool.map(square, range(500), chunksize=20)))
            pool.close()
            pool.join()
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=send, args=(theirs, 100))
        process.start()
        theirs.close()
        print(sum(ours.recv()["number"] for _ in range(100)))
        process.join()
        print(process.exitcode)
    memory = shared_memory.SharedMemory(create=True, size=16)
    processes = [multiprocessing.Process(target=fill, args=(memory.name, i)) for i in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(list(memory.buf[:8]))
    memory.close()
    memory.unlink()


if __name__ == "__main__":
    main()
