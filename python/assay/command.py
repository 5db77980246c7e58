"""Runs and sweeps."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from .profile import load
from .profiler import Profiler, Server
from .tool import Error, call, find


def _machine(folder, machine):
    """A machine file. YAML includes JSON."""
    if not isinstance(machine, dict):
        return machine
    path = Path(folder) / "machine.yaml"
    path.write_text(json.dumps(machine))
    return path


def _changes(changes):
    """--set for each field of a machine."""
    return [f"--set={key}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
            for key, value in changes.items()]


def _options(folder, options):
    """A configuration file: it knows which options take yes and which nothing."""
    values = {}
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "yes" if value else "no"
        values[name.replace("_", "-")] = value if isinstance(value, (int, float)) else os.fspath(value)
    path = Path(folder) / "options.yaml"
    path.write_text(json.dumps(values))
    return f"--config={path}"


def run(program, plugin="cache", out=None, stdout=None, stderr=None, env=None, cwd=None, **options):
    """Profiles a program, or replays a trace, and returns the profile.

    `program` is a list of words, or the name of a trace file. `plugin` is the name of a profiler,
    several with commas, or a class derived from assay.Profiler. `out` keeps the events file there.
    Options of assay and of profilers are keywords, with _ for -: contexts=True, D1="32K,8,64".
    `machine` may be a dictionary, as in a machine file, and `set` one of changes to it:
    set={"L2.ways": 8}. The others are those of subprocess.run().
    The program's exit status is in the profile's `status`."""
    replays = isinstance(program, (str, os.PathLike))
    with tempfile.TemporaryDirectory(prefix="assay.") as folder:
        server = None
        if isinstance(plugin, type) and issubclass(plugin, Profiler):
            server = Server(plugin, Path(folder) / "socket")
            options["python_socket"] = server.path
            plugin = "python"
        changes = _changes(options.pop("set", {}))
        options["machine"] = _machine(folder, options.get("machine"))
        out = Path(out).absolute() if out is not None else Path(folder) / "profile"
        words = [find(), "replay" if replays else "run", "--quiet", _options(folder, options),
                 f"--plugin={plugin}", f"--out={out}", *changes]
        words += [os.fspath(program)] if replays else ["--", *map(os.fspath, program)]
        # The program's own messages go where the caller wants them; assay's are needed here.
        with tempfile.TemporaryFile() as messages:
            try:
                ran = subprocess.run(words, stdout=stdout, stderr=stderr or messages, env=env, cwd=cwd)
            finally:
                if server:
                    server.close()
            messages.seek(0)
            said = messages.read().decode(errors="replace").strip()
        index = out.with_name("index." + out.name)
        found = index if index.exists() else out
        if server and server.problem:
            raise server.problem
        if not found.exists():
            said = said.removeprefix("assay: ").removeprefix(f"{folder}/options.yaml:1: ")
            raise Error(said or f"assay ended with status {ran.returncode}")
        profile = load(found)
        profile.status, profile.messages = ran.returncode, said
        return profile


def sweep(program, plugin="cache", out=None, **options):
    """Runs a program or replays a trace for every combination of values, and returns a data frame: a
    row for each, with the values and the total of each event. A list gives several values:
    sweep("x.trace", machine="zen4", set={"L2.replacement": ["lru", "srrip"]}). `out` keeps the folder
    of the results."""
    replays = isinstance(program, (str, os.PathLike))
    with tempfile.TemporaryDirectory(prefix="assay.") as folder:
        words = ["sweep", "--quiet", "--format=json", f"--plugin={plugin}",
                 f"--out={out or Path(folder) / 'sweep'}", *_changes(options.pop("set", {}))]
        if "machine" in options:
            options["machine"] = _machine(folder, options["machine"])
        for name, values in options.items():
            name = "--" + name.replace("_", "-")
            if values is True:
                words.append(name)
            else:
                values = values if isinstance(values, (list, tuple)) else [values]
                words += [f"{name}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for v in values]
        words += [os.fspath(program)] if replays else ["--", *map(os.fspath, program)]
        found = json.loads(call(words))
    return pd.DataFrame([{**point["options"], **point["counts"]}
                         for point in found["points"] if point["finished"]])
