#!/usr/bin/env python3
"""The benchmark a second time, in numpy, written from docs/benchmark.md alone; compared with the program's output.

numpy_twin.py PROGRAM GOLDEN [SCORER]   exit 0 equal, 1 not, 77 without numpy
"""
import bisect
import gzip
import json
import math
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy for " + sys.executable)
    sys.exit(77)

GAP_LENGTH, GAP_PLACE, WRONG_SYMBOL, NOISE = 1, 2, 3, 4
SPLITS = {"train": 0, "valid": 1, "test": 2, "reference": 3}


# ---- random words

def philox(key, counter):
    """Four arrays of words for arrays of counters."""
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    c = [np.asarray(x, dtype=np.uint64) for x in np.broadcast_arrays(*counter)]
    for _ in range(10):
        a = np.uint64(0xD2511F53) * c[0]
        b = np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c


def words(seed, split, index, purpose, count):
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = (blocks, index % 2**32, (index >> 32) ^ (SPLITS[split] << 24), purpose)
    return np.stack(philox((seed % 2**32, seed >> 32), counter), axis=1).reshape(-1)[:count]


# ---- automata

class Automaton:
    def __init__(self, vocab, names, symbol, ids, start, edges):
        self.vocab, self.names, self.symbol, self.ids, self.start = vocab, names, symbol, ids, start
        self.end = names.index("#")
        self.dst = [[] for _ in names]
        self.prob = [[] for _ in names]
        for source, destination, p in sorted(edges):
            self.dst[source].append(destination)
            self.prob[source].append(p)
        self.sums = [np.cumsum(p) for p in self.prob]
        self.forbidden = [[c for c in range(vocab) if c not in {symbol[d] for d in dst}] for dst in self.dst]

    def facts(self):
        return self.vocab, self.names, self.symbol, self.ids, self.start, self.dst, self.prob


def read_automaton(text):
    j = json.loads(text)
    names = j["states"]
    return Automaton(j["vocab"], names, j["symbols"], [j["state_ids"][n] for n in names],
                     [names.index(n) for n in j["start_states"]], [tuple(t) for t in j["transitions"]])


def build_automaton(vocab, ambiguities, depth, seed, starts=4):
    rng = np.random.default_rng(seed)
    symbols = random.Random(int(rng.integers(0, 100)))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[:vocab - 1]
    density = 0.4 / depth
    while True:
        repeated = symbols.sample(list(letters), ambiguities) if ambiguities else []
        names = [x for x in letters if x not in repeated] + [r + str(i) for r in repeated for i in range(depth)] + ["#"]
        of = {x: [i for i, n in enumerate(names) if n[0] == x] for x in letters + "#"}
        edges = []
        for source, name in enumerate(names):
            for x in letters + "#":
                y = rng.permutation(len(of[x]))[0]
                if rng.random() < len(of[x]) * density and name != "#":
                    edges.append((source, of[x][y]))
        start = [names.index(str(n)) for n in rng.choice(names, starts, replace=False)]
        reaches = {len(names) - 1}
        while True:
            more = {s for s, d in edges if d in reaches} - reaches
            if not more:
                break
            reaches |= more
        if len(reaches) == len(names) and len(names) - 1 not in start:
            break
    degree = [sum(1 for s, _ in edges if s == i) for i in range(len(names))]
    index = {n: int(n[1:] or 0) for n in names}
    ordered = ["#"] + [n for x in letters for n in sorted((n for n in names if n[0] == x), key=index.get)]
    return Automaton(vocab, names, [0 if n == "#" else letters.index(n[0]) + 1 for n in names],
                     [ordered.index(n) for n in names], start, [(s, d, 1.0 / degree[s]) for s, d in edges])


# ---- samples

def draw_states(a, seed, split, index, length):
    seeds = {"valid": [seed, 1, index], "test": [seed, 2, index]}
    g = np.random.default_rng(seeds.get(split, seed * index))
    out = []
    while len(out) < length:
        string = [a.start[g.integers(len(a.start))]]
        while string[-1] != a.end and len(string) <= length:
            s = string[-1]
            edge = 0 if len(a.dst[s]) == 1 else int(np.searchsorted(a.sums[s], g.random(), side="right"))
            string.append(a.dst[s][min(edge, len(a.dst[s]) - 1)])
        if len(string) <= length:
            out += string
    return out[:length]


