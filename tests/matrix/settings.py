"""What the matrix runs programs under: profilers with their options, alone and combined, and the
options of a run that matter to all of them."""

import itertools
from dataclasses import dataclass

OPTIONS = {
    "cache": ["", "--cache-sim=no", "--rep=iterations", "--branch-sim=yes",
              "--D1=1024,2,32 --LL=1048576,16,128 --I1=1024,1,64"],
    "branch": ["", "--predictor=bimodal --return-stack=16",
               "--predictor=gshare --indirect-predictor=target-cache", "--predictor=tournament",
               "--predictor=tage --indirect-predictor=ittage --return-stack=4"],
    "bbv": ["", "--interval-size=1000000 --pc-out-file=OUT/pc.%p", "--instr-count-only=yes"],
    "used_bytes": ["", "--instructions=yes", "--cache=16384,4,64 --usage-report=OUT/report.%p"],
    "effective_address": ["", "--address-report=OUT/report.%p --hottest=2"],
    "struct_layout": ["", "--objects --structs=1"],
    "reuse": ["", "--sizes=1K,64K,1M --line-size=32 --miss-curve=OUT/curve.%p"],
    "working_set": ["", "--interval-size=100000 --line-size=4096 --over-time=OUT/sizes.%p"],
    "prefetch": ["", "--D1=1024,2,32"],
    "opcode_mix": ["", "--details=yes"],
    "syscalls": ["", "--callers=no"],
    "classic": ["", "--values=loads", "--values=stores", "--values=results", "--values=operands",
                "--values=loads,stores,results,operands"],
}
# Those that capture in ways of their own are run with each other, the others with the first of them.
BASES = ("cache", "branch", "bbv", "used_bytes", "effective_address", "classic")
TRIPLES = [("cache", "used_bytes", "effective_address"), ("branch", "effective_address", "classic")]

GENERAL = ["", "--dump-instr=yes", "--trace-children=no", "--dump-instr=yes --trace-children=no",
           "--contexts"]
SAMPLES = ["", "1/100", "1k/9k"]
STRETCH = {"1/100": 4_000_000, "1k/9k": 9_000}  # instructions, of which one burst is profiled


@dataclass(frozen=True)
class Setting:
    """The profilers and options of each, where OUT stands for the folder of what a run writes.
    `wholesale` are all words for assay instead, given by the user."""

    options: dict[str, str]
    wholesale: str = ""

    def __str__(self) -> str:
        return self.wholesale or " ".join(filter(None, [",".join(self.options),
                                                        *self.options.values()]))

    def words(self, out: str) -> list[str]:
        """The options for assay, with their files in the folder `out`."""
        text = self.wholesale or " ".join(["--plugin=" + ",".join(self.options),
                                           *self.options.values()])
        words = text.replace("OUT/", out + "/").split()
        return words + ([f"--bb-out-file={out}/vectors.%p"] if "bbv" in self.options else [])


@dataclass(frozen=True)
class Variant:
    general: str = ""
    sample: str = ""

    def __str__(self) -> str:
        return " ".join(self.words())

    def words(self) -> list[str]:
        return self.general.split() + ([f"--sample={self.sample}"] if self.sample else [])

    @property
    def follows_children(self) -> bool:
        return "--trace-children=no" not in self.general

    @property
    def has_instructions(self) -> bool:
        return "--dump-instr=yes" in self.general


REFERENCE = Setting({"cache": "--cache-sim=no"})  # what Ir must be, whoever counts it
VARIANTS = [Variant(general, sample) for general in GENERAL for sample in SAMPLES
            if not (sample and "--contexts" in general)]


def settings() -> list[Setting]:
    single = [Setting({name: options}) for name, each in OPTIONS.items() for options in each]
    pairs = [*itertools.combinations(BASES, 2),
             *((BASES[0], other) for other in OPTIONS if other not in BASES)]
    # All but the one that records all references and replays them.
    most = tuple(name for name in OPTIONS if name != "struct_layout")
    several = [*pairs, *TRIPLES, most]
    return single + [Setting(dict.fromkeys(names, "")) for names in several]


def possible(setting: Setting, variant: Variant) -> bool:
    """An interval of bbv must have two stretches; struct_layout needs the whole run."""
    if "struct_layout" in setting.options and variant.sample:
        return False
    short = "--interval-size=1000000" in setting.options.get("bbv", "")
    return not short or STRETCH.get(variant.sample, 0) * 2 <= 1_000_000


def variant_for(setting: int, program: int) -> Variant:
    """One variant for a setting and a program, by their numbers: along a row of the matrix, as
    along a column, they take turns."""
    number = setting + program
    general, sample = GENERAL[number % len(GENERAL)], SAMPLES[number % len(SAMPLES)]
    return Variant(general, sample if Variant(general, sample) in VARIANTS else "")
