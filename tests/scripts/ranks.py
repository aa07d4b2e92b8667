#!/usr/bin/env python3
"""One run by several ranks on loopback.

usage: ranks.py PROGRAM numbers MODELS    1, 2 and 4 ranks agree; the same number gives the same bytes
       ranks.py PROGRAM ends              refusals; whatever one rank ends with, all end with the same code and rank 0 says why
       ranks.py PROGRAM kills COUNT SEED  SIGKILL of any rank at random moments: the others end and name it, resuming gives the same bytes

Exit code 1 where something does not hold; 77 (skipped) where the program was built without process groups.
"""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy

SMALL = pathlib.Path(__file__).with_name("small.toml")
# All limits are ten times what an idle machine takes.
PATIENCE = 20  # seconds without a sign of life, as the ranks are told; a sign comes every quarter of a second
BOUND = 10 * (PATIENCE + 5 + 3)  # an exit takes the patience at most, 5 s for answers, 3 s for the verdict to be read
ENDLESS = 900  # a patience that no refusal waits for
HURRY = 10  # a patience that is waited for; processes start in less than one second
VARIABLES = ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SELECTIVBENCH_RANK_TIMEOUT")
faults = []


def expect(holds, line):
    if not holds:
        faults.append(line)
        print("FAULT:", line, flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(**values):
    plain = {k: v for k, v in os.environ.items() if k not in VARIABLES and not k.startswith(("SLURM_", "TORCHELASTIC_"))}
    return plain | {k: str(v) for k, v in values.items()}


class Ranks:
    """The processes of one attempt; world 0: a plain run."""

    def __init__(self, program, out, world, sets=(), own_sets=None, own_variables=None, patience=PATIENCE, come=None):
        self.world, self.processes = world, {}
        port = free_port()
        for rank in come if come is not None else range(max(1, world)):
            env = environment()
            if world:
                env = environment(WORLD_SIZE=world, RANK=rank, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                  SELECTIVBENCH_RANK_TIMEOUT=patience) | (own_variables or {}).get(rank, {})
            command = [program, "train", str(SMALL), "--out", str(out), "--threads", "1"]
            for text in (*sets, *((own_sets or {}).get(rank, ()))):
                command += ["--set", text]
            self.processes[rank] = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                    text=True)

    def end(self, limit):
        """[(code, stdout, stderr)] by rank; code None: still there after `limit` seconds, and killed."""
        out, until = {}, time.monotonic() + limit
        for rank, process in self.processes.items():
            try:
                said, complained = process.communicate(timeout=max(0.1, until - time.monotonic()))
                out[rank] = (process.returncode, said, complained)
            except subprocess.TimeoutExpired:
                process.kill()
                said, complained = process.communicate()
                out[rank] = (None, said, complained)
        return out


def train(program, out, world, sets=(), **more):
    ends = Ranks(program, out, world, sets, **more).end(600)
    for rank, (code, said, complained) in ends.items():
        expect(code == 0, f"{world} ranks, {sets}: rank {rank} ended with {code}: {complained[-300:]}")
        expect(rank == 0 or said == "", f"rank {rank} printed {said!r}")
    return pathlib.Path(out)


def folder(out):
    return next(p for p in pathlib.Path(out).iterdir() if p.is_dir())


def digest(out):
    """Bytes that do not depend on who made the run, when and where."""
    run = folder(out)
    numbers = re.search(r'"numbers_sha256": *"(\w+)"', (run / "result.json").read_text()).group(1)
    return [hashlib.sha256((run / name).read_bytes()).hexdigest() for name in ("metrics.jsonl", "final.safetensors")] + [numbers]


def losses(out):
    rows = [json.loads(line) for line in (folder(out) / "metrics.jsonl").read_text().splitlines()]
    return numpy.array([r["loss"] for r in rows if r["phase"] == "train"])


def weights(out):
    data = (folder(out) / "final.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    types = {"F32": "<f4", "F64": "<f8"}
    parts = [numpy.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], types[entry["dtype"]])
             for name, entry in header.items() if name != "__metadata__"]
    return numpy.concatenate(parts).astype(float)