def draw_gaps(a, law, seed, split, index, states):
    length = len(states)
    w = [int(x) for x in words(seed, split, index, GAP_LENGTH, length)]
    place = [int(x) for x in words(seed, split, index, GAP_PLACE, length)]
    chosen = math.floor(law["probability"] * 2**32 + 0.5)
    low, high = law["min"], law["max"]
    thresholds = []
    if law["law"] == "lognormal":
        for k in range(high - low):
            z = (math.log(low + k + 0.5) - law["mu"]) / law["sigma"]
            thresholds.append(math.floor(2**32 * 0.5 * math.erfc(-z / math.sqrt(2)) + 0.5))
    gaps = []
    for e in range(length):
        n = low
        if law["law"] == "uniform":
            n = low + ((w[e] * 2 * (high - low) >> 32) + 1) // 2
        elif law["law"] == "lognormal":
            n = low + bisect.bisect_right(thresholds, w[e])
        gaps.append(n if e >= law["start"] and place[e] < chosen else 0)
    wrong = []
    if law["content"] == "forbidden_symbol":
        gaps = [n if a.forbidden[s] else 0 for n, s in zip(gaps, states)]
        symbols = iter(words(seed, split, index, WRONG_SYMBOL, sum(gaps)))
        for n, s in zip(gaps, states):
            wrong += [a.forbidden[s][int(next(symbols)) * len(a.forbidden[s]) >> 32] for _ in range(n)]
    return gaps, wrong


