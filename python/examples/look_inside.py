"""Look inside a task: its grammar, a sample, what the exact filter believes, and the best that can be had."""
# %% A grammar of ten states whose letters C and D stand for three states each.
from __future__ import annotations

import selectivbench as sb

grammar = sb.Grammar(vocab=6, ambiguities=2, depth=3, seed=1)
print(grammar)
for source, destination, probability in zip(*grammar.transitions):
    print(f"  {grammar.states[source]:>2} -> {grammar.states[destination]:<2} {probability:.3f}")
# In a notebook `grammar` alone shows its picture; grammar.svg() is the text of it.

# %% Task 3: after some elements stands a symbol that the grammar forbids there. Nothing marks it.
task = sb.Task(3, grammar=grammar, length=30, gap_start=5, gap_probability=0.3)
sample = task.sample("test", 0)
by_id = {int(id): name for id, name in zip(grammar.ids, grammar.states)}
print(sample)
print("shown:   ", " ".join(f"{symbol:2}" for symbol in sample.symbols))
print("element: ", " ".join(f"{element:2}" for element in sample.elements))

# %% What the exact filter believes of each element, and how sure it is.
beliefs = sb.filter(task, sample)
for element, (state, best) in enumerate(zip(beliefs.states, beliefs.best)):
    mark = "=" if state == best else "x"
    print(
        f"  {element:2} true {by_id[int(state)]:<2} {mark} {by_id[int(best)]:<2} "
        f"p {beliefs.probability[element]:.3f}, {beliefs.since_certain[element]} since certain"
    )

# %% The ceiling is the mean of that. n-grams come less far; counting transitions of so small a grammar comes as far, within
# the error of these samples.
best_score = sb.ceiling(task, samples=500)
print(f"ceiling {best_score.accuracy:.4f} (s.e. {best_score.stderr:.4f}), no causal model exceeds {best_score.upper_bound:.4f}")
simple = sb.baselines(task, samples=500, train_samples=1000)
print(f"chance {simple.chance:.4f}, last symbol {simple.n_gram[0]:.4f}, {simple.n}-gram {simple.n_gram[simple.n - 1]:.4f}, "
      f"table learner {simple.table_learner:.4f}")

# %% Gaps that are twice as long are the same task at another point.
print(f"ceiling at gaps of 2 frames {sb.ceiling(task.at_gap(2), samples=500).accuracy:.4f}")