def differences(a, b):
    """Largest relative difference of a loss, and of the weights as a whole."""
    of_loss = float(numpy.max(numpy.abs(losses(a) - losses(b)) / numpy.abs(losses(b))))
    of_weights = float(numpy.linalg.norm(weights(a) - weights(b)) / numpy.linalg.norm(weights(b)))
    return of_loss, of_weights


# docs/ranks.md states these.
TOLERANCE = {"fp32": (1e-5, 1e-5), "fp64": (1e-13, 1e-13)}


def numbers(program, work, models):
    for model, precision, batch in (("gated_delta_net", "fp64", 6), ("transformer", "fp32", 5), ("mamba2", "fp32", 4))[:models]:
        sets = (f"model.name={model}", f"train.precision={precision}", f"train.batch={batch}", "run.checkpoint_every=0")
        if model == "gated_delta_net":
            sets += ("train.schedule={task.gap_max = {from = 2, over = 0.5}}",)
        name = f"{model}-{precision}-{batch}"
        alone = train(program, work / f"{name}-alone", 0, sets)
        expect(digest(train(program, work / f"{name}-1", 1, sets)) == digest(alone), f"{name}: a group of one changes bytes")
        for world in (2, 4):
            out = train(program, work / f"{name}-{world}", world, sets)
            of_loss, of_weights = differences(out, alone)
            print(f"{name}: {world} ranks, losses within {of_loss:.1e}, weights within {of_weights:.1e}", flush=True)
            expect(of_loss <= TOLERANCE[precision][0] and of_weights <= TOLERANCE[precision][1], f"{name}: {world} ranks differ")
            made = json.loads((folder(out) / "result.json").read_text())
            expect(f'"world":{world}' in json.dumps(made, separators=(",", ":")), f"{name}: the result does not say {world} ranks")
        again = train(program, work / f"{name}-4-again", 4, sets)
        expect(digest(again) == digest(work / f"{name}-4"), f"{name}: 4 ranks twice give other bytes")
    # Two ranks add the two gradients that two micro-batches add.
    for model in ("mamba2", "gla")[:models]:
        sets = (f"model.name={model}", "train.accumulate=2", "run.checkpoint_every=0")
        one, two = (train(program, work / f"accumulate-{model}-{world}", world, sets) for world in (0, 2))
        expect(digest(one) == digest(two), f"{model}: 2 ranks are not 2 micro-batches, bit for bit")
    sets = ("train.accumulate=4", "quirks.sum_accumulated=true", "run.checkpoint_every=0")
    one, two = (train(program, work / f"summed-{world}", world, sets) for world in (0, 2))
    expect(differences(two, one) <= TOLERANCE["fp32"], "quirks.sum_accumulated: 2 ranks differ")
    stopped(program, work, models)
    silent(program, work, models)


def ends(program, work):
    refusals(program, work)
    codes(program, work)
    taken_over(program, work)
    stopped_while_preparing(program, work)
    stopped_while_waiting(program, work)
    stopped_while_evaluating(program, work)


