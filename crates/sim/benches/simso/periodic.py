"""Runs a set of periodic tasks under EDF on one CPU in SimSo, and says how long that took.

Arguments: seconds to simulate, then a file with a task per line, "period_ms work_ms".
The time is that of the simulation alone, without starting Python or reading the set.
"""

import sys
import time

from simso.configuration import Configuration
from simso.core import Model

seconds, file = int(sys.argv[1]), sys.argv[2]
configuration = Configuration()
configuration.cycles_per_ms = 1_000_000
configuration.duration = seconds * 1000 * configuration.cycles_per_ms
configuration.scheduler_info.clas = "simso.schedulers.EDF_mono"
configuration.add_processor(name="CPU 1", identifier=1)
with open(file) as lines:
    for number, line in enumerate(lines, 1):
        period_ms, work_ms = map(float, line.split())
        configuration.add_task(
            name=f"T{number}", identifier=number, period=period_ms, wcet=work_ms,
            deadline=period_ms, activation_date=0,
        )
configuration.check_all()
begin = time.perf_counter()
model = Model(configuration)
model.run_model()
took = time.perf_counter() - begin
jobs = [job for task in model.task_list for job in task.jobs]
done = [job for job in jobs if job.end_date is not None]
missed = sum(bool(job.exceeded_deadline) for job in done)
print(f"{len(done)} jobs, {missed} missed, {took:.6f} s")
