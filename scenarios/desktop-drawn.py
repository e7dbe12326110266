#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes desktop-drawn.toml: desktops drawn at random.

    python3 scenarios/desktop-drawn.py >scenarios/desktop-drawn.toml

What is to be recognised is behaviour, so it is asked of desktops that nobody has chosen. A film takes
12 to 30 % of the CPU, its first frames up to 62 % of their period, its drawing 6 to 16 %. Other SEEDS
draw others.
"""

import random

SEEDS = [20261125, 101, 201]
DESKTOPS = 10  # of each seed
FRAME_RATES = [23.976, 24, 25, 29.97, 30, 48, 50, 59.94, 60]
GROUP_LENGTHS = [1, 3, 5, 8, 12, 15, 18]
SHORTEST_JOBS_MS = [0.3, 1, 2, 5, 12, 40]

HEADER = '''title = "Desktops drawn at random, with nothing configured"
description = """
The scenario `desktop` with numbers that nobody has chosen. Unlike there, two keys may be so close that one
has to wait for the other's answer.

Written by desktop-drawn.py.
"""
base = "desktop.toml"
base_cases = false
'''


def frames(draw, period_ms):
    """Work of the frames of a group [ms], the first of which is the expensive one."""
    length = draw.choice(GROUP_LENGTHS)
    mean_ms = period_ms * draw.uniform(0.12, 0.3)
    work_ms = []
    for frame in range(length):
        expensive = frame == 0 and length > 1
        times = draw.uniform(1.5, 3) if expensive else draw.choice([0.7, 0.8, 1.1])
        work_ms.append(min(round(mean_ms * times, 1), round(period_ms * 0.62, 1)))
    return work_ms


def desktop(draw, number):
    rate = draw.choice(FRAME_RATES)
    period_ms = 1000 / rate
    work_ms = frames(draw, period_ms)
    display_ms = round(min(5.5, period_ms * draw.uniform(0.06, 0.16)), 1)
    keys, seed = draw.choice([2, 3, 5, 8]), draw.randrange(1, 50)
    jobs, shortest_ms = draw.choice([2, 3, 5, 7, 11, 20]), draw.choice(SHORTEST_JOBS_MS)
    longest_ms = round(shortest_ms * draw.uniform(1.2, 3), 1)
    return f"""
[cases.drawn-{number}]
programs.film.fps = {rate}
programs.film.work_ms = {work_ms if len(work_ms) > 1 else work_ms[0]}
programs.film.display_ms = {display_ms}
programs.typing.keys_per_s = {keys}
programs.typing.seed = {seed}
programs.batch.count = {jobs}
programs.batch.work_ms = [{shortest_ms}, {longest_ms}]
"""


def main():
    print(HEADER, end="")
    for seed_number, seed in enumerate(SEEDS):
        draw = random.Random(seed)
        for number in range(DESKTOPS):
            print(desktop(draw, DESKTOPS * seed_number + number), end="")


main()
