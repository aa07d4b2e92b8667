#!/usr/bin/env python3
"""slurm.py PROGRAM [--long] [--seed N]: a suite on a real Slurm, started here on loopback with two nodes.

The suite must end in the bytes of a suite without Slurm, its table included, from a folder with a hostile name, while tasks get
SIGUSR2 before their limit and are requeued, the command that submits is killed right after sbatch, and (--long) while processes are killed, a node is set down, jobs are requeued and
cancelled and the controller is restarted. Skipped (77) with a word where Slurm cannot be started.
"""
import argparse
import getpass
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from run_digests import digests

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
NODES = ["n1", "n2"]


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """munged, slurmctld and a slurmd a node, all with files and ports of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        for tool in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"):
            if not self.find(tool):
                skip(f"no {tool}; scripts/install-deps slurm installs Slurm and munge")
        if os.geteuid() != 0:
            skip("slurmd has to be started by root")
        for name in ("munge", "state", "spool", "log"):
            (folder / name).mkdir()
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.socket = folder / "munge" / "socket"
        ports = free_ports(1 + len(NODES))
        lines = [
            "ClusterName=test", "SlurmctldHost=localhost(127.0.0.1)", f"SlurmctldPort={ports[0]}",
            f"SlurmUser={getpass.getuser()}", f"SlurmdUser={getpass.getuser()}",
            "AuthType=auth/munge", f"AuthInfo=socket={self.socket},cred_expire=10",  # a requeued job waits as long; less than 5 is taken for 120
            f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/slurmctld.pid", f"SlurmdPidFile={folder}/slurmd-%n.pid",
            f"SlurmctldLogFile={folder}/log/slurmctld.log", f"SlurmdLogFile={folder}/log/slurmd-%n.log",
            "ProctrackType=proctrack/pgid", "TaskPlugin=task/none", "SwitchType=switch/none",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=1,sched_min_interval=200000,batch_sched_delay=0,sched_interval=1",
            "AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none",
            "ReturnToService=2", "JobRequeue=1", "KillWait=2", "MailProg=/bin/true", "MpiDefault=none", "SlurmdTimeout=60",
        ]
        for name, port in zip(NODES, ports[1:]):
            lines.append(f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN")
        lines.append(f"PartitionName=main Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        self.start("munged", ["--foreground", "--force", f"--key-file={key}", f"--socket={self.socket}", f"--pid-file={folder}/munge/pid",
                              f"--log-file={folder}/munge/log", f"--seed-file={folder}/munge/seed", "--num-threads=2"])
        self.wait(self.socket.exists, "munged does not come up", 200)
        self.start_controller()
        for name in NODES:
            self.start(f"slurmd-{name}", ["-D", "-N", name], "slurmd")
        self.wait(lambda: self.node_states() == ["idle"] * len(NODES), "the nodes do not come up", 600)

    @staticmethod
    def find(tool):
        return shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def start(self, name, arguments, tool=None):
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen([self.find(tool or name), *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                                    stderr=out, start_new_session=True)

    def start_controller(self):
        self.start("slurmctld", ["-D"])
        self.wait(lambda: self.call("scontrol", "ping").returncode == 0, "slurmctld does not come up", 600)

    def restart_controller(self):
        self.end("slurmctld")
        self.start_controller()

    def end(self, name):
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(200)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        self.call("scancel", "--user", getpass.getuser())
        for name in reversed(list(self.processes)):
            self.end(name)

    def wait(self, holds, why, seconds):
        until = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > until:
                for log in sorted((self.folder / "log").iterdir()):
                    print(f"--- {log.name}\n" + "".join(log.read_text(errors="replace").splitlines(True)[-8:]))
                self.stop()
                skip(why)
            time.sleep(0.1)

    @staticmethod
    def call(*command):
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)

    def node_states(self):
        said = self.call("scontrol", "--oneliner", "show", "nodes").stdout
        return [word[6:].lower().strip("*") for line in said.splitlines() for word in line.split() if word.startswith("State=")]

    def tasks(self):
        """{job_index: state} of what is queued or at work."""
        said = self.call("squeue", "--noheader", "--array", "--format=%F_%K %T").stdout
        return dict(line.split() for line in said.splitlines() if line.strip())

    def wait_until_empty(self, seconds, each=lambda: None):
        until = time.monotonic() + seconds
        while self.tasks():
            if time.monotonic() > until:
                fail(f"the queue is not empty after {seconds} s: {self.tasks()}")
            each()
            time.sleep(0.3)


def processes_of(root):
    """Our program at work on this folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(root).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