def begun(out, updates):
    """Waits until the run has a checkpoint of so many updates."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for path in pathlib.Path(out).glob("*/checkpoint-*.safetensors"):
            if int(re.search(r"(\d+)\.safetensors", path.name).group(1)) >= updates:
                return
        time.sleep(0.02)
    faults.append("no checkpoint came")


# Long enough to be met on its way.
LONGER = ("train.updates=150", "eval.every=50", "run.checkpoint_every=20")


def stopped(program, work, count):
    alone = train(program, work / "longer-alone", 0, LONGER)
    for world, then, victim in ((4, 0, 0), (2, 4, 1))[:count]:
        out = work / f"stopped-{world}-{then}"
        ranks = Ranks(program, out, world, LONGER)
        begun(out, 20)
        ranks.processes[victim].send_signal(signal.SIGTERM)
        for rank, (code, _, complained) in ranks.end(BOUND).items():
            expect(code == 75, f"SIGTERM to rank {victim} of {world}: rank {rank} ended with {code}: {complained[-300:]}")
        ends = Ranks(program, out, then, LONGER).end(600)
        expect(all(end[0] == 0 for end in ends.values()), f"resuming with {then} ranks: {ends}")
        expect("now, the last updates were made with" in ends[0][2], "resuming with another number of ranks is not told")
        of_loss, of_weights = differences(out, alone)
        print(f"{world} ranks, then {then}: losses within {of_loss:.1e}, weights within {of_weights:.1e}", flush=True)
        expect(max(of_loss, of_weights) <= 1e-5, f"{world} ranks, then {then}: differ")


def silent(program, work, count):
    """A rank that stands still is as good as lost."""
    for victim in (0, 1)[:count]:
        out = work / f"silent-{victim}"
        ranks = Ranks(program, out, 2, LONGER, patience=HURRY)
        begun(out, 20)
        process = ranks.processes.pop(victim)
        process.send_signal(signal.SIGSTOP)
        (code, _, complained), = ranks.end(BOUND).values()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        expect(code == 79 and f"rank {victim} of 2 sent no heartbeat" in complained,
               f"SIGSTOP of rank {victim}: {code}, {complained[-300:]}")
        ends = Ranks(program, out, 2, LONGER).end(600)
        expect(all(end[0] == 0 for end in ends.values()), f"after SIGSTOP: {ends}")


def ended(what, ends, expected, words, speaker=0):
    """All with this code; the speaker with one line, the others without a word. A slow run says how far it is, too."""
    for rank, (code, said, complained) in ends.items():
        lines = [line for line in complained.strip().splitlines() if not re.match(r"\w+ +task \d  seed \d+  update \d+ of \d+: ", line)]
        sound = len(lines) == 1 and words in lines[0] if rank == speaker else not lines
        expect(code == expected and sound and said == "", f"{what}: rank {rank}: {code}, {said!r}, {complained!r}")


def refused(what, ends, words, speaker=0):
    ended(what, ends, 2, words, speaker)


def refusals(program, work):
    out = work / "refused"
    command = [program, "train", str(SMALL), "--out", str(out)]
    sound = {"WORLD_SIZE": 2, "RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    for change, words in (({"WORLD_SIZE": 0}, "[WORLD_SIZE]"), ({"WORLD_SIZE": "two"}, "[WORLD_SIZE]"), ({"RANK": 2}, "[RANK]"),
                          ({"RANK": None}, "[RANK]"), ({"WORLD_SIZE": None}, "[WORLD_SIZE]"),
                          ({"MASTER_ADDR": "192.0.2.7"}, "[MASTER_ADDR]"), ({"MASTER_ADDR": "nowhere.invalid"}, "[MASTER_ADDR]"),
                          ({"MASTER_ADDR": None}, "[MASTER_ADDR]"), ({"MASTER_ADDR": "$(id)"}, "[MASTER_ADDR]"),
                          ({"MASTER_PORT": 65536}, "[MASTER_PORT]"), ({"SELECTIVBENCH_RANK_TIMEOUT": 1}, "[SELECTIVBENCH_RANK_TIMEOUT]"),
                          ({"WORLD_SIZE": 5}, "train.batch")):
        values = {k: v for k, v in (sound | change).items() if v is not None}
        done = subprocess.run(command, env=environment(**values), capture_output=True, text=True, timeout=BOUND)
        refused(change, {0: (done.returncode, done.stdout, done.stderr)}, words)
    expect(not out.exists(), "a refused run has a folder")
    refused("another config", Ranks(program, out, 2, own_sets={1: ("train.lr=0.5",)}).end(BOUND),
            "[RANK] expected the same on all ranks, got train.lr: 0.001 on rank 0, 0.5 on rank 1")
    refused("a host that is none", Ranks(program, out, 2, own_variables={1: {"MASTER_ADDR": "nowhere.invalid"}}, patience=ENDLESS, come=(1,)).end(BOUND),
            "[MASTER_ADDR] expected the host of rank 0, got 'nowhere.invalid', which is not found: ", speaker=1)
    refused("a rank that does not come", Ranks(program, out, 3, patience=HURRY, come=(0, 2)).end(BOUND),
            f"rank 1 of 3 did not connect within {HURRY} s")
    refused("nobody there", Ranks(program, out, 2, patience=2, come=(1,)).end(BOUND), "[MASTER_ADDR]", speaker=1)
    # All of them long before the ranks would be missed.
    for world, sizes in ((2, {1: 3}), (3, {0: 2}), (3, {1: 4}), (2, {0: 4})):
        other = {rank: {"WORLD_SIZE": str(size)} for rank, size in sizes.items()}
        refused(f"{world} ranks, but {sizes}", Ranks(program, out, world, own_variables=other, patience=ENDLESS).end(BOUND),
                "[WORLD_SIZE] expected the same number on all ranks, rank 0 has ")
    refused("a rank twice", Ranks(program, out, 3, own_variables={2: {"RANK": "1"}}, patience=ENDLESS).end(BOUND), "[RANK] two ranks have the number 1")
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        port = {"MASTER_PORT": str(mute.getsockname()[1])}
        refused("no store there", Ranks(program, out, 2, own_variables={1: port}, patience=3, come=(1,)).end(BOUND), "[MASTER_ADDR]", speaker=1)
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        values = sound | {"MASTER_PORT": taken.getsockname()[1], "SELECTIVBENCH_RANK_TIMEOUT": 3}
        done = subprocess.run(command, env=environment(**values), capture_output=True, text=True, timeout=BOUND)
        refused("a taken port", {0: (done.returncode, done.stdout, done.stderr)}, "rank 0 of another run, or a second process with RANK 0")
    shown = subprocess.run([program, "config", "show", str(SMALL)], env=environment(**sound), capture_output=True, text=True)
    expect("# world = 2" in shown.stdout, "config show does not say 2 ranks")


def codes(program, work):
    """Errors of rank 0 after all have met."""
    (work / "file").write_text("")
    ended("cannot write", Ranks(program, work / "file" / "runs", 3).end(BOUND), 74, "[run] cannot make ")
    odd = {0: {"SELECTIVBENCH_HEARTBEAT": "soon"}}
    ended("bad input", Ranks(program, work / "odd", 3, own_variables=odd).end(BOUND), 2, "[SELECTIVBENCH_HEARTBEAT] expected")


BEATING = {"SELECTIVBENCH_HEARTBEAT": "0.25"}


def taken_over(program, work):
    out = work / "taken"
    ranks = Ranks(program, out, 2, LONGER, own_variables={0: BEATING}, patience=ENDLESS)
    begun(out, 20)
    ranks.processes[0].send_signal(signal.SIGSTOP)
    command = [program, "train", str(SMALL), "--out", str(out), "--threads", "1"]
    for text in LONGER:
        command += ["--set", text]
    taker = subprocess.Popen(command, env=environment(**BEATING), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    code = taker.wait(timeout=BOUND)
    expect(code == 0, f"who took over ended with {code}")
    ranks.processes[0].send_signal(signal.SIGCONT)
    ended("taken over", ranks.end(BOUND), 76, " was taken over by ")


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stopped_while_preparing(program, work):
    """A signal to one of the ranks while all build a grammar, which takes some seconds of the processor."""
    large = ("grammar.vocab=180", "grammar.ambiguities=179", "grammar.depth=180")
    for victim in (0, 1):
        out = work / f"preparing-{victim}"
        ranks = Ranks(program, out, 2, large, patience=300)
        # Once they have met they have threads that watch each other.
        while all(p.poll() is None for p in ranks.processes.values()) and \
                any(len(os.listdir(f"/proc/{p.pid}/task")) < 5 for p in ranks.processes.values()):
            time.sleep(0.05)
        met = {p: processor_seconds(p) for p in ranks.processes.values()}
        while any(p.poll() is None and processor_seconds(p) < met[p] + 1 for p in met):
            time.sleep(0.05)
        ranks.processes[victim].send_signal(signal.SIGTERM)
        ended(f"rank {victim} stopped while preparing", ranks.end(BOUND), 75, "[train] stopped before its first update")
        expect(not list(out.glob("*/lock")), "a run that was not begun has a lock")


def stopped_while_waiting(program, work):
    """Rank 0 waits for another's lock, and rank 1 is asked to stop."""
    out = work / "waiting"
    sets = ("train.updates=100000", "eval.every=0")
    holder = Ranks(program, out, 0, sets)
    begun(out, 3)
    ranks = Ranks(program, out, 2, sets, patience=ENDLESS)
    line = ranks.processes[0].stderr.readline()
    expect("waiting up to 60 s for it to end or be known to be dead" in line, f"rank 0 waits without a word: {line!r}")
    ranks.processes[1].send_signal(signal.SIGTERM)
    ended("stopped while waiting", ranks.end(55), 75, "is held by process ")  # less than the 60 s that it would wait
    holder.processes[0].send_signal(signal.SIGKILL)
    holder.end(BOUND)


