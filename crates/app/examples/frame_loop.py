#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sixty frames a second, each of so many ms of work: frame_loop.py [FRAMES [WORK_MS]]. Says at the end how many were
late. Runs with Andante and without it."""

import sys
import time

import andante

PERIOD_NS = 16_666_667


def work(ns):
    """Stands for what a program computes and draws."""
    until_ns = andante.now_ns() + ns
    while andante.now_ns() < until_ns:
        pass


def main(frames=300, work_ms=4):
    late = 0
    with andante.Session(andante.GAME, period_ns=PERIOD_NS) as session, session.join() as thread:
        if session.error:
            print(f"without Andante: {session.error}")
        frame_ns = andante.now_ns()
        for _ in range(frames):
            time.sleep(max(0, frame_ns - andante.now_ns()) / 1e9)
            frame_ns += PERIOD_NS
            with thread.cycle(frame_ns):
                work(work_ms * 1_000_000)
            late += andante.now_ns() > frame_ns
    print(f"{late} of {frames} frames were late")


main(*(int(number) for number in sys.argv[1:3]))
