# %% [markdown]
# # A tour of SelectivBench
#
# Look at a sample, train a small model, rank its mixer, read the card. Run this file as a script, or cell by cell in an
# editor that knows `# %%`. It needs torch and the Python package. Everything but the ranking takes a minute. The
# ranking takes up to ten minutes on two cores; TOUR_BUDGET names another time.

# %%
import os

import torch

import selectivbench as sb

BUDGET = os.environ.get("TOUR_BUDGET", "10min")
PEERS = os.environ.get("TOUR_PEERS", "quick")  # shipped results to compare with, or a file of results
OUT = os.environ.get("TOUR_OUT", "runs/tour")

# %% [markdown]
# ## A sample
#
# A random automaton emits symbols. Several states emit the same symbol, so a symbol alone does not tell its state. The
# model sees symbols as one-hot frames and names the hidden state behind each.

# %%
config = sb.Config(
    {
        "grammar.vocab": 6, "grammar.ambiguities": 2, "grammar.depth": 3, "task.number": 1, "task.length": 20,
        "train.updates": 300, "train.batch": 32, "train.lr": 1e-2, "eval.every": 0,
        "eval.valid_samples": 100, "eval.test_samples": 300, "eval.ceiling_samples": 300,
    }  # fmt: skip
)
task = config.task
sample = task.sample("test", 0)
beliefs = sb.filter(task, sample)
print("symbol  state  certainty of the exact filter")
for symbol, state, certainty in list(zip(sample.classes, sample.states, beliefs.probability))[:8]:
    print(f"{symbol:6}  {state:5}  {certainty:.2f}")

# %% [markdown]
# ## What to beat
#
# An n-gram names the most frequent state after the last n symbols. The ceiling is the accuracy of the exact filter, the
# best any causal model can expect. In this small grammar three symbols almost always tell the state, so the n-grams
# reach the ceiling from n = 3 on. The benchmark's own grammars need a longer memory.

# %%
baselines = sb.baselines(task, samples=300, train_samples=3000)
ceiling = sb.ceiling(task, samples=300)
print("n-gram accuracies, n = 1, 2, 3:", ", ".join(f"{each:.3f}" for each in baselines.n_gram[:3]))
print(f"ceiling: {ceiling.accuracy:.3f}")

# %% [markdown]
# ## A mixer
#
# A mixer is the part of a network that carries information between frames: [batch, frames, width] to the same shape.


# %%
class MinGru(torch.nn.Module):
    """h <- (1 - z) h + z c, with gate z and candidate c from the current input alone."""

    def __init__(self, width):
        super().__init__()
        self.gates = torch.nn.Linear(width, 2 * width)
        self.out = torch.nn.Linear(width, width)

    def cell(self, gates, h):
        z, c = gates.chunk(2, -1)
        z = torch.sigmoid(z)
        return (1 - z) * h + z * torch.tanh(c)

    def forward(self, x):
        h, outs = torch.zeros_like(x[:, 0]), []
        for gates in self.gates(x).unbind(1):
            h = self.cell(gates, h)
            outs.append(h)
        return self.out(torch.stack(outs, 1))

    def step(self, x, state):
        h = self.cell(self.gates(x), torch.zeros_like(x) if state is None else state)
        return self.out(h), h


report = sb.check(MinGru, width=32)
print(report)

# %% [markdown]
# ## A small model
#
# Two mixers between an encoder and a decoder, trained for 300 updates.

# %%
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Linear(task.channels, 32), MinGru(32), torch.nn.LayerNorm(32), MinGru(32), torch.nn.Linear(32, task.answers)
)
trained = sb.train(model, config, progress=False)
accuracy = trained.result.test.accuracy
print(trained.result.test)
for n, value in enumerate(baselines.n_gram[:3], 1):
    print(f"{'above' if accuracy > value else 'not above'} the {n}-gram, {value:.3f}")

# %% [markdown]
# ## Its rank
#
# The mixer is trained in the benchmark's network, and compared with the shipped models. The plan is printed first. A
# budget too small for two grammars is refused with the time it would take.

# %%
try:
    ranking = sb.rank(MinGru, BUDGET, out=OUT, peers=PEERS)
    print(ranking)
except ValueError as error:
    ranking = None
    print(error)

# %% [markdown]
# ## The card
#
# `card.html` in the folder shows the same with figures. Two grammars are few: read the possible ranks, not the rank.

# %%
if ranking is not None:
    for standing in ranking.standings:
        print(f"task {standing.task}: rank {standing.rank} of {standing.of}, possible {standing.best} to {standing.worst}")
    print("nearest models:", ", ".join(ranking.nearest))
    print("open", os.path.join(ranking.folder, "card.html"))
