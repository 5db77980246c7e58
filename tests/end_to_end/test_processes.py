#!/usr/bin/env python3
"""Children and executed programs: one events file per process image, and the same behaviour."""

import json
import os
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import ASSAY, PLUGINS, PROGRAMS, profile, read_events, run

PROCESSES = PROGRAMS / "processes"
RELATIVES = PROGRAMS / "relatives"
WORK = PROGRAMS / "work"
COUNTS = PLUGINS / "counts.so"


def small_program(status: int) -> bytes:
    """A 32-bit ELF program that exits with the status."""
    code = struct.pack("<BIBIBB", 0xB8, 1, 0xBB, status, 0xCD, 0x80)  # exit(status) by int $0x80
    base, headers = 0x8048000, 52 + 32
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    elf = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + headers, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, headers + len(code), headers + len(code),
                          5, 4096)
    return ident + elf + segment + code


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def script(self, name, text, mode=0o755):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def profile(self, program, *options, out="out.%p", **more):
        more.setdefault("plugin", COUNTS)
        return profile(program, *options, out=self.folder / out, **more)

    def files(self, pattern="out.*"):
        """The events files by name, without those that are still being written."""
        return {path.name: read_events(path) for path in sorted(self.folder.glob(pattern))
                if path.suffix != ".tmp"}

    def commands(self, pattern="out.*"):
        return sorted(events.command for events in self.files(pattern).values())

    def check_same(self, program, *options, **more):
        """Runs it alone and under assay; returns what it says there beside its own."""
        alone = run(program, **({"env": more["env"]} if "env" in more else {}))
        result = self.profile(program, *options, **more)
        self.assertEqual((result.returncode, result.stdout), (alone.returncode, alone.stdout),
                         result.stderr)
        return result.stderr

    def wait_until(self, condition):
        deadline = time.monotonic() + 300
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.05)

    def test_assay_below_assay(self):
        inner = self.folder / "inner"
        said = self.check_same([ASSAY, "-q", f"--plugin={COUNTS}", f"--out={inner}", "--", WORK])
        self.assertIn("it is the driver of another assay; it runs natively", said)
        self.assertIn("Ir", read_events(inner).events)

    # --- How children come to be

    def test_fork(self):
        self.check_same([PROCESSES, "forked"])
        files = list(self.files().values())
        self.assertEqual(len(files), 2)
        child, parent = sorted(files, key=lambda events: "forked" in events.functions
                               and -events.functions["forked"][0])
        self.assertEqual(child.command, parent.command)
        # The loop is the child's, and what came before the fork is the parent's alone.
        self.assertGreater(child.functions["forked"][0], 300_000)
        self.assertLess(parent.functions["forked"][0], 1_000)
        self.assertNotIn("run_case", child.functions)
        for events in files:
            self.assertEqual(events.totals(), events.summary)

    def test_fork_and_exec(self):
        self.check_same(["sh", "-c", "(exec /bin/echo child); exit 3"])
        self.assertEqual(self.commands(), ["/bin/echo child"] + 2 * [
            "sh -c (exec /bin/echo child); exit 3"])
        replaced = [name for name in self.files() if re.fullmatch(r"out\.\d+\.1", name)]
        self.assertEqual(len(replaced), 1)
        self.assertIn("(exec", self.files()[replaced[0]].command)

    def test_exec_chain(self):
        """The last image has the plain name, the others have their numbers."""
        self.check_same(["sh", "-c", "exec sh -c 'exec echo end'"])
        names = {re.sub(r"\d+", "PID", name, count=1): events.command
                 for name, events in self.files().items()}
        self.assertEqual(names, {"out.PID.1": "sh -c exec sh -c 'exec echo end'",
                                 "out.PID.2": "sh -c exec echo end", "out.PID": "echo end"})

    def test_exec_that_fails(self):
        self.check_same([PROCESSES, "replaced_not"])
        self.assertEqual(len(self.files()), 1)
        self.assertFalse(any("incomplete" in line for events in self.files().values()
                             for line in events.remarks))

    def test_posix_spawn(self):
        self.check_same([PROCESSES, "spawned"])
        self.check_same([PROCESSES, "spawn_missing"])
        self.assertEqual(self.commands(), [f"{PROCESSES} spawn_missing", f"{PROCESSES} spawned",
                                           "sh -c echo spawned $0 $1; exit 11 a b"])

    def test_script(self):
        inner = self.script("inner", "#!/bin/sh -e\necho \"$0 $1\"\n")
        outer = self.script("outer", f"#!/bin/sh\n{inner} word\nexit 5\n")
        self.check_same([outer])
        self.assertEqual(self.commands(), [f"/bin/sh -e {inner} word", str(outer)])

    def test_counts_of_a_child_are_those_of_a_run_of_its_own(self):
        self.assertEqual(self.profile([WORK], out="alone").returncode, 0)
        self.check_same(["sh", "-c", f"{WORK}; true"], out="child")
        alone = read_events(self.folder / "alone")
        child = next(events for name, events in self.files("child.*").items())
        for name in ("fill_cells", "sum_cells", "count_bits"):
            self.assertEqual(child.functions[name], alone.functions[name])

    def test_program_that_is_replaced_between_its_runs(self):
        """As those of a build are: what is known of the old one does not name the new one's code."""
        program = self.folder / "program"
        self.check_same(["sh", "-c", f"cp {PROCESSES} {program}; for i in 1 2 3; do "
                         f"{program} replaced_not; done; cp {WORK} {program}; {program}"])
        files = [events for events in self.files().values() if events.command == str(program)]
        self.assertEqual(len(files), 1)
        self.assertEqual(self.profile([WORK], out="alone").returncode, 0)
        alone = read_events(self.folder / "alone")
        for name in ("fill_cells", "sum_cells", "count_bits"):
            self.assertEqual(files[0].functions.get(name), alone.functions[name])

    def test_counts_of_a_process_that_shares_memory_and_outlives_its_maker(self):
        """It counts as its maker's, and nothing of it is lost with its maker."""
        self.assertEqual(self.profile([RELATIVES, "computing_alone"], out="alone").returncode, 0)
        alone = read_events(self.folder / "alone").functions["compute_alone"]
        self.check_same([RELATIVES, "outlived_maker"], out="out.%p")
        makers = [events for events in self.files().values() if "outlive_maker" in events.functions]
        self.assertEqual([events.functions["compute_alone"] for events in makers], 5 * [alone])
        for events in makers:
            self.assertEqual(events.totals(), events.summary)
            self.assertFalse(any("incomplete" in line for line in events.remarks))

    def test_many_short_processes(self):
        self.check_same(["sh", "-c", "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i + 1)); done"],
                        "--quiet", timeout=300)
        self.assertEqual(self.commands().count("/bin/true"), 60)
        self.assertEqual(len({tuple(events.summary) for events in self.files().values()
                              if events.command == "/bin/true"}), 1)

    def test_many_at_once(self):
        words = self.check_same(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do "
                                 "(/bin/echo $i | cat >/dev/null; /bin/true) & done; wait"],
                                "--quiet")
        self.assertEqual(words, "")
        commands = self.commands()
        for command in ("cat", "/bin/true"):
            self.assertEqual(commands.count(command), 10)

    def test_more_at_once_than_descriptors(self):
        """Of a process that is not profiled, assay says so, and the program goes on."""
        def set_limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        program = (f"exec 3<>{pipe}; for i in $(seq 20); do sh -c 'echo $$; read word <&3' & done; "
                   "wait")
        with subprocess.Popen([ASSAY, f"--plugin={COUNTS}", f"--out={self.folder / 'out.%p'}", "-q",
                               "--", "sh", "-c", program], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=set_limit) as assay:
            children = [assay.stdout.readline().strip() for _ in range(20)]
            pipe.write_text(20 * "go on\n")
            _, words = assay.communicate(timeout=300)
        self.assertEqual(assay.returncode, 125, words)
        lost = re.findall(r"no collector can be started for process (\d+): too many open files; "
                          "raise the limit", words)
        self.assertGreater(len(lost), 0, words)
        self.assertEqual(len(set(children)), 20)
        for pid in children:
            self.assertTrue(pid in lost or (self.folder / f"out.{pid}").exists(), pid)

    # --- How they end

    def test_killed_child(self):
        self.check_same(["sh", "-c", "sh -c 'kill -KILL $$'; exit 0"])
        killed = [events for events in self.files().values() if "kill -KILL" in events.command
                  and any("incomplete" in line for line in events.remarks)]
        self.assertEqual(len(killed), 1)
        self.assertEqual(killed[0].totals(), killed[0].summary)
        self.assertGreater(killed[0].summary[0], 1_000)

    def test_daemon(self):
        """assay does not wait for what goes on behind the program, nor do readers of its stderr."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        daemon = f"read word < {pipe}; echo $word > {self.folder / 'word'}"
        result = self.profile(["sh", "-c", f"setsid sh -c '{daemon}' >/dev/null 2>&1 </dev/null &"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("still running", result.stderr)
        self.assertNotIn(f"sh -c {daemon}", self.commands())
        pipe.write_text("last\n")
        self.wait_until(lambda: f"sh -c {daemon}" in self.commands())
        self.assertEqual((self.folder / "word").read_text(), "last\n")

    def test_child_outlives_a_killed_assay(self):
        """Its own collector is another process, which writes its file."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        waits = f"echo $$; read word < {pipe}"
        with subprocess.Popen(
                [ASSAY, f"--plugin={COUNTS}", f"--out={self.folder / 'out.%p'}", "--", "sh", "-c",
                 f"sh -c '{waits}' & wait"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as assay:
            child = int(assay.stdout.readline())
            assay.kill()
            pipe.write_text("go on\n")
            assay.communicate(timeout=300)
        expected = self.folder / f"out.{child}"
        self.wait_until(expected.exists)
        self.assertEqual(read_events(expected).command, f"sh -c {waits}")

    def collectors(self):
        """Processes that run assay with this test's folder, as (pid, parent)."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes()
                parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if str(self.folder).encode() in words and words.startswith(str(ASSAY).encode()):
                found.append((int(path.name), parent))
        return found

    @staticmethod
    def leaf(processes):
        """Of collectors(), one that is nobody's parent: of a child's image."""
        return next(pid for pid, _ in processes if pid not in [parent for _, parent in processes])

    @staticmethod
    def supervisor(processes):
        """Of collectors(), the one below assay."""
        return next(pid for pid, parent in processes if parent != os.getpid())

    def check_goes_on_without(self, choose, status):
        """A child goes on when `choose` has said which process to kill, of [(pid, parent)]."""
        loop = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo went on $i"
        self.script("child", f"#!/bin/sh\necho ready; read word; {loop}\n")
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", "--I1=64,1,64", "--D1=64,1,64", "--quiet",
                 f"--out={self.folder / 'out.%p'}", "--", "sh", "-c", f"{self.folder / 'child'}; :"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as assay:
            assay.stdout.readline()
            # Of assay, the supervisor, and a collector.
            self.wait_until(lambda: len(self.collectors()) == 3)
            os.kill(choose(self.collectors()), 9)
            output, words = assay.communicate("word\n", timeout=60)
        self.assertEqual((assay.returncode, output), (status, "went on 20000\n"), words)
        return words

    def test_killed_collector_does_not_stop_its_process(self):
        words = self.check_goes_on_without(self.leaf, 125)
        self.assertRegex(words, r"^assay: there is no profile of process \d+: its collector was "
                         r"ended by signal 9 \(Killed\)$")

    def test_killed_supervisor_does_not_stop_the_program(self):
        """Collectors that are there go on; assay waits for them, and nothing is missing then."""
        words = self.check_goes_on_without(lambda processes: next(
            pid for pid, parent in processes if parent != os.getpid()
            and pid in [parent for _, parent in processes]), 0)
        self.assertEqual(words, "")
        self.assertIn(f"{self.folder}/child", " ".join(self.commands()))

    def run_without_supervisor(self, script, number):
        """A shell that goes on once its supervisor has got the signal. Returns status and words."""
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", "--I1=64,1,64", "--D1=64,1,64", "--quiet",
                 f"--out={self.folder / 'out.%p'}", "--", "sh", "-c", f"echo $$; read word; {script}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as assay:
            first = assay.stdout.readline().strip()
            self.wait_until(lambda: len(self.collectors()) == 2)
            supervisor = self.supervisor(self.collectors())
            os.kill(supervisor, number)
            assay.stdin.write("word\n")
            assay.stdin.close()
            if number == signal.SIGSTOP:
                heard = select.select([assay.stderr], [], [], 60)[0]
                os.kill(supervisor, signal.SIGCONT)
                said = assay.stderr.readline() if heard else ""
                self.assertIn(f"is stopped: kill -CONT {supervisor} ", said)
            status, words = assay.wait(60), assay.stderr.read()
        events = read_events(self.folder / f"out.{first}")
        self.assertEqual(events.totals(), events.summary)
        return status, words

    def test_killed_supervisor_is_told_where_profiles_are_missing(self):
        """Images that begin without it run to their end, even if they fill their buffers."""
        loop = "i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done"
        status, words = self.run_without_supervisor(f"({loop}); (:); exit 3", signal.SIGKILL)
        self.assertEqual(status, 125)
        self.assertEqual(words, "assay: the process that starts the collectors of children was ended "
                         "by signal 9 (Killed): the profiles of up to 2 images of the program are "
                         "missing\n")

    def test_killed_supervisor_without_children(self):
        self.assertEqual(self.run_without_supervisor("exit 3", signal.SIGKILL), (3, ""))

    def test_stopped_supervisor(self):
        self.assertEqual(self.run_without_supervisor("(:); exit 3", signal.SIGSTOP), (3, ""))
        self.assertEqual(len(self.files()), 2)

    def test_profile_that_cannot_be_written_does_not_cost_those_of_children(self):
        """assay waits for them as it does otherwise, and ends with 125 then."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", "--quiet", f"--out={self.folder / 'out.%p'}", "--", "sh",
                 "-c", "exec 3<&0; read word <&3 & echo $$ $!; wait; exit 3"],
                env={**os.environ, "TMPDIR": str(elsewhere)}, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as assay:
            first, child = assay.stdout.readline().split()
            (self.folder / f"out.{first}").symlink_to("/dev/full")
            # Of assay, the supervisor, and the child.
            self.wait_until(lambda: len(self.collectors()) == 3)
            collector = self.leaf(self.collectors())
            os.kill(collector, signal.SIGSTOP)
            try:
                assay.stdin.close()
                said = assay.stderr.readline()
                with self.assertRaises(subprocess.TimeoutExpired):
                    assay.wait(0.3)
                self.assertFalse((self.folder / f"out.{child}").exists())
            finally:
                os.kill(collector, signal.SIGCONT)
            self.assertEqual((assay.wait(60), assay.stderr.read()), (125, ""))
        self.assertRegex(said, r"^assay: cannot write '.*No space left on device")
        read_events(self.folder / f"out.{child}")
        self.assertEqual(len(list(elsewhere.iterdir())), 1)

    # --- What is not followed

    def test_trace_children_no(self):
        for command in ("/bin/echo child; exit 3", "exec /bin/echo instead"):
            with self.subTest(command):
                for path in self.folder.glob("out.*"):
                    path.unlink()
                self.check_same(["sh", "-c", command], "--trace-children=no")
                self.assertEqual(self.commands(), [f"sh -c {command}"])
                self.assertRegex(next(iter(self.files())), r"^out\.\d+$")

    def test_status_of_what_is_not_followed(self):
        """exit(2) of its only thread ends a process with that status."""
        self.check_same([PROGRAMS / "kernel", "strict_mode"], "--trace-children=no")

    def check_native(self, path, reason):
        words = self.check_same(["sh", "-c", f"{path}; {path}; {path}; echo $?"])
        about = [line for line in words.splitlines() if str(path) in line]
        self.assertEqual(len(about), 1, words)
        self.assertIn(reason, about[0])
        self.assertIn("natively", about[0])
        self.assertFalse(any(command == str(path) for command in self.commands()))

    def test_32_bit_program(self):
        path = self.folder / "small"
        path.write_bytes(small_program(7))
        path.chmod(0o755)
        try:
            if run([path]).returncode != 7:
                self.skipTest("this kernel runs no 32-bit programs")
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        self.check_native(path, "32-bit")

    def privileged(self):
        path = self.folder / "privileged"
        path.write_bytes(Path("/bin/true").read_bytes())
        os.chown(path, 4242, 0)
        path.chmod(0o4755)
        return path

    @unittest.skipUnless(os.geteuid() == 0, "needs a file of another user")
    def test_set_user_id(self):
        self.folder.chmod(0o755)
        self.check_native(self.privileged(), "set-user-ID")

    @unittest.skipUnless(os.geteuid() == 0, "needs a file of another user")
    def test_first_program_is_set_user_id(self):
        self.folder.chmod(0o755)
        path = self.privileged()
        path.write_bytes(Path("/usr/bin/id").read_bytes())
        path.chmod(0o4755)
        script = self.script("script", f"#!{path}\n")
        for words in ([path, "-u"], [script]):
            ran = run([support.ASSAY, "--plugin=cache", f"--out={self.folder / 'out'}", "--", *words])
            alone = run(words)
            self.assertEqual((ran.returncode, ran.stdout), (alone.returncode, alone.stdout))
            self.assertIn("privileged: it is set-user-ID; it runs natively", ran.stderr)
            self.assertFalse((self.folder / "out").exists())

    @unittest.skipUnless(os.geteuid() == 0, "giving files capabilities needs root")
    def test_file_capabilities_give_root_nothing(self):
        path = self.folder / "capable"
        path.write_bytes(Path("/bin/true").read_bytes())
        path.chmod(0o755)
        # linux/capability.h, struct vfs_cap_data: revision 2, effective, CAP_NET_RAW.
        try:
            os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        except OSError as error:
            self.skipTest(f"this file system or container gives files no capabilities: {error}")
        ran = self.profile(["sh", "-c", f"{path}; true"], out="out.%p")
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))
        self.assertNotIn("natively", ran.stderr)
        first = self.profile([path], "--quiet", out="first")
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        self.assertGreater(read_events(self.folder / "first").summary[0], 10000)

    @unittest.skipUnless(os.geteuid() == 0, "needs a file of another user")
    def test_script_for_a_set_user_id_interpreter(self):
        self.folder.chmod(0o755)
        path = self.script("script", f"#!{self.privileged()}\n")
        words = self.check_same(["sh", "-c", f"{path}; true"])
        self.assertIn("privileged: it is set-user-ID", words)

    def test_small_stack(self):
        """assay needs more stack than many programs do."""
        for kilobytes in (100, 160):
            out = self.folder / f"out.{kilobytes}"
            script = f'ulimit -s {kilobytes}; exec "$@"'
            ran = run(["sh", "-c", script, "sh", ASSAY, "-q", "--plugin=cache", "--contexts",
                       f"--out={out}", "--", "sh", "-c", "ulimit -s; /bin/true; exit 3"])
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (3, f"{kilobytes}\n", ""))
            self.assertGreater(read_events(out).summary[0], 10000)

    # --- All of them together

    def run_of_three(self, *options):
        """A shell that runs two programs, one of them twice."""
        ran = self.profile(["sh", "-c", f"{WORK}; {WORK}; /bin/true; exit 0"], *options, out="out")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stderr

    def test_overview(self):
        said = self.run_of_three()
        self.assertEqual(len(re.findall(r"^assay: ", said, re.MULTILINE)), 1, said)
        lines = said.splitlines()
        header = next(i for i, line in enumerate(lines) if line.endswith("  command"))
        column = lines[header].index("command")
        rows = lines[header + 1:header + 5]
        self.assertEqual([row[column:][:6].rstrip() for row in rows],
                         ["sh -c", "  work", "  work", "  true"], said)
        files = self.files("out*")
        for row in rows:
            count, file = row[:column].split()[1:]
            self.assertEqual(int(count.replace(",", "")), files[Path(file).name].summary[0])
        total = sum(events.summary[0] for events in files.values())
        self.assertIn(f"{total:,}  100.0 %      4  in total\n", said)
        self.assertRegex(said, r"%      2  work\n")
        self.assertEqual(self.run_of_three("-q"), "")

    def test_summaries_of_all(self):
        said = self.run_of_three("--verbose", "--plugin=cache")
        self.assertEqual(len(re.findall("I   refs:", said)), 4)
        self.assertIn("in total", said)
        said = self.run_of_three("--plugin=cache")
        self.assertNotIn("I   refs:", said)

    def test_one_process_that_executes_other_programs(self):
        """It has as many profiles as programs, which are told of as those of several processes."""
        chain = ["nice", "-n", "0", "sh", "-c", f"exec env {WORK}"]
        ran = self.profile(chain, out="out")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(" 1 process has run 4 programs, 4 in all\n", ran.stderr)
        rows = re.findall(r"^==\d+== +[\d,]+  \S*/out(?:\.\d)? +(\w+)", ran.stderr, re.MULTILINE)
        self.assertEqual(rows, ["nice", "sh", "env", "work"])
        files = self.files("out*")
        self.assertEqual(sorted(files), ["out", "out.1", "out.2", "out.3"])
        total = sum(events.summary[0] for events in files.values())
        self.assertIn(f"{total:,}  100.0 %      4  in total\n", ran.stderr)
        self.assertIn(f"{total:,}", self.tool("annotate", "index.out"))
        self.tool("merge", "-o", "sum", "index.out")
        self.assertEqual(read_events(self.folder / "sum").summary[0], total)
        self.assertNotIn("I   refs:", self.profile(chain, plugin="cache", out="out").stderr)
        said = self.profile(chain, "--verbose", plugin="cache", out="out").stderr
        self.assertEqual(len(re.findall("I   refs:", said)), 4)
        # A single program is told of by its summary, and has no index.
        (self.folder / "index.out").unlink()
        said = self.profile([WORK], plugin="cache", out="out").stderr
        self.assertEqual(len(re.findall("I   refs:", said)), 1)
        self.assertNotIn("in all", said)
        self.assertFalse((self.folder / "index.out").exists())

    def tool(self, *words):
        result = run([ASSAY, *words], cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_index_in_place_of_files(self):
        self.run_of_three()
        files = self.files("out*")
        self.assertEqual(len(files), 4)
        total = sum(events.summary[0] for events in files.values())
        for names in (["index.out"], sorted(files), ["index.out", *files], ["index.out", "index.out"]):
            self.tool("merge", "-o", "sum", *names)
            self.assertEqual(read_events(self.folder / "sum").summary[0], total, names)
        self.assertIn(f"{total:,}", self.tool("annotate", "index.out"))
        self.assertIn("no change reaches", self.tool("diff", "index.out", "sum"))
        self.assertIn("no change reaches", self.tool("diff", "sum", "index.out"))
        self.tool("report", "--diff", "-o", "page.html", "index.out", "index.out")
        self.tool("report", "-o", "page.html", "index.out")
        self.tool("annotate", "--diff", "index.out", "sum")
        # From another folder, and where the whole folder has been moved to.
        moved = self.folder.with_name(self.folder.name + "-moved")
        shutil.move(self.folder, moved)
        self.addCleanup(shutil.rmtree, moved)
        self.folder = moved.parent
        self.assertIn(f"{total:,}", self.tool("annotate", moved / "index.out"))

    def test_an_id_that_several_processes_have(self):
        """One after the other, as where more processes run than there are ids: each keeps its file,
        also of a replay."""
        namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
        again = "echo 299 > /proc/sys/kernel/ns_last_pid; "
        if run([*namespace, "sh", "-c", again]).returncode != 0:
            self.skipTest("needs a PID namespace of its own, and the right to choose ids in it")
        work = PROGRAMS / "work"
        script = f"{again} {work}; {again} {work} more; {again} (exec {work} 1 2 3); true"
        trace = self.folder / "trace"
        out = self.folder / "events"
        for command in (["--plugin=cache", "--cache-sim=no", "-o", out, "--", "sh", "-c", script],
                        ["record", "-q", "-o", trace, "--", "sh", "-c", script],
                        ["replay", "--plugin=cache", "--cache-sim=no", "-o", out, trace]):
            for path in self.folder.glob("*events*"):
                path.unlink()
            result = run([*namespace, ASSAY, *command])
            self.assertEqual(result.returncode, 0, result.stderr)
            if command[0] == "record":
                continue
            index = json.loads((self.folder / "index.events").read_text())["profiles"]
            files = [profile["file"] for profile in index]
            ids = [profile["pid"] for profile in index]
            self.assertEqual(len(set(files)), len(files), files)
            self.assertEqual(ids.count(300), 4, ids)  # a shell is one of them, until it executes
            for profile in index:
                counts = read_events(self.folder / profile["file"]).summary
                self.assertEqual(counts, profile["counts"], profile["file"])
                if profile["pid"] == 300:
                    self.assertEqual(index[profile["parent"]]["command"].split()[0], "sh")

    def test_parents_that_end_at_once(self):
        """The kernel then says that another process is the parent. The index still has the right one."""
        folder = support.temporary_folder(self)
        ran = profile(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (true & ); done; sleep 1"], "-q",
                      out=folder / "out")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        profiles = json.loads((folder / "index.out").read_text())["profiles"]
        self.assertEqual([number for number, entry in enumerate(profiles) if "parent" not in entry], [0])

    def test_whose_the_counts_are(self):
        self.run_of_three()
        by_program = {}
        for events in self.files("out*").values():
            program = Path(events.command.split()[0]).name
            by_program[program] = by_program.get(program, 0) + events.summary[0]
        self.tool("merge", "--by=program", "-o", "sum", "index.out")
        for file in ("index.out", "sum"):
            said = self.tool("annotate", "--by=program", "--threshold=0", file)
            rows = dict(reversed(row) for row in
                        re.findall(r"^ *([\d,]+) +\([\d.]+%\)  (\w+)$", said, re.MULTILINE))
            self.assertEqual({name: int(count.replace(",", "")) for name, count in rows.items()},
                             by_program, said)
        said = self.tool("annotate", "--by=process", "--threshold=0", "index.out")
        self.assertRegex(said, rf"\(100.0%\)  \d+ sh -c .*\n( .*\)    \d+ ({WORK}|/bin/true)\n){{3}}")
        refused = run([ASSAY, "merge", "--by=rank", self.folder / "index.out"])
        self.assertEqual(refused.returncode, 125)
        self.assertIn("no file belongs to a process under mpirun", refused.stderr)

    def test_damaged_index(self):
        self.run_of_three()
        whole = (self.folder / "index.out").read_text()
        for text, why in ((whole[:-20], "not an index"), (whole.replace("index\": 1", "index\": 7"), "version 7"),
                          (whole.replace('"parent":0', '"parent":9'), "makes no sense")):
            (self.folder / "index.out").write_text(text)
            refused = run([ASSAY, "annotate", self.folder / "index.out"])
            self.assertEqual(refused.returncode, 125)
            self.assertIn(why, refused.stderr)

    @support.needs("mpirun", "mpicc")
    def test_ranks(self):
        source = self.script("ring.c", """#include <mpi.h>
            static volatile long sum;
            void work(int rank) { for (int i = 0; i < 1000 * (rank + 1); ++i) sum += i; }
            int main(int argc, char** argv) {
                int rank = 0, all = 0;
                MPI_Init(&argc, &argv);
                MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                work(rank);
                MPI_Reduce(&rank, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
                MPI_Finalize();
                return rank == 0 && all != 1;
            }""")
        program = self.folder / "ring"
        built = run(["mpicc", "-O1", "-g", "-fno-inline", source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for options in ([], ["--out=of.gz"]):
            ran = run(["mpirun", "--oversubscribe", "-n", "2", ASSAY, "-q", f"--plugin={COUNTS}",
                       *options, "--", program], cwd=self.folder, env=environment)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        names = [f"assay.out.rank{rank}" for rank in range(2)]
        self.assertEqual(sorted(path.name for path in self.folder.glob("assay.out*")), names)
        self.assertEqual(sorted(path.name for path in self.folder.glob("of*")),
                         [f"of.rank{rank}.gz" for rank in range(2)])
        counts = [read_events(self.folder / name).functions["work"][0] for name in names]
        self.assertEqual(counts, sorted(counts))
        self.tool("merge", "--by=rank", "-o", "sum", *names)
        self.assertEqual(read_events(self.folder / "sum").functions["work"][0], sum(counts))
        said = self.tool("annotate", "--by=rank", "--lines", "--json", "sum")
        groups = {group["name"]: group for group in json.loads(said)["groups"]}
        for rank in range(2):
            lines = groups[str(rank)]["lines"]
            own = sum(line["counts"][0] for line in lines if line["function"] == "work")
            self.assertEqual(own, counts[rank])
        self.check_traces_of_ranks(program, environment, counts)

    def check_traces_of_ranks(self, program, environment, counts):
        """One for each, which are replayed, swept and merged as files of ranks are."""
        ran = run(["mpirun", "--oversubscribe", "-n", "2", ASSAY, "record", "-q", "--", program],
                  cwd=self.folder, env=environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for rank, count in enumerate(counts):
            trace = f"assay.trace.rank{rank}"
            self.tool("replay", "-q", f"--plugin={COUNTS}", "-o", f"again.{rank}", trace)
            self.assertEqual(read_events(self.folder / f"again.{rank}").functions["work"][0], count)
            self.tool("sweep", "-q", "--plugin=cache", "--D1=16K,8,64..32K,8,64", "-o",
                      f"sweep.{rank}", trace)
        self.tool("merge", "--by=rank", "-o", "again", *(f"again.{rank}" for rank in range(2)))
        self.assertEqual(read_events(self.folder / "again").functions["work"][0], sum(counts))
        points = [f"sweep.{rank}/points/1/assay.out" for rank in range(2)]
        self.tool("merge", "--by=rank", "-o", "small", *points)
        said = self.tool("annotate", "--by=rank", "--lines", "--json", "small")
        self.assertEqual({group["name"] for group in json.loads(said)["groups"]},
                         {str(rank) for rank in range(2)})

    # --- Names of the files

    def test_name_without_a_process_id(self):
        self.check_same(["sh", "-c", "/bin/echo a; exec /bin/echo b"], out="out")
        names = sorted(re.sub(r"\d\d+", "PID", name) for name in self.files("out*"))
        self.assertEqual(names, ["out", "out.1", "out.PID"])
        self.assertEqual(read_events(self.folder / "out").command, "/bin/echo b")

    def test_name_that_compresses(self):
        self.check_same(["sh", "-c", "/bin/echo a; exit 0"], out="out.gz")
        names = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(names[0], "index.out")
        self.assertRegex(names[1], r"^out\.\d+\.gz$")
        self.assertEqual(names[2:], ["out.gz"])

    def test_device_stays_what_it_is(self):
        self.assertEqual(profile(["sh", "-c", "/bin/true; exit 0"], plugin=COUNTS).returncode, 0)
        self.assertEqual(list(Path("/dev").glob("null.*")), [])

    # --- What a process sees of itself

    def test_own_name_and_environment(self):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("LD_", "MALLOC_"))}
        script = ("tr '\\0' ' ' < /proc/$$/cmdline; echo; cat /proc/$$/comm; "
                  "env | grep -c ASSAY; LD_LIBRARY_PATH=/nonexistent MALLOC_ARENA_MAX=1 env | "
                  "grep -E '^(LD_|MALLOC_)'")
        self.check_same(["sh", "-c", f"{script}; sh -c \"{script.replace('$', chr(92) + '$')}\""],
                        env=environment)

    def test_descriptors_stay_the_program_s(self):
        """Whatever a program does to all descriptors does not reach the driver's."""
        close_all = ("import os\nfor fd in range(3, 2000):\n try:\n  os.close(fd)\n"
                     " except OSError:\n  pass\nos.closerange(3, 5000)\n"
                     "raise SystemExit(os.spawnlp(os.P_WAIT, 'true', 'true'))")
        self.check_same(["/usr/bin/python3", "-c", close_all])
        self.assertIn("true", self.commands())

    def test_descriptors_shared_with_a_child(self):
        """With CLONE_FILES alone: each image has its file, and none waits for another's end."""
        self.check_same([PROGRAMS / "descriptors", "shared_apart"])
        self.assertEqual(len(self.files()), 7)
        for events in self.files().values():
            self.assertFalse([line for line in events.remarks if "incomplete" in line])

    def test_ctrl_c_reaches_the_program_only(self):
        """A signal to the group reaches all; the collectors write their files nevertheless."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", f"--out={self.folder / 'out.%p'}", "--", "sh", "-c",
                 f"trap 'echo caught' INT; /bin/cat {pipe}; exit 4"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                start_new_session=True) as assay:
            with pipe.open("w"):  # cat has opened it, too
                self.wait_until(lambda: len(self.collectors()) >= 3)
                os.killpg(assay.pid, 2)
                output, words = assay.communicate(timeout=300)
        self.assertEqual((assay.returncode, set(output.splitlines())), (4, {"caught"}), words)
        self.assertIn(f"/bin/cat {pipe}", self.commands())


if __name__ == "__main__":
    unittest.main()