class Trouble:
    """Something happens to the suite every second or two."""

    def __init__(self, cluster, root, seed, count):
        self.cluster, self.root, self.random, self.left = cluster, root, random.Random(seed), count
        self.next = time.monotonic() + 2
        self.down = None
        self.done = {}

    def __call__(self):
        if time.monotonic() < self.next or self.left == 0:
            if self.left == 0 and self.down:
                self.node(self.down, "resume")
                self.down = None
            return
        self.next = time.monotonic() + self.random.uniform(0.5, 2)
        self.left -= 1
        kind = self.random.choice(["kill", "kill", "kill", "node", "requeue", "cancel", "controller", "notice"])
        tasks = [name for name, state in self.cluster.tasks().items() if state == "RUNNING" and "N/A" not in name]
        if kind == "kill":
            found = processes_of(self.root)
            if found:
                try:
                    os.kill(self.random.choice(found), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        elif kind == "node":
            if self.down:
                self.node(self.down, "resume")
                self.down = None
            else:
                self.down = self.random.choice(NODES)
                self.node(self.down, "down")
        elif kind == "controller":
            self.cluster.restart_controller()
        elif tasks:
            task = self.random.choice(tasks)
            if kind == "notice":
                self.cluster.call("scancel", "--signal=USR2", "--batch", task)
            else:
                self.cluster.call("scontrol", "requeue", task) if kind == "requeue" else self.cluster.call("scancel", task)
        self.done[kind] = self.done.get(kind, 0) + 1

    def node(self, name, state):
        self.cluster.call("scontrol", "update", f"nodename={name}", f"state={state}", "reason=test")


def dying(work):
    """Of a command that is killed as soon as sbatch has submitted its first job."""
    tools = work / "tools"
    tools.mkdir()
    (tools / "sbatch").write_text(f'#!/bin/sh\n"{shutil.which("sbatch")}" "$@" > /dev/null\nkill -9 $PPID\n')
    (tools / "sbatch").chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


def suite_text(long):
    grid = 'model.name = ["gla", "mamba2", "transformer"]\ntrain.lr = [0.001, 0.002]\nrun.seed = [1, 2, 3, 4]\n' if long else \
        'model.name = ["gla", "mamba2"]\nrun.seed = [1, 2]\ntrain.updates = [300]\n'
    return '[suite]\nname = "a suite: \'$(touch stolen)\' & \\"more\\""\n[grid]\n' + grid + (HERE / "small.toml").read_text()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="selectivbench-slurm-"))
    os.chdir(work)
    os.environ["SELECTIVBENCH_HEARTBEAT"] = "0.5"
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_"))]:
        del os.environ[name]
    cluster = None
    try:
        (work / "suite.toml").write_text(suite_text(options.long))
        program = [options.program, "suite", str(work / "suite.toml"), "--out"]
        plain, root = work / "plain", work / "runs of 'mine' $(touch stolen) %a; touch stolen"
        runs = 24 if options.long else 4
        cluster = Cluster(pathlib.Path(tempfile.mkdtemp(prefix="sb-slurmd-")))
        said = subprocess.run([*program, str(plain), "--jobs", "2", "--threads", "2"], capture_output=True, text=True)
        if said.returncode != 0:
            fail(f"the suite without Slurm: {said.stderr}")
        expected, table = digests(plain), (plain / "table.json").read_bytes()
        if len(expected) != runs:
            fail(f"expected {runs} runs, got {len(expected)}")
        submit = [*program, str(root), "--slurm", "--cpus", "1", "--time", "1:00:00", "--max-parallel", "4", "--requeue",
                  "--per-task", "2" if options.long else "1", "--sbatch", "--nice=0",
                  "--sbatch", "--comment=two words $(touch stolen)"]

        dry = subprocess.run([*submit, "--dry-run"], capture_output=True, text=True)
        if dry.returncode != 0 or root.exists() or "#SBATCH --signal=B:USR2@300" not in dry.stdout:
            fail(f"--dry-run: {dry.returncode} {dry.stdout} {dry.stderr}")

        refused = subprocess.run([*submit, "--partition", "nowhere"], capture_output=True, text=True)
        if refused.returncode != 69 or refused.stderr.count("\n") != 1 or (root / "slurm" / "001").exists():
            fail(f"a partition that is none: {refused.returncode} {refused.stderr}")

        trouble = Trouble(cluster, root, options.seed, 40 if options.long else 0)
        notices = 0

        def stopped():
            return any("[suite] stopping" in log.read_text(errors="replace") for log in root.glob("slurm/*/*.log"))

        def each():
            nonlocal notices
            trouble()
            if options.long or stopped() or not list(root.glob("*/checkpoint-*")):
                return
            for name, state in cluster.tasks().items():  # as Slurm does it before the time limit
                if state == "RUNNING" and "N/A" not in name:
                    notices += 1
                    cluster.call("scancel", "--signal=USR2", "--batch", name)

        submissions = 0
        while len(digests(root)) < runs:
            submissions += 1
            if submissions > 30:
                fail("the runs do not end")
            said = subprocess.run(submit, capture_output=True, text=True, env=dying(work) if submissions == 1 else None)
            if submissions == 1 and (said.returncode != -signal.SIGKILL or not cluster.tasks()):
                fail(f"the command was to be killed after sbatch: {said.returncode} {said.stderr} {cluster.tasks()}")
            if submissions > 1 and said.returncode != 0 and len(digests(root)) < runs:
                fail(f"submission {submissions}: {said.returncode} {said.stderr}")
            if submissions == 1:
                again = subprocess.run(submit, capture_output=True, text=True)
                if "nothing to submit" not in again.stderr and not options.long:
                    fail(f"what is in the queue was submitted again: {again.stderr}")
                status = subprocess.run([*program, str(root), "--status"], capture_output=True, text=True)
                if status.returncode != 0 or status.stdout.count("\n") != runs:
                    fail(f"--status: {status.returncode} {status.stdout} {status.stderr}")
            cluster.wait_until_empty(9000 if options.long else 600, each)
        final = subprocess.run([*program, str(root), "--slurm"], capture_output=True, text=True)
        if final.returncode != 0:
            fail(f"all runs are there: {final.returncode} {final.stderr}")
        if digests(root) != expected:
            fail("other bytes than without Slurm")
        if (root / "table.json").read_bytes() != table:
            fail("another table than without Slurm")
        if not options.long and not (root / "report.html").exists():
            fail("no report")
        checked = subprocess.run([program[0], "check", str(root)], capture_output=True, text=True)
        if checked.returncode != 0:
            fail(f"check: {checked.stdout} {checked.stderr}")
        status = subprocess.run([*program, str(root), "--status"], capture_output=True, text=True)
        if f"{runs} done" not in status.stderr:
            fail(f"--status: {status.stdout} {status.stderr}")
        if list(work.rglob("stolen")) or pathlib.Path("stolen").exists():
            fail("a name was run as a command")
        if not options.long and not stopped():
            fail("SIGUSR2 stopped nothing")
        if not options.long and submissions != 1:
            fail(f"what was asked to save was not queued again by itself: {submissions} submissions")
        happened = ", ".join(f"{count} x {kind}" for kind, count in sorted(trouble.done.items())) or f"{notices} x notice"
        print(f"{runs} runs on {len(NODES)} nodes in {submissions} submissions ({happened}): same bytes, same table")
    finally:
        if cluster:
            cluster.stop()
            shutil.rmtree(cluster.folder, ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)


main()