def stopped_while_evaluating(program, work):
    """A signal to a rank that waits for rank 0, which evaluates for minutes."""
    out = work / "evaluating"
    ranks = Ranks(program, out, 2, ("eval.valid_samples=1000000", "run.checkpoint_every=0"), patience=ENDLESS)
    begun(out, 7)  # saved before it evaluates
    ranks.processes[1].send_signal(signal.SIGTERM)
    for rank, (code, _, complained) in ranks.end(BOUND).items():
        expect(code == 75, f"stopped while rank 0 evaluates: rank {rank} ended with {code}: {complained[-300:]}")


def kills(program, work, count, seed):
    chance = random.Random(seed)
    clean, seconds = {}, {}
    passed = met = drawn = 0
    while met < count and drawn < 5 * count:
        drawn += 1
        world = chance.choice((2, 3, 4))
        if world not in clean:
            began = time.monotonic()
            clean[world] = digest(train(program, work / f"clean-{world}", world, LONGER))
            seconds[world] = time.monotonic() - began
        before, out = len(faults), work / f"killed-{drawn}"
        victim, moment = chance.randrange(world), chance.uniform(0, seconds[world])
        ranks = Ranks(program, out, world, LONGER)
        time.sleep(moment)
        process = ranks.processes.pop(victim)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        began = time.monotonic()
        ends = ranks.end(BOUND)
        took = time.monotonic() - began
        # The run was over, or all of it but the farewell: no kill to speak of.
        over = process.returncode == 0 or (list(out.glob("*/result.json")) and all(end[0] == 0 for end in ends.values()))
        for rank, (code, _, complained) in ends.items():
            # 2: it was lost before all had met, and rank 0 says so.
            named = code in (2, 79) and f"rank {victim}" in complained or code == 2 and rank != 0 and complained == ""
            expect(over or named, f"rank {victim} of {world} killed after {moment:.1f} s: rank {rank} ended with {code}: {complained[-300:]}")
        train(program, out, world, LONGER)
        expect(digest(out) == clean[world], f"rank {victim} of {world} killed after {moment:.1f} s: other bytes")
        met += not over
        passed += not over and len(faults) == before
        codes = sorted({end[0] for end in ends.values()}, key=str)
        print(f"rank {victim} of {world} killed after {moment:.1f} s: the others ended with {codes} in {took:.1f} s", flush=True)
        shutil.rmtree(out)
    print(f"{passed} of {count} as they should, {drawn - met} kills came too late")
    expect(met == count, f"{met} kills met a run, expected {count}")


def main():
    program = sys.argv[1]
    doctor = json.loads(subprocess.run([program, "doctor", "--json", "-"], capture_output=True, text=True, check=True).stdout)
    if not doctor["ranks"]:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder_name:
        work = pathlib.Path(folder_name)
        if sys.argv[2] == "numbers":
            numbers(program, work, int(sys.argv[3]))
        elif sys.argv[2] == "ends":
            ends(program, work)
        else:
            kills(program, work, int(sys.argv[3]), int(sys.argv[4]))
    sys.exit(1 if faults else 0)


main()
