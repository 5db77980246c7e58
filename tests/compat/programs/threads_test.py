"""Threads, locks and queues of Python."""

import concurrent.futures
import hashlib
import queue
import signal
import sys
import threading
import time


def digest(number: int) -> str:
    return hashlib.sha256(bytes([number]) * 300_000).hexdigest()[:8]  # without the interpreter's lock


def queued() -> int:
    waiting, results = queue.Queue(maxsize=3), []
    lock = threading.Lock()

    def consume():
        while (item := waiting.get()) is not None:
            with lock:
                results.append(item * item)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for item in [*range(2000), *[None] * 4]:
        waiting.put(item)
    for thread in threads:
        thread.join()
    return sum(results)


def interrupted() -> str:
    """A signal that reaches the process while the main thread waits for another."""
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGUSR1])
    received = []
    signal.signal(signal.SIGUSR1, lambda *_: received.append(threading.current_thread().name))
    timer.start()
    timer.join()
    while not received:
        time.sleep(0.001)
    return received[0]


def main() -> None:
    sys.setswitchinterval(1e-4)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(list(pool.map(digest, range(40))))
    print(queued())
    print(interrupted())
    local = threading.local()
    local.value = 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(hasattr(local, "value")))
    thread.start()
    thread.join()
    print(seen)


main()
