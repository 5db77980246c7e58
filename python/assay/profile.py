"""Events files as data frames: what `assay export --format=json` and `assay diff` tell."""

import json
import os
import re

import pandas as pd

from .tool import call


class Profile:
    """The counts of a profile. Each data frame has a column for each event.

    events: total, unit and description by event. derived: figures over totals.
    functions, lines, instructions (with dump_instr=True), contexts (with contexts=True; counts are
    their own, without those of what they call), objects, types, members, threads (with objects=True
    and so on), series: a data frame for each."""

    def __init__(self, exported):
        events = exported["events"]
        self.names = [event["name"] for event in events]
        self.commands, self.incomplete = exported["commands"], exported["incomplete"]
        self.events = pd.DataFrame(events).set_index("name")[["total", "unit", "description"]]
        self.totals = self.events["total"]
        self.derived = pd.DataFrame(exported["derived"], columns=["name", "formula", "unit", "value"])
        self.derived = self.derived.set_index("name")
        self.status, self.messages = 0, ""  # of the program and of assay, after run()
        objects = [row["path"] for row in exported["objects"]]
        functions, lines, instructions = [], [], []
        for function in exported["functions"]:
            binary = objects[function["binary"]] if "binary" in function else ""
            who = (function["name"], function["file"], binary)
            total = [0] * len(self.names)
            for line in function["lines"]:
                total = [a + b for a, b in zip(total, line["counts"])]
                lines.append((line["file"], line["line"], function["name"], *line["counts"]))
                for instr in line["instructions"]:
                    instructions.append((objects[instr["object"]], int(instr["address"], 16),
                                         function["name"], line["file"], line["line"],
                                         *instr["counts"]))
            functions.append((*who, *total))
        self.functions = self._frame(["function", "file", "binary"], functions)
        self.lines = self._frame(["file", "line", "function"], lines)
        self.instructions = self._frame(["object", "address", "function", "file", "line"], instructions)
        self.contexts = self._numbered(
            ["parent", "function", "calls"],
            [(row["parent"], row["function"], row.get("calls"), *row["counts"])
             for row in exported["contexts"]])
        self._groups = exported["groups"]
        self.series = {series["name"]: self._points(series) for series in exported["series"]}

    def _frame(self, columns, rows):
        return pd.DataFrame(rows, columns=columns + self.names)

    def _numbered(self, columns, rows):
        frame = self._frame(columns, rows)
        frame.index = pd.RangeIndex(1, len(frame) + 1, name="number")
        return frame

    @staticmethod
    def _points(series):
        columns = [series["x"]["name"]] + [column["name"] for column in series["columns"]]
        return pd.DataFrame(series["points"], columns=columns)

    def groups(self, kind):
        """Counts by "object", "type", "member" or "thread"; `parent` is the number of the group that
        a group is in."""
        frame = self._numbered(["kind", "name", "parent"],
                               [(row["kind"], row["name"], row["parent"], *row["counts"])
                                for row in self._groups])
        return frame[frame["kind"] == kind].drop(columns="kind")

    objects = property(lambda self: self.groups("object"))
    types = property(lambda self: self.groups("type"))
    members = property(lambda self: self.groups("member"))
    threads = property(lambda self: self.groups("thread"))

    def with_derived(self, frame):
        """`frame` with a column for each figure of `derived`, calculated for each row."""
        frame = frame.copy()
        for name, row in self.derived.iterrows():
            if name not in frame:
                frame[name] = self.evaluate(row["formula"], frame)
        return frame

    @staticmethod
    def evaluate(formula, frame):
        """A formula over events, such as "D1mr / Dr", for each row; nothing where it divides by 0."""
        if not re.fullmatch(r"[\w\s.()*/+-]+", formula):
            raise ValueError(f"this is no formula over events: {formula!r}")
        names = sorted(frame.columns, key=lambda name: -len(str(name)))
        known = "|".join(re.escape(str(name)) for name in names)
        code = re.sub(rf"(?<![\w.])(?:{known})(?![\w.])", lambda found: f"frame[{found[0]!r}]", formula)
        values = eval(code, {"__builtins__": {}}, {"frame": frame})  # names, numbers and operators
        return values.where(abs(values) != float("inf"))

    def __repr__(self):
        return f"<assay.Profile of {' + '.join(self.commands)}: {dict(self.totals)}>"


def load(*paths):
    """Reads events files, or the index of a run. Counts of several are added up."""
    return Profile(json.loads(call(["export", "--format=json", *map(os.fspath, paths)])))


def compare(old, new):
    """The differences of two events files as a data frame with a row for each function, the largest
    difference of the first event first. For an event X, the columns are X, "X before" and "X after"."""
    found = json.loads(call(["diff", "--format=json", os.fspath(old), os.fspath(new)]))
    rows = []
    for function in found["functions"]:
        row = {"function": function["function"], "file": function["file"]}
        for event, before, after in zip(found["events"], function["old"], function["new"]):
            name = event["name"]
            row.update({name: after - before, f"{name} before": before, f"{name} after": after})
        rows.append(row)
    return pd.DataFrame(rows)