def dense(a, noise, seed, split, index, states, gaps, wrong):
    """frames [T, vocab] float32, targets [T], starts [elements + 1]"""
    shown, targets, starts, left = [], [], [0], iter(wrong)
    for s, n in zip(states, gaps):
        shown += [a.symbol[s]] + [next(left, -1) for _ in range(n)]
        targets += [a.ids[s]] * (1 + n)
        starts.append(len(shown))
    frames = np.zeros((len(shown), a.vocab), dtype=np.float32)
    if noise > 0:
        u = (words(seed, split, index, NOISE, frames.size) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
        frames += (np.float32(noise) * u).reshape(frames.shape)
    for t, c in enumerate(shown):
        if c >= 0:
            frames[t, c] += np.float32(1)
    return frames, targets, starts


# ---- n-gram

class Ngrams:
    MOST = 8

    def __init__(self, samples):
        """samples: per sample the context of each element (symbols shown before and at it) and its state's id."""
        self.counts = {}
        for sample in samples:
            for context, state in sample:
                for n in range(self.MOST + 1):
                    at = self.counts.setdefault(self.suffix(context, n), {})
                    at[state] = at.get(state, 0) + 1

    @staticmethod
    def suffix(context, n):
        padded = [-1] * n + context
        return tuple(padded[len(padded) - n:])

    def answer(self, context, n):
        while self.suffix(context, n) not in self.counts:
            n -= 1
        found = self.counts[self.suffix(context, n)]
        return min(s for s in found if found[s] == max(found.values()))

    def right(self, samples, n):
        """Elements named right, of each sample."""
        return np.array([sum(self.answer(c, n) == s for c, s in sample) for sample in samples])


def contexts(a, law, seed, split, index, length):
    states = draw_states(a, seed, split, index, length)
    gaps, wrong = draw_gaps(a, law, seed, split, index, states) if law["law"] != "none" else ([0] * length, [])
    shown, left, out = [], iter(wrong), []
    for s, n in zip(states, gaps):
        shown.append(a.symbol[s])
        out.append((shown[-Ngrams.MOST:], a.ids[s]))
        if law["law"] != "none" and law["content"] == "forbidden_symbol":
            shown += [next(left) for _ in range(n)]
    return out


# ---- metric

def score(logits, starts, targets):
    """One sample: logits [T, classes]. Elements named, hits, summed cross-entropy."""
    z = logits.astype(np.float64)
    z = z - z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    named = [int(np.argmax(p[b:e].sum(axis=0))) for b, e in zip(starts, starts[1:]) if e > b]
    truth = [targets[b] for b, e in zip(starts, starts[1:]) if e > b]
    return named, sum(n == t for n, t in zip(named, truth)), -sum(math.log(p[t, targets[t]]) for t in range(starts[-1]))


# ---- ceiling

class Filter:
    def __init__(self, a, law, length):
        self.a, self.law, self.length = a, law, length
        reach = np.zeros(len(a.names))
        reach[a.end] = 1
        self.h = [reach]
        for _ in range(length):
            reach = np.array([1.0 if s == a.end else sum(p * reach[d] for p, d in zip(a.prob[s], a.dst[s]))
                              for s in range(len(a.names))])
            self.h.append(reach)
        self.first = {s: self.h[length - 1][s] for s in a.start}
        total = sum(self.first.values())
        self.first = {s: p / total for s, p in self.first.items()}
        low, high, p = law["min"], law["max"], law["probability"]
        if law["law"] == "uniform" and high > low:
            exactly = {n: (0.5 if n in (low, high) else 1.0) / (high - low) for n in range(low, high + 1)}
        else:
            exactly = {low: 1.0}
        self.exactly = [p * exactly.get(n, 0.0) + (1 - p if n == 0 else 0.0) for n in range(max(exactly) + 1)]

    def gap(self, state, element, g):
        """(goes on, stops)"""
        blank = self.law["content"] == "blank"
        if element < self.law["start"] or not (blank or self.a.forbidden[state]):
            return 0.0, 1.0
        beyond = sum(self.exactly[g + 1:])
        return beyond / (beyond + self.exactly[g]), self.exactly[g] / (beyond + self.exactly[g])

    def successors(self, state, used):
        if state == self.a.end:
            return self.first.items()
        left = self.length - used
        return [(d, p * self.h[left - 1][d] / self.h[left][state])
                for p, d in zip(self.a.prob[state], self.a.dst[state])]

    def step(self, live, shown):
        after = {}
        for (s, u, e, g), weight in live.items():
            on, stop = (0.0, 1.0) if e < 0 else self.gap(s, e, g)
            if self.law["content"] == "blank":
                emits = 1.0 if shown < 0 else 0.0
            else:
                emits = 1 / len(self.a.forbidden[s]) if shown in self.a.forbidden[s] else 0.0
            if on * emits > 0:
                after[s, u, e, g + 1] = after.get((s, u, e, g + 1), 0.0) + weight * on * emits
            if shown < 0 or stop == 0 or e + 1 >= self.length:
                continue
            for d, p in self.successors(s, u):
                if self.a.symbol[d] == shown and p > 0:
                    key = (d, 1 if s == self.a.end else u + 1, e + 1, 0)
                    after[key] = after.get(key, 0.0) + weight * stop * p
        total = sum(after.values())
        self.log_likelihood += math.log(total)
        return {k: w / total for k, w in after.items()}

    def follow(self, frames, starts):
        """For each element pi(named), max pi, its entropy, and the ids that share the largest sum."""
        live = {(self.a.end, 0, -1, 0): 1.0}
        self.log_likelihood = 0.0
        out = []
        for begin, end in zip(starts, starts[1:]):
            summed = np.zeros(len(self.a.names))
            for t in range(begin, end):
                c = int(frames[t].argmax())
                live = self.step(live, c if frames[t, c] >= 1 else -1)
                for (s, _, _, _), weight in live.items():
                    summed[self.a.ids[s]] += weight
            given = np.zeros(len(self.a.names))
            for (s, _, e, g), weight in live.items():
                if g == end - begin - 1:
                    given[self.a.ids[s]] += weight * self.gap(s, e, g)[1]
            given /= given.sum()
            ties = np.flatnonzero(summed > summed.max() - 1e-12)
            some = given[given > 0]
            out.append((given[ties[0]], given.max(), float(-(some * np.log(some)).sum()), ties))
        return out

    def next_law(self, state, used, fits):
        """Law over the next class; fits: of strings that fit the length, else the grammar's own."""
        out = np.zeros(self.a.vocab)
        if fits:
            law = self.successors(state, used)
        elif state == self.a.end:
            law = [(d, 1 / len(self.a.start)) for d in self.a.start]
        else:
            law = zip(self.a.dst[state], self.a.prob[state])
        for d, p in law:
            out[self.a.symbol[d]] += p
        return out

    def follow_predict(self, frames, starts):
        """For each element P(the class named), its bound, KL, its bound."""
        live = {(self.a.end, 0, -1, 0): 1.0}
        self.log_likelihood = 0.0
        out = []
        for begin, end in zip(starts, starts[1:]):
            summed, mixed = np.zeros(self.a.vocab), np.zeros(self.a.vocab)
            for t in range(begin, end):
                c = int(frames[t].argmax())
                live = self.step(live, c if frames[t, c] >= 1 else -1)
                summed += sum(w * self.next_law(s, u, True) for (s, u, _, _), w in live.items())
                mixed += sum(w * self.next_law(s, u, False) for (s, u, _, _), w in live.items()) / (end - begin)
            given = {(s, u): w * self.gap(s, e, g)[1] for (s, u, e, g), w in live.items() if g == end - begin - 1}
            total = sum(given.values())
            following, law, known = np.zeros(self.a.vocab), np.zeros(self.a.vocab), 0.0
            for (s, u), w in given.items():
                following += w / total * self.next_law(s, u, True)
                own = self.next_law(s, u, False)
                law += w / total * own
                known += w / total * (own[own > 0] * np.log(own[own > 0])).sum()
            some = law > 0
            named = int(np.argmax(summed > summed.max() - 1e-12))
            out.append((following[named], following.max(), known - (law[some] * np.log(mixed[some])).sum(),
                        known - (law[some] * np.log(law[some])).sum()))
        return out


# ---- comparison with the program

class Twin:
    def __init__(self, program, folder):
        self.program, self.folder, self.compared = program, folder, 0

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, arguments))}: exit {done.returncode}, {done.stderr}")
        return done.stdout

    def equal(self, what, ours, theirs):
        self.compared += 1
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if ours.shape != theirs.shape:
            raise AssertionError(f"{what}: shape {ours.shape} here, {theirs.shape} from the program")
        if not np.array_equal(ours, theirs):
            at = tuple(int(i) for i in np.argwhere(ours != theirs)[0])
            raise AssertionError(f"{what}: at {at} {ours[at]} here, {theirs[at]} from the program")

    def near(self, what, ours, theirs):
        self.compared += 1
        if not np.allclose(ours, theirs, rtol=0, atol=1e-6):
            raise AssertionError(f"{what} differs: {ours!r} here, {theirs!r} from the program")

    def grammar(self, vocab, ambiguities, depth, seed):
        options = ["--vocab", vocab, "--ambiguities", ambiguities, "--depth", depth, "--seed", seed]
        theirs = read_automaton(self.run("grammar", *options, "--json", "-"))
        ours = build_automaton(vocab, ambiguities, depth, seed)
        for name, a, b in zip(("vocab", "states", "symbols", "ids", "start", "edges", "probabilities"), ours.facts(),
                              theirs.facts()):
            self.compared += 1
            if a != b:
                raise AssertionError(f"grammar {options}: {name} differ: {a!r} here, {b!r} from the program")
        return ours, options, seed

    def samples(self, source, length, split, task, start=0, count=6, lines=False):
        """lines: the same as JSON, too."""
        a, options, seed = source
        out = os.path.join(self.folder, "samples")
        where = f"{options} {split} {task} from {start}"
        common = [*options, "--length", length, "--split", split, *task, "--start", start, "--count", count]
        common += ["--out", out]
        rows = []
        if lines:
            self.run("generate", *common)
            rows = [json.loads(line) for line in open(out)]
            self.equal(f"{where}: lines", len(rows), count)
        self.run("generate", *common, "--format", "npz", "--dense")
        law, noise, objective = self.law(out, split)
        arrays = np.load(out)
        self.equal(f"{where}: index", arrays["index"], np.arange(start, start + count, dtype=np.uint64))
        for i in range(count):
            index = start + i
            states = draw_states(a, seed, split, index, length)
            gaps, wrong = draw_gaps(a, law, seed, split, index, states) if law["law"] != "none" else ([0] * length, [])
            ours = {"index": index, "classes": [a.symbol[s] for s in states], "states": [a.ids[s] for s in states]}
            if law["law"] != "none":
                ours["gaps"] = gaps
                if law["content"] == "forbidden_symbol":
                    ours["wrong"] = wrong
                    begin, end = arrays["wrong_offsets"][i:i + 2]
                    self.equal(f"{where}: wrong symbols of {index}", wrong, arrays["wrong"][begin:end])
            for name in set(ours) - {"index", "wrong"}:
                self.equal(f"{where}: {name} of {index}", ours[name], arrays[name][i])
            if lines:
                self.compared += 1
                assert ours == rows[i], f"{where}: line {i} is {rows[i]}, expected {ours}"
            frames, targets, starts = dense(a, noise, seed, split, index, states, gaps, wrong)
            if objective == "predict":
                following = [a.symbol[s] for s in states[1:]] + [-1]
                targets = [c for c, n in zip(following, gaps) for _ in range(1 + n)]
            padding = arrays["frames"].shape[1] - len(targets)
            self.equal(f"{where}: starts of {index}", starts, arrays["starts"][i])
            self.equal(f"{where}: targets of {index}", targets + [-1] * padding, arrays["targets"][i])
            padded = np.concatenate([frames, np.zeros((padding, a.vocab), dtype=np.float32)])
            self.equal(f"{where}: bits of the frames of {index}", padded.view(np.uint32),
                       arrays["frames"][i].view(np.uint32))

    @staticmethod
    def law(out, split):
        task = json.load(open(out + ".manifest.json"))["task"]
        law = task["train_gap" if split == "train" else "test_gap"]
        return law, task["noise"], task["objective"]

    def ceiling(self, source, length, split, task, samples=24):
        a, options, seed = source
        where = f"ceiling {options} {split} {task}"
        theirs = json.loads(self.run("ceiling", *options, "--length", length, "--split", split, *task, "--samples",
                                     samples, "--json", "-"))
        law, noise = theirs["task"]["train_gap" if split == "train" else "test_gap"], theirs["task"]["noise"]
        exact = Filter(a, law, length)
        named, bound, entropy, rates, least, most = [], [], [], [], 0, 0
        for index in range(samples):
            states = draw_states(a, seed, split, index, length)
            gaps, wrong = draw_gaps(a, law, seed, split, index, states)
            frames, _, starts = dense(a, noise, seed, split, index, states, gaps, wrong)
            beliefs = exact.follow(frames, starts)
            rates.append(-exact.log_likelihood / length)
            named.append([b[0] for b in beliefs])
            bound.append(np.mean([b[1] for b in beliefs]))
            entropy.append([b[2] for b in beliefs])
            for s, (_, _, _, ties) in zip(states, beliefs):
                least += len(ties) == 1 and ties[0] == a.ids[s]
                most += a.ids[s] in ties
        means = np.mean(named, axis=1)
        self.near(where, np.mean(named), theirs["ceiling"])
        self.near(f"{where}: standard error", np.std(means, ddof=1) / math.sqrt(samples), theirs["stderr"])
        self.near(f"{where}: upper bound", np.mean(bound), theirs["upper_bound"])
        self.near(f"{where}: entropy", np.mean(entropy), theirs["mean_entropy"])
        self.near(f"{where}: entropy rate", np.mean(rates), theirs["entropy_rate"])
        self.near(f"{where}: by position", np.mean(named, axis=0), theirs["by_position"])
        self.near(f"{where}: entropy by position", np.mean(entropy, axis=0), theirs["entropy_by_position"])
        hits = theirs["counted"] * samples * length
        self.near(f"{where}: hits of the program within ours, ties either way", max(least, min(most, hits)), hits)
        return float(np.mean(named))

    def predict_ceiling(self, source, length, split, task, samples=12):
        a, options, seed = source
        where = f"ceiling of predict {options} {split} {task}"
        theirs = json.loads(self.run("ceiling", *options, "--length", length, "--split", split, *task, "--objective",
                                     "predict", "--samples", samples, "--json", "-"))
        law, noise = theirs["task"]["train_gap" if split == "train" else "test_gap"], theirs["task"]["noise"]
        exact = Filter(a, law, length)
        rows = []
        for index in range(samples):
            states = draw_states(a, seed, split, index, length)
            gaps, wrong = draw_gaps(a, law, seed, split, index, states)
            frames, _, starts = dense(a, noise, seed, split, index, states, gaps, wrong)
            rows.append(exact.follow_predict(frames, starts))
        rows = np.array(rows)  # [samples, elements, 4]; nothing follows the last element
        self.near(f"{where}: accuracy", rows[:, :-1, 0].mean(), theirs["ceiling"])
        self.near(f"{where}: upper bound", rows[:, :-1, 1].mean(), theirs["upper_bound"])
        self.near(f"{where}: KL", rows[:, :, 2].mean(), theirs["kl"])
        self.near(f"{where}: bound of KL", rows[:, :, 3].mean(), theirs["kl_bound"])

    def ngram(self, source, length, task, samples=20, train=60):
        a, options, seed = source
        where = f"n-gram {options} {task}"
        theirs = json.loads(self.run("ceiling", *options, "--length", length, *task, "--samples", samples, "--baselines",
                                     "--train-samples", train, "--json", "-"))
        laws = theirs["task"]
        theirs = theirs["baselines"]
        of = {split: [contexts(a, laws["train_gap" if split == "train" else "test_gap"], seed, split, i, length)
                      for i in range(train if split == "train" else samples)] for split in ("train", "valid", "test")}
        grams = Ngrams(of["train"])
        orders = range(1, grams.MOST + 1)
        best = max(orders, key=lambda n: (sum(grams.right(of["valid"], n)), -n))
        test = grams.right(of["test"], best) / length
        self.near(f"{where}: accuracies", [np.mean(grams.right(of["test"], n)) / length for n in orders], theirs["n_gram"])
        self.near(f"{where}: majority", np.mean(grams.right(of["test"], 0)) / length, theirs["majority"])
        self.equal(f"{where}: n", best, theirs["n"])
        self.near(f"{where}: standard error", np.std(test, ddof=1) / math.sqrt(samples), theirs["n_gram_stderr"])

    def worked_example(self):
        """The example of the page."""
        p = np.array([[0.1, 0.3, 0.6], [0.2, 0.7, 0.1], [0.5, 0.1, 0.4]])
        named, hits, loss = score(np.log(p), [0, 2, 3], [1, 1, 2])
        self.equal("worked example: states named", named, [1, 0])
        self.equal("worked example: hits", hits, 1)
        self.equal("worked example: loss", round(loss / 3, 4), 0.8256)

    def recorded_metric(self, golden):
        with gzip.open(os.path.join(golden, "grammar", "metric_cases.json.gz")) as file:
            cases = json.load(file)
        for case in cases:
            logits = np.array(case["logits"], dtype=np.float32).reshape(case["B"], case["T"], case["C"])
            hits = loss = frames = elements = 0
            for b in range(case["B"]):
                starts = [s for s, _ in case["element_start_len"][b]] + [case["lens"][b]]
                named, right, nats = score(logits[b], starts, case["labels"][b])
                self.equal(f"metric {case['name']}: states named", named, case["pred"][b][:len(named)])
                padded = case["elements_padded_to"] - len(named)  # the published code counts these as right
                hits, elements = hits + right + padded, elements + len(named) + padded
                loss, frames = loss + nats, frames + case["lens"][b]
            self.near(f"metric {case['name']}: accuracy", hits / elements, case["accuracy"])
            self.near(f"metric {case['name']}: loss", loss / frames / case["loss"], 1.0)

    def random_metric(self, scorer, batch=3, elements=9, classes=17):
        """Random probabilities, scored here and by the program's own metric."""
        g = np.random.default_rng(7)
        lengths = g.integers(1, 5, (batch, elements))
        starts = np.concatenate([np.zeros((batch, 1), dtype=np.int64), lengths.cumsum(axis=1)], axis=1)
        frames = int(starts[:, -1].max())
        targets = np.full((batch, frames), -1)
        for b in range(batch):
            targets[b, :starts[b, -1]] = np.repeat(g.integers(0, classes, elements), lengths[b])
        logits = g.normal(0, 3, (batch, frames, classes)).astype(np.float32)
        for b in range(batch):  # some right ones
            for t in range(0, starts[b, -1], 2):
                logits[b, t, targets[b, t]] += 4
        path = os.path.join(self.folder, "scored")
        with open(path, "wb") as file:
            for part in ([batch, frames, elements, classes], starts, targets):
                file.write(np.asarray(part, dtype="<i4").tobytes())
            file.write(logits.astype("<f4").tobytes())
        theirs = json.loads(subprocess.run([scorer, path], capture_output=True, text=True, check=True).stdout)
        named, hits, loss = [], 0, 0.0
        for b in range(batch):
            more, right, nats = score(logits[b], list(starts[b]), targets[b])
            named, hits, loss = named + more, hits + right, loss + nats
        self.equal("random metric: states named", named, theirs["predicted"])
        self.near("random metric: accuracy", hits / (batch * elements), theirs["accuracy"])
        self.near("random metric: loss", loss / starts[:, -1].sum(), theirs["loss"])


