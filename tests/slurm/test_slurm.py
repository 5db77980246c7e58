#!/usr/bin/env python3
"""assay sweep --slurm, on a Slurm that is started for it (tests/slurm/run)."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

import support
from support import ASSAY, PROGRAMS, run

WORK = PROGRAMS / "work"
OTHERS = ["--I1=32768,8,64", "--LL=8388608,16,64"]
EIGHT = ["--D1=16K,8,64..128K,8,64", "--rep=once,iterations"]
NODES = ("node1", "node2")

CONFIGURATION = """ClusterName=assay
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=17817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
SlurmdTimeout=10
KillWait=2
MinJobAge=2
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port=17818 CPUs=1 RealMemory=500
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port=17819 CPUs=1 RealMemory=500
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""


class Cluster:
    """Processes in the foreground, which close() ends."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="assay-slurm-"))
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(host=os.uname().nodename.split(".")[0], folder=self.folder))
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.daemons = {}
        self.start("munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                   f"--key-file={key}", f"--pid-file={self.folder}/munged.pid",
                   f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed")
        self.wait("munge.socket", lambda: (self.folder / "munge.socket").exists())
        self.start("slurmctld", "slurmctld", "-D")
        for node in NODES:
            self.start_node(node)

    def start(self, name, *words):
        with (self.folder / f"{name}.out").open("ab") as log:
            self.daemons[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                                  stderr=log, start_new_session=True)

    def start_node(self, node):
        self.start(node, "slurmd", "-D", "-N", node)

    def kill_node(self, node):
        """As if the machine went down: with all that runs on it."""
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()
        for process in self.steps(node):
            os.kill(process, signal.SIGKILL)

    def steps(self, node) -> list[int]:
        """The processes of jobs on a node, the children of their slurmstepd too."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                environment = (path / "environ").read_bytes().split(b"\0")
                command = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"SLURMD_NODENAME={node}".encode() in environment:
                found.append(int(path.name))
            elif command[0].startswith(b"slurmstepd") and self.spool(path, node):
                found.append(int(path.name))
        return found

    def spool(self, process, node) -> bool:
        try:
            return f"spool-{node}" in os.readlink(process / "cwd")
        except OSError:
            return False

    def states(self) -> dict[str, str]:
        lines = run(["sinfo", "--noheader", "--Node", "--format=%N %T"]).stdout.split("\n")
        return dict(line.split() for line in lines if line.strip())

    def wait(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(0.2)

    def wait_for_nodes(self):
        self.wait("idle nodes", lambda: [state.strip("*") for state in self.states().values()] ==
                  ["idle"] * len(NODES))

    def close(self):
        for name in (*NODES, "slurmctld", "munged"):
            if name in self.daemons:
                self.daemons[name].terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.wait_for_nodes()

    def setUp(self):
        self.folder = support.temporary_folder(self)

    def words(self, *options, program=(WORK,)):
        return [ASSAY, "sweep", "--plugin=cache", *OTHERS, *options, "--", *program]

    def runs(self) -> list[str]:
        path = self.folder / "runs"
        return path.read_text().split() if path.exists() else []

    def waiting(self):
        """A program that notes that it runs, and ends once there is a file `go`."""
        return ["sh", "-c", "echo run >> runs; until [ -e go ]; do sleep 0.1; done"]

    def queue(self) -> list[str]:
        return run(["squeue", "--noheader", "--array", "--format=%i %T"]).stdout.splitlines()

    def finished(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "assay.sweep" / "points").iterdir()
                      if path.is_dir() and path.name.isdigit())

    def test_same_table_as_without(self):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SLURM") and name not in ("ENVIRONMENT", "HOSTNAME")}
        local = run(self.words(*EIGHT, "-o", "local"), cwd=self.folder, env=environment)
        slurm = run(self.words(*EIGHT, "-o", "slurm", "--slurm", "--sbatch=--comment=a test",
                               "--sbatch=--mem=100"), cwd=self.folder)
        self.assertEqual((slurm.returncode, slurm.stdout), (0, local.stdout), slurm.stderr)
        self.assertRegex(slurm.stderr, r"^assay: submitted 8 points as job \d+\n$")
        again = run(self.words(*EIGHT, "-o", "slurm", "--slurm"), cwd=self.folder)
        self.assertEqual((again.returncode, again.stdout), (0, local.stdout))
        self.assertNotIn("submitted", again.stderr)

    def test_refused_options_of_sbatch(self):
        result = run(self.words(*EIGHT, "--slurm", "--sbatch=--partition=none"), cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (125, 1), result.stderr)
        self.assertIn("sbatch refused the points", result.stderr)
        self.assertIn("partition", result.stderr)

    def test_failing_point_is_submitted_again(self):
        script = ("echo run >> runs\n"
                  "if mkdir first 2> /dev/null || [ -e failing ]; then\n"
                  "  echo why; exit 3\nfi")
        words = self.words("--D1=16K,8,64..64K,8,64", "--trace-children=no", "--slurm",
                           program=["sh", "-c", script])
        result = run(words, cwd=self.folder)
        self.assertEqual((result.returncode, len(self.runs())), (0, 4), result.stderr)
        self.assertRegex(result.stderr, r"point \d of 3 \(--D1=\d+K,8,64\) has failed: its exit status is 3; "
                                        r"submitting it again \(1 of 2\)\n")
        # For good.
        (self.folder / "failing").touch()
        result = run([*words[:2], "--retries=1", "-o", "other", *words[2:]], cwd=self.folder)
        self.assertEqual((result.returncode, len(self.runs())), (1, 4 + 6), result.stderr)
        for point in (1, 2, 3):
            self.assertRegex(result.stderr, rf"point {point} of 3 \(.*\) has failed: its exit status is 3; see ")
            self.assertIn("why", (self.folder / f"other/points/{point}.log").read_text())
        self.assertIn("assay: 3 of 3 points have failed", result.stderr)

    def test_interrupted_sweep_waits_for_its_jobs(self):
        words = self.words("--D1=16K,8,64..64K,8,64", "--trace-children=no", "--slurm",
                           program=self.waiting())
        for end in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE, text=True)
            self.cluster.wait("two runs", lambda: len(self.runs()) >= 2)
            time.sleep(3)
            process.send_signal(end)
            errors = process.communicate(timeout=30)[1]
            self.assertEqual(process.returncode, -end)
            if end == signal.SIGINT:
                self.assertRegex(errors, r"interrupted: 0 of 3 points are finished, and the others continue; "
                                         r"the same command waits for them, scancel \d+ ends them")
        self.assertEqual(len(self.queue()), 3)
        (self.folder / "go").touch()
        result = run(words, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(self.runs()), 3)

    def test_cancelled_task_is_submitted_again(self):
        words = self.words("--D1=16K,8,64..64K,8,64", "--trace-children=no", "--slurm",
                           program=self.waiting())
        process = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.cluster.wait("two runs", lambda: len(self.runs()) >= 2)
        running = next(line.split()[0] for line in self.queue() if line.endswith("RUNNING"))
        run(["scancel", running])
        self.cluster.wait("three runs", lambda: len(self.runs()) >= 3)
        (self.folder / "go").touch()
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"point \d of 3 .* its task has left the queue without a result .*; "
                                 r"submitting it again \(1 of 2\)")
        self.assertEqual(len(self.runs()), 4)

    def test_node_that_goes_down(self):
        words = self.words(*EIGHT, "--trace-children=no", "--slurm", "--sbatch=--no-requeue",
                           program=self.waiting())
        process = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.cluster.wait("two runs", lambda: len(self.runs()) >= 2)
        self.cluster.kill_node("node2")
        (self.folder / "go").touch()
        try:
            errors = process.communicate(timeout=180)[1]
        finally:
            self.cluster.start_node("node2")
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"its task has left the queue without a result .*; submitting it again")
        self.assertEqual(self.finished(), [str(point) for point in range(1, 9)])
        self.assertEqual(len(self.runs()), 9)
        self.assertEqual(list((self.folder / "assay.sweep/points").glob("*.failed")), [])
        self.cluster.wait_for_nodes()


if __name__ == "__main__":
    unittest.main()
