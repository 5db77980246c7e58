"""Threads that use one SQLite database, each through a connection of its own."""

import sqlite3
import threading


def connect() -> sqlite3.Connection:
    return sqlite3.connect("shared.db", timeout=120, isolation_level=None)


def write(number: int) -> None:
    connection = connect()
    for i in range(50):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES(?, ?)", (number, i * i))
        connection.execute("UPDATE counts SET n = n + 1")
        connection.execute("COMMIT")
    connection.close()


def main() -> None:
    connection = connect()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE t(thread, value)")
    connection.execute("CREATE TABLE counts(n)")
    connection.execute("INSERT INTO counts VALUES(0)")
    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(connection.execute("SELECT thread, count(*), sum(value) FROM t GROUP BY 1").fetchall())
    print(connection.execute("SELECT n FROM counts").fetchall())
    print(connection.execute("PRAGMA integrity_check").fetchall())
    connection.close()


main()