OWN = {"states": ["A0", "A1", "B", "C", "#"], "start_states": ["A1", "B"],
       "transitions": [[0, 2, 0.25], [0, 3, 0.75], [1, 0, 0.5], [1, 4, 0.5], [2, 1, 0.3], [2, 0, 0.3], [2, 4, 0.4],
                       [3, 4, 1]]}


def own_automaton(twin):
    """A user's file: unequal probabilities, symbols and ids from the names."""
    path = os.path.join(twin.folder, "own.json")
    with open(path, "w") as file:
        json.dump(OWN, file)
    ours = Automaton(4, OWN["states"], [1, 1, 2, 3, 0], [1, 2, 3, 4, 0], [1, 2], [tuple(t) for t in OWN["transitions"]])
    return ours, ["--automaton", path, "--seed", 3], 3


def main():
    program, golden = sys.argv[1], sys.argv[2]
    zero = philox((0, 0), ([0], [0], [0], [0]))
    assert [int(x[0]) for x in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], "Philox"
    with tempfile.TemporaryDirectory() as folder:
        twin = Twin(program, folder)
        small = twin.grammar(6, 2, 3, 1)
        twelve = twin.grammar(13, 12, 12, 2)
        large_seed = twin.grammar(5, 2, 2, 2**33 + 5)
        own = own_automaton(twin)
        task2, task3 = ["--task", 2], ["--task", 3, "--gap-start", 5, "--gap-probability", 0.4]
        for split in SPLITS:
            twin.samples(small, 30, split, task2, lines=split == "test")
        for source in (twelve, own):
            twin.samples(source, 30, "test", task2)
        for source in (small, twelve, own):
            twin.samples(source, 40, "train", task3, lines=source is own)
        twin.samples(small, 40, "test", ["--task", 1])
        twin.samples(small, 40, "train", ["--task", 0], lines=True)
        twin.samples(small, 20, "train", [*task2, "--objective", "predict"])
        twin.samples(small, 20, "test", task2, start=2**32 + 2**31 + 7)  # both words of the index
        twin.samples(large_seed, 20, "test", task2)  # both words of the key
        lognormal = ["--task", 0, "--gap-law", "lognormal", "--gap-min", 0, "--gap-max", 9, "--gap-mu", 1.2,
                     "--gap-sigma", 0.8, "--gap-probability", 0.75]
        twin.samples(small, 40, "train", lognormal)
        below = 0
        for source in (small, twelve, own):
            below += twin.ceiling(source, 30, "test", task2) < 0.999
            twin.ceiling(source, 20, "train", task2)
            twin.ceiling(source, 8, "test", task2)  # the length conditioning matters most
        twin.ceiling(small, 30, "valid", ["--task", 1])
        twin.ceiling(small, 30, "train", task3)
        twin.ceiling(own, 30, "test", task3)
        for source in (small, twelve, own):
            twin.ngram(source, 30, task2)
            twin.ngram(source, 30, task3)
        assert below > 0, "every ceiling is 1: nothing was compared"
        if "kl" in twin.run("ceiling", *small[1], "--samples", 1, "--objective", "predict", "--json", "-"):
            twin.predict_ceiling(small, 12, "test", task2)
            twin.predict_ceiling(own, 12, "train", task3)
        twin.worked_example()
        twin.recorded_metric(golden)
        if len(sys.argv) > 3:
            twin.random_metric(sys.argv[3])
        print(f"equal: {twin.compared} comparisons")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        print(f"[twin] {error}", file=sys.stderr)
        sys.exit(1)
