#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes event-sets.toml: random sets of contracts with windows, whose events are coordinated.

    python3 scenarios/event-sets.py >scenarios/event-sets.toml

All contracts of a set have one budget C and one period T = k C. By the theorem of DWCS [1] none loses more than its
x of y periods if sum (1 - x/y) is no more than the slots of C that a period has: of the 80 % that contracts may have,
less 1 ms, as admission counts them. Together they want more than there is, sum C/T > 1. Of three contracts two are sinks
whose frames take longer than they get: they never sleep, and have an event all the time. Every second set has a task
server.

[1] R. West, C. Poellabauer, Analysis of a Window-Constrained Scheduler for Real-Time and Best-Effort Packet
    Streams, RTSS 2000.
"""

import random

SETS = 50
MOST = 12
SUPPLY = 0.8
HELD_MS = 1

HEADER = '''title = "Random sets of contracts with events, none of which is hurt"
description = """
Sets of contracts with windows that want more than the CPU, and that DWCS serves all the same: none loses more than
it tolerates. Two of three are sinks with an event all the time, who may run in the place of others by ECalls' rules
2 to 5; that must violate nobody's window.

Written by event-sets.py.
"""
cpus = 1
duration_s = 4
warmup_s = 1

[contracts]
event_rules = [2, 3, 4, 5]

[programs.batch]
class = "/"
kind = "loop"
count = 2
'''


def drawn(rng):
    """C, k, and x, y and whether it is work-conserving of each contract."""
    while True:
        k = rng.randint(3, 10)
        budget = rng.choice([2, 3, 4])
        slots = int((SUPPLY * k * budget - HELD_MS) / budget)
        contracts = []
        while len(contracts) < MOST:
            y = rng.randint(2, 6)
            x = rng.randint(1, y - 1)
            if sum(1 - x / y for x, y, _ in contracts) + 1 - x / y > slots:
                break
            contracts.append((x, y, rng.random() < 0.5))
        if slots > 0 and len(contracts) > k:
            return budget, k, contracts


def kind_of(p):
    return "loop" if p % 3 == 0 else "sink"


def main():
    print(HEADER)
    sets = {}
    for number in range(1, SETS + 1):
        rng = random.Random(number)
        sets[number] = drawn(rng)
    most = max(len(contracts) for _, _, contracts in sets.values())
    names = [f"{kind_of(p)}-{p:02}" for p in range(1, most + 1)]
    for name in names:
        work = "events_per_s = 20\nwork_ms = 100\n" if "sink" in name else ""
        print(f'[programs.{name}]\nclass = "/"\nkind = "{name[:4]}"\ncount = 0\n{work}')
    for number, (budget, k, contracts) in sets.items():
        wanted = len(contracts) / k
        least = sum(1 - x / y for x, y, _ in contracts) / k
        print(f"# {wanted:.0%} wanted, {least:.0%} of it to be served.\n[cases.set-{number:02}]")
        if number % 2 == 0:
            print("contracts.task_server = true")
        for p, (x, y, more) in enumerate(contracts, 1):
            kind = kind_of(p)
            print(f"programs.{kind}-{p:02} = {{ count = 1, contract = {{ kind = \"dwcs\", budget_ms = {budget}, "
                  f"period_ms = {budget * k}, tolerate = \"{x}/{y}\""
                  f"{', work_conserving = true' if more else ''}{', events = true' if kind == 'sink' else ''} }} }}")
        print()
    for name in names:
        print(f'[[expect]]\nmeasure = "violations"\nprogram = "{name}"\nscheduler = "andante-dwcs"\nmax = 0\n')


main()
