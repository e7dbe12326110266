#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Undoes faults that were mended, one after the other, and sees that each is found (faults.toml).

For each fault bpf/, core/ and the model of the kernel are copied to target/faults/NAME, where NAME.patch undoes
the mend; what the fault's command needs is built there (crates/sim/kernel/Makefile), and nothing of Rust. The
command must fail there, saying what the table says, and pass with nothing undone."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
SCRATCH = ROOT / "target" / "faults"
KERNEL = "crates/sim/kernel"
# A search prints within a second what it finds; a sound tree is searched to the end [s].
TIMEOUT_S = 300


class Failure(Exception):
    """Why a fault could not be tried, and what to do."""


def run(command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def copy(name):
    """A copy of what is compiled, in a folder of its own."""
    tree = SCRATCH / name
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("bpf", "core", "crates/app/include", KERNEL):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("target"))
    return tree


def undo(name, tree):
    patch = FOLDER / f"{name}.patch"
    with open(patch, encoding="utf-8") as text:
        done = run(["patch", "-p1", "-s", "--no-backup-if-mismatch", "-r", "-"], cwd=tree, stdin=text)
    if done.returncode:
        said = done.stdout.strip()
        raise Failure(
            f"{patch.relative_to(ROOT)} does not apply any more ({said}): undo the mend by hand, then "
            f"`git diff bpf core > {patch.relative_to(ROOT)}` and `git checkout bpf core`"
        )


def build(tree, files, jobs=1):
    """What a command needs, in tree/target/sim."""
    targets = [f"../../../target/sim/{file}" for file in files]
    done = run(["make", "-s", f"-j{jobs}", "-C", tree / KERNEL, *targets])
    if done.returncode:
        raise Failure(f"{', '.join(files)}: does not compile in {tree.relative_to(ROOT)}:\n{done.stdout.strip()}")


def needs(command):
    """The file that a command needs of crates/sim/kernel/Makefile."""
    return command.split()[0] if command.startswith("race") else "sched.so"


def carry_out(command, tree, andante):
    """Its exit status, and what it said."""
    file = tree / "target" / "sim" / needs(command)
    words = command.split()
    environment = dict(os.environ)
    if words[0] == "andante":
        environment["ANDANTE_SIM_SHELL"] = str(file)
        words = [str(andante), *words[1:], "--out", str(tree / "out")]
    else:
        words[0] = str(file)
    try:
        done = run(words, cwd=ROOT, env=environment, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return 124, f"not done after {TIMEOUT_S} s"
    return done.returncode, done.stdout


def line_with(text, wanted):
    """The part of what was said that names the fault."""
    lines = [line.strip() for line in text.splitlines() if wanted in line]
    begins = r"^(andante: )?\d+ of \d+ expectations of \S+ failed: (andante: )?"
    return re.sub(begins, "", lines[0])[:110] if lines else ""


def summary(said):
    """What a command found, and the line that replays it; or what it came to."""
    return "\n    ".join(said.strip().splitlines()[-3:] or ["nothing"])


def passes(command, tree, andante):
    """With nothing undone."""
    begin = time.monotonic()
    status, said = carry_out(command, tree, andante)
    if status:
        raise Failure(f"fails though nothing is undone: a fault that is there, to be mended first\n    {summary(said)}")
    return "", time.monotonic() - begin


def tries(name, fault, andante):
    """What was said of the fault, and how long that took [s]."""
    begin = time.monotonic()
    tree = copy(name)
    undo(name, tree)
    build(tree, [needs(fault["find"])])
    status, said = carry_out(fault["find"], tree, andante)
    found = line_with(said, fault["says"])
    if not status:
        raise Failure(
            f"`{fault['find']}` passes though its mend is undone. The model has changed, or the patch undoes nothing "
            f"any more: try more seeds, other --ops, or --hold-at (crates/sim/kernel/race_hold.c)"
        )
    if not found:
        raise Failure(f"it says something else than `{fault['says']}`:\n    {summary(said)}")
    return found, time.monotonic() - begin


def read_table(only):
    with open(FOLDER / "faults.toml", "rb") as file:
        table = tomllib.load(file)
    for name, fault in table.items():
        lacks = {"lost", "mended", "find", "says"} - fault.keys()
        if lacks:
            sys.exit(f"faults: faults.toml: [{name}] lacks {', '.join(sorted(lacks))}")
    unknown = set(only) - table.keys()
    if unknown:
        sys.exit(f"faults: there is no fault {', '.join(sorted(unknown))}; there are {', '.join(table)}")
    return {name: fault for name, fault in table.items() if not only or name in only}


def arguments():
    reads = argparse.ArgumentParser(prog="make faults", description=__doc__.splitlines()[0])
    reads.add_argument("--only", default="", metavar="NAME,…", help="these faults only")
    reads.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at once")
    reads.add_argument("--andante", type=Path, default=ROOT / "target/release/andante", metavar="FILE")
    return reads.parse_args()


def main():
    given = arguments()
    table = read_table([name for name in given.only.split(",") if name])
    if not given.andante.exists():
        sys.exit(f"faults: {given.andante} is not built: `make`, or --andante FILE")
    if not shutil.which("patch"):
        sys.exit("faults: `patch` is not installed: apt install patch")
    found, failed, begin = {}, {}, time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        sound = copy("none")
        commands = list(dict.fromkeys(fault["find"] for fault in table.values()))
        print("building what is sound", file=sys.stderr, flush=True)
        build(sound, sorted({needs(command) for command in commands}), given.jobs)
        # Searches of what is sound go to their ends, and so take longest: they go first.
        waits = {pool.submit(passes, command, sound, given.andante): command for command in commands}
        waits |= {pool.submit(tries, name, fault, given.andante): name for name, fault in table.items()}
        for done, wait in enumerate(as_completed(waits), 1):
            what = waits[wait]
            try:
                found[what] = wait.result()
                came = f"{'found' if what in table else 'passes'} in {found[what][1]:.0f} s"
            except Failure as failure:
                failed[what] = str(failure)
                came = "FAILS"
            print(f"{done}/{len(waits)}  {came:14} {what}", file=sys.stderr, flush=True)
    width = max(map(len, table))
    for name, fault in table.items():
        if name in found:
            said, seconds = found[name]
            print(f"{name:{width}}  {fault['mended']}  {seconds:5.1f} s  {said}")
    count = sum(name in found for name in table)
    print(f"{count} of {len(table)} faults found when undone, in {time.monotonic() - begin:.0f} s")
    for what, why in failed.items():
        print(f"faults: {what}: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
