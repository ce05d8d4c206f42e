#!/usr/bin/env python3
"""Kills and stops ranks of jobs at random moments, and checks what is left.

    test/survive.py [--runs N] [--errors N] [--stops N] [--seed N] [-o FILE]

A model runs on three nodes under `mpirun --with-ft ulfm`, all of them ranks on this machine. Needs Open MPI (tools/setup), and divi-opt
and divi-run (target/release, or the folder that DIVI_BIN names). The log is printed, and written to FILE.

    survived    a rank but 0 dies: all outputs are right, exit code 0
    ended       a rank dies, and the bundle has no plans for losses; or rank 0 dies; or two ranks die: one error on each rank that is left
    stopped     a rank is stopped for three seconds: all outputs are right, exit code 0

No process and no shared memory may be left after any run.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = 3
REQUESTS = 100
# Time limits in seconds: of a job, of the errors after a death, and of the pause of a job that continues.
JOB, ERRORS, PAUSE = 60, 5, 2
SYSTEM = """name = "three"
[[node]]
id = "n"
count = 3
[[node.device]]
id = "cpu"
kind = "cpu"
memory = "4 GiB"
batch_sizes = [1]
threads = 1
arch = "x86-64-v3"
[network]
bandwidth = "25 Gbit/s"
latency = "30 us"
bus = "net"
duplex = "full"
"""


class Wrong(Exception):
    """A run that did not do what it must."""


def tool(name):
    folders = [os.environ["DIVI_BIN"]] if "DIVI_BIN" in os.environ else [ROOT / "target/release", ROOT / "target/debug"]
    for folder in folders:
        path = pathlib.Path(folder) / name
        if path.exists():
            return str(path)
    sys.exit(f"test/survive.py: {name} is not built; run cargo build --release, or name its folder in DIVI_BIN")


def compile_model(folder, losses):
    command = [tool("divi-opt"), str(ROOT / "test/models/resnet18.onnx"), "--weights=random:1", "--partition",
               f"--system={folder / 'three.toml'}", "--objective=pipeline", "--emit=bundle", "--cpu=x86-64-v3",
               f"--survive={losses}", "-q", "-o", str(folder / f"survive-{losses}")]
    subprocess.run(command, check=True)
    return folder / f"survive-{losses}"


class Job:
    """A job under mpirun, with its ranks and the lines of its standard error."""

    def __init__(self, bundle, arguments, folder):
        binding = folder / "libdivimpi-openmpi.so"
        environment = dict(os.environ, DIVI_MPI_BINDING=str(binding))
        command = [str(ROOT / ".venv/bin/mpirun"), "--allow-run-as-root", "--oversubscribe", "--with-ft", "ulfm", "-n",
                   str(RANKS), tool("divi-run"), str(bundle), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.lines, self.output, self.is_loaded = [], "", threading.Event()
        self.readers = [threading.Thread(target=self.read_errors), threading.Thread(target=self.read_output)]
        for reader in self.readers:
            reader.start()
        if not self.is_loaded.wait(JOB):
            self.abort()
            raise Wrong(f"the ranks do not load: {self.lines}")
        self.ranks = self.find_ranks()
        self.memory = self.find_memory()

    def read_errors(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip()))
            if f"divi-run: {RANKS} ranks, " in line:
                self.loaded = self.lines[-1][0]
                self.is_loaded.set()

    def read_output(self):
        self.output = self.process.stdout.read()

    def find_ranks(self):
        """Returns the processes of the ranks, in the order of their numbers."""
        ranks = {}
        for task in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment = (task / "environ").read_bytes().split(b"\0")
                if os.readlink(task / "exe") != os.path.realpath(tool("divi-run")):
                    continue
            except OSError:
                continue
            values = dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)
            if descends(int(task.name), self.process.pid):
                ranks[int(values[b"OMPI_COMM_WORLD_RANK"])] = int(task.name)
        if sorted(ranks) != list(range(RANKS)):
            raise Wrong(f"the ranks are {ranks}")
        return [ranks[rank] for rank in range(RANKS)]

    def find_memory(self):
        """Returns the files of shared memory and the folders of the launcher that the job uses."""
        maps = (pathlib.Path(f"/proc/{rank}/maps").read_text() for rank in self.ranks)
        files = {path for text in maps for path in re.findall(r"/dev/shm/\S+", text)}
        return [*sorted(files), f"/tmp/ompi.{self.process.pid}"]

    def kill(self, rank):
        try:
            os.kill(self.ranks[rank], signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wait(self):
        try:
            code = self.process.wait(JOB)
        except subprocess.TimeoutExpired:
            self.abort()
            raise Wrong(f"the job hangs: {self.lines}") from None
        for reader in self.readers:
            reader.join()
        left = [rank for rank, process in enumerate(self.ranks) if is_running(process)]
        if left:
            raise Wrong(f"ranks {left} are left")
        memory = [path for path in self.memory if os.path.exists(path)]
        if memory:
            raise Wrong(f"shared memory is left: {memory}")
        return code

    def abort(self):
        for process in [*getattr(self, "ranks", []), self.process.pid]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def errors(self):
        return [(at, line.split("divi-run: error: ", 1)[1]) for at, line in self.lines if "divi-run: error: " in line]

    def warnings(self):
        return [line for _, line in self.lines if "divi-run: warning: " in line]


def descends(process, ancestor):
    while process > 1:
        if process == ancestor:
            return True
        try:
            stat = pathlib.Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        process = int(stat.rsplit(")", 1)[1].split()[1])
    return False


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def survived(job, victim, delay):
    """Kills a rank. Returns the longest latency and the duration of the recovery in seconds, 0 if the requests were complete."""
    time.sleep(delay)
    job.kill(victim)
    code = job.wait()
    if code != 0 or job.errors():
        raise Wrong(f"exit code {code}: {job.lines}")
    if f'"runs":{REQUESTS}' not in job.output:
        raise Wrong(f"not all requests were answered: {job.output[:200]}")
    longest = json.loads(job.output)["latency_us"]["max"] / 1e6
    recoveries = [re.search(r"continued after ([0-9.]+) s", line) for line in job.warnings()]
    if len(recoveries) > 1 or not all(recoveries):
        raise Wrong(f"unexpected warnings: {job.warnings()}")
    if recoveries and longest > PAUSE:
        raise Wrong(f"a request took {longest:.3f} s")
    return longest, float(recoveries[0][1]) if recoveries else 0.0


def ended(job, victims, delay):
    """Kills ranks. Returns the time until the last error and until the end of the job, in seconds; None if it was too late."""
    for victim, wait in zip(victims, delay):
        time.sleep(wait)
        killed = time.monotonic()
        job.kill(victim)
    code = job.wait()
    end = time.monotonic() - killed
    errors = job.errors()
    if code == 0 and not errors:
        return None
    left = sorted(set(range(RANKS)) - set(victims))
    named = sorted(int(line.split(":", 1)[0].removeprefix("rank ")) for _, line in errors)
    if code != 1 or named != left:
        raise Wrong(f"exit code {code}, errors of ranks {named} instead of {left}: {job.lines}")
    for _, line in errors:
        if not re.search(r"rank \d has failed.*\(host '[^']+', stage", line):
            raise Wrong(f"an error names no host and stage: {line}")
    if left[0] == 0 and not re.search(r"(is|are) lost", errors[0][1] + errors[-1][1]):
        raise Wrong(f"no error names the requests: {errors}")
    last = max(at for at, _ in errors) - killed
    if end > ERRORS:
        raise Wrong(f"the job ended after {end:.1f} s")
    return last, end


def stopped(job, victim, delay):
    time.sleep(delay)
    os.kill(job.ranks[victim], signal.SIGSTOP)
    time.sleep(3)
    os.kill(job.ranks[victim], signal.SIGCONT)
    code = job.wait()
    if code != 0 or job.errors() or job.warnings():
        raise Wrong(f"exit code {code}: {job.lines}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--errors", type=int, default=50)
    parser.add_argument("--stops", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", dest="log")
    options = parser.parse_args()
    log = []

    def say(line):
        print(line, flush=True)
        log.append(line)

    folder = pathlib.Path(tempfile.mkdtemp(prefix="divi-survive-"))
    failures = 0
    try:
        (folder / "three.toml").write_text(SYSTEM)
        subprocess.run([ROOT / "tools/mpi-binding", "--mpicc", ROOT / ".venv/bin/mpicc", "-o", folder], check=True,
                       stdout=subprocess.DEVNULL)
        with_plans, without_plans = compile_model(folder, 1), compile_model(folder, 0)
        alone = [tool("divi-run"), str(with_plans), "--random-inputs", "-q", "-o", str(folder / "expected")]
        subprocess.run(alone, check=True)
        requests = ["--random-inputs", "--expected", str(folder / "expected"), "--tolerance", "1e-5", "--warmup", "0", "--repeat",
                    str(REQUESTS)]
        version = subprocess.run([ROOT / ".venv/bin/mpirun", "--version"], capture_output=True, text=True, check=True)
        say(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start; {datetime.date.today():%-d %B %Y}")
        say(f"test/survive.py --runs {options.runs} --errors {options.errors} --stops {options.stops} --seed {options.seed}")
        say(f"resnet18 on three nodes, {REQUESTS} requests a run, {version.stdout.splitlines()[0]}")
        chance = random.Random(options.seed)
        trial = Job(with_plans, requests, folder)
        trial.wait()
        # From the first request to the end of the job: deaths may come after the last result.
        length = time.monotonic() - trial.loaded

        def repeat(what, count, run):
            """Runs `count` times. Returns the results."""
            nonlocal failures
            results = []
            for number in range(count):
                try:
                    results.append(run(number))
                except Wrong as wrong:
                    failures += 1
                    say(f"FAILED {what}, run {number}: {wrong}")
            return results

        def one(number):
            job = Job(with_plans, [*requests, "--json"], folder)
            return survived(job, 1 + number % (RANKS - 1), chance.uniform(0, length))

        results = repeat("survived", options.runs, one)
        recovered = [(longest, duration) for longest, duration in results if duration > 0]
        say(f"survived    {len(results)} of {options.runs} runs; in {len(recovered)} the rank died before the last result")
        if recovered:
            longest, durations = zip(*recovered)
            say(f"            pause: median {statistics.median(durations):.3f} s, longest {max(durations):.3f} s; "
                f"longest latency {max(longest):.3f} s")
        cases = [("no plans", without_plans, lambda number: [1 + number % 2]), ("rank 0", with_plans, lambda _: [0]),
                 ("two ranks", with_plans, lambda number: [1 + number % 2, 2 - number % 2])]
        for name, bundle, victims in cases:
            def case(number):
                delays = [chance.uniform(0, length * 0.6), chance.choice([0.02, 0.05, 0.1, 0.3])]
                return ended(Job(bundle, requests, folder), victims(number), delays)

            results = repeat(f"ended ({name})", options.errors, case)
            timed = [result for result in results if result]
            say(f"ended       {name}: {len(results)} of {options.errors} runs; in {len(timed)} before the last result")
            if timed:
                say(f"            last error after at most {max(last for last, _ in timed):.3f} s, end of the job after "
                    f"{max(end for _, end in timed):.3f} s")
        results = repeat("stopped", options.stops, lambda number: stopped(
            Job(with_plans, requests, folder), number % RANKS, chance.uniform(0, length * 0.5)))
        say(f"stopped     {len(results)} of {options.stops} runs")
        say(f"{failures} failures")
    finally:
        shutil.rmtree(folder)
    if options.log:
        pathlib.Path(options.log).write_text("\n".join(log) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
