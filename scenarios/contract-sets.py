#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes contract-sets.toml: random sets of periodic contracts.

    python3 scenarios/contract-sets.py >scenarios/contract-sets.toml

Utilisations are drawn by UUniFast [1] until each is from 4 % to 60 %, periods from a list of those
that media and control loops have. The work of each frame is 95 % of the budget, less what waking up,
the system calls and the machine's own interrupts take, 60 µs.

Four virtual CPUs share one instruction budget: the same instructions take four times as long, though
not always, so work is CPU time by the players' clocks, and four times 60 µs are left of a budget. And
each stands still while others have their turn, up to 120 µs, with its clock going on: twice that is left
too, for the beginning and the end of a frame.

Contracts ask in the order of their utilisation, the largest first. 95 % of four CPUs, with 5 % left, is
all that there is: the seeds of those are the first whose sets `andante admit` finds places for.

[1] E. Bini, G. C. Buttazzo, Measuring the Performance of Schedulability Tests, Real-Time Systems
    30(1-2), 2005.
"""

import random

PERIODS_MS = [5, 8, 10, 12.5, 16, 20, 25, 32, 40, 50, 80, 100]
LEAST_BUDGET_MS = {1: 0.15, 4: 1}
# Of a budget, for waking up, system calls, interrupts, and other virtual CPUs' turns.
LEFT_MS = {1: 0.06, 4: 0.48}
# Name: CPUs, part of them that is promised, contracts, seed.
CASES = {
    "one-50-a": (1, 0.50, 4, 1),
    "one-75-a": (1, 0.75, 5, 2),
    "one-95-a": (1, 0.95, 5, 3),
    "one-95-b": (1, 0.95, 8, 4),
    "four-50-a": (4, 0.50, 8, 5),
    "four-75-a": (4, 0.75, 10, 6),
    "four-95-a": (4, 0.95, 16, 3),
    "four-95-b": (4, 0.95, 12, 38),
}

HEADER = '''title = "Random sets of contracts"
description = """
Periodic players with contracts for 50, 75 and 95 % of one CPU and of four, beside loops that take what is
left. Their frames take a little less CPU time than their budgets, and none is dropped: none may be
later than its deadline by more than 300 µs. Under the stock scheduler `eevdf-deadline` promises the same.

Written by contract-sets.py.
"""
cpus = 1
memory_mib = 256
duration_s = 5
warmup_s = 1

[contracts]
leave_percent = 5

[programs.loop]
class = "/"
kind = "loop"
count = 2
per_cpu = true
'''


def utilisations(rng, n, total):
    while True:
        left, parts = total, []
        for i in range(n - 1, 0, -1):
            rest = left * rng.random() ** (1 / i)
            parts.append(left - rest)
            left = rest
        parts.append(left)
        if all(0.04 <= u <= 0.6 for u in parts):
            return parts


def main():
    print(HEADER)
    most = max(n for _, _, n, _ in CASES.values())
    for p in range(1, most + 1):
        print(f'[programs.p{p:02}]\nclass = "/"\nkind = "player"\nfps = 100\nwork_ms = 1\ncount = 0\ndrops = false\nwork_by_clock = true\n')
    for name, (cpus, part, n, seed) in CASES.items():
        rng = random.Random(seed)
        print(f"# {part:.0%} of {cpus} CPU{'s' if cpus > 1 else ''}, seed {seed}.")
        print(f"[cases.{name}]\ncpus = {cpus}")
        for p, u in enumerate(sorted(utilisations(rng, n, cpus * part), reverse=True), 1):
            period = rng.choice([ms for ms in PERIODS_MS if u * ms >= LEAST_BUDGET_MS[cpus]])
            # Rounded down, so that the sum stays within what was meant.
            budget = int(u * period * 1000) / 1000
            work = round(budget * 0.95 - LEFT_MS[cpus], 3)
            print(f"programs.p{p:02} = {{ count = 1, fps = {1000 / period:g}, work_ms = {work}, "
                  f"contract = {{ budget_ms = {budget}, period_ms = {period} }}, "
                  f"tuned = {{ budget_ms = {budget}, budget_max_ms = {budget}, period_ms = {period} }} }}")
        print()
    for p in range(1, most + 1):
        print(f'[[expect]]\nmeasure = "lateness_us.max"\nprogram = "p{p:02}"\nmax = 300\n')


main()
