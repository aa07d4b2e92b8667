"""Random finite automata, built as in the published code or read from a file."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._checks import path, whole
from ._settings import Item, items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Transitions(NamedTuple):
    """Edges, sorted by source and destination, which are indices into ``Grammar.states``."""

    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    probability: NDArray[np.float64]


class Grammar:
    """A random automaton in which a symbol may stand for several states. The defaults are the paper's.

    >>> import selectivbench as sb
    >>> grammar = sb.Grammar(vocab=6, ambiguities=2, depth=3, seed=1)
    >>> grammar
    Grammar(vocab=6, ambiguities=2, depth=3, start_states=4, seed=1): 10 states, entropy 0.9195
    >>> grammar.states[:4], grammar.transitions.probability[:2]
    (['A', 'B', 'E', 'C0'], array([1.        , 0.33333333]))
    >>> sb.Grammar(vocab=6, ambiguities=6)
    Traceback (most recent call last):
    ValueError: [grammar.ambiguities] expected at most vocab - 1 (5), got 6, ambiguities=6
    """

    def __init__(
        self,
        vocab: int = 41,
        ambiguities: int = 40,
        depth: int = 40,
        seed: int = 1,
        *,
        density: float | None = None,
        start_states: int = 4,
    ) -> None:
        given: dict[str, Any] = dict(
            vocab=vocab, ambiguities=ambiguities, depth=depth, density=density, start_states=start_states, seed=seed
        )
        if density is None:
            del given["density"]
        self._native = _native.Grammar(_native.Config(items(given, "grammar"), "Grammar"))

    @classmethod
    def from_json(cls, source: str | os.PathLike[str], seed: int = 1) -> Grammar:
        """Reads your own automaton from a file in the format of ``selectivbench grammar --json``, or from its text.

        ``seed`` is the seed of the samples.

        >>> import selectivbench as sb
        >>> sb.Grammar.from_json('{"states": ["A0", "A1", "#"], "start_states": ["A1"],'
        ...                      ' "transitions": [[1, 0, 0.5], [1, 2, 0.5], [0, 2, 1]]}')
        Grammar.from_json(seed=1): 3 states, entropy 0.2812
        """
        if isinstance(source, str) and source.lstrip().startswith("{"):
            name, text = "text", source.encode(errors="replace").decode()
        else:
            name = path("grammar", source)
            text = _native.read_automaton_text(name)
        pairs: list[Item] = [("grammar.automaton", name, name), *items({"seed": seed}, "grammar")]
        return cls._of(_native.Config(pairs, "Grammar", (name, text)))

    @classmethod
    def _of(cls, config: _native.Config) -> Grammar:
        out = cls.__new__(cls)
        out._native = _native.Grammar(config)
        return out

    @classmethod
    def _from_items(cls, pairs: list[Item], automaton: tuple[str, str] | None) -> Grammar:
        return cls._of(_native.Config(pairs, "Grammar", automaton))

    @property
    def vocab(self) -> int:
        """Number of symbols, including the end symbol ``#`` (class 0); also the number of channels of a frame."""
        return self._native.vocab

    @property
    def seed(self) -> int:
        """Seed of automaton, samples, gaps and noise."""
        return self._native.seed

    @property
    def states(self) -> list[str]:
        """Names of the states. Indices of states refer to this list."""
        return self._native.names

    @property
    def symbols(self) -> NDArray[np.int32]:
        """Class of each state's symbol."""
        return self._native.symbols

    @property
    def ids(self) -> NDArray[np.int32]:
        """Id of each state: the answer that a model has to give."""
        return self._native.ids

    @property
    def start_states(self) -> NDArray[np.int32]:
        """States in which a string begins, all equally likely."""
        return self._native.starts

    @property
    def transitions(self) -> Transitions:
        """Every edge: source, destination and probability."""
        return Transitions(*self._native.transitions)

    @property
    def entropy(self) -> float:
        """Topological entropy in nats, a measure of difficulty."""
        return self._native.entropy

    def figures(self, length: int = 200) -> dict[str, float]:
        """The numbers that ``selectivbench grammar`` prints, such as mixing rate and mean string length.

        >>> import selectivbench as sb
        >>> round(sb.Grammar(vocab=6, ambiguities=2, depth=3).figures()["mean_string_length"], 1)
        6.2
        """
        return self._native.figures(whole("grammar", "length", length, 1, 1_000_000))

    def to_json(self, length: int = 200) -> str:
        """The automaton as JSON, as the program writes it."""
        return self._native.json(whole("grammar", "length", length, 1, 1_000_000))

    def svg(self) -> str:
        """A picture: a graph up to 40 states, an adjacency matrix for more. Notebooks show it automatically."""
        return self._native.svg()

    def dot(self) -> str:
        """All states and edges as text for Graphviz."""
        return self._native.dot()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _given(self) -> list[Item]:
        return self._native.config.items

    def __repr__(self) -> str:
        given = {name.partition(".")[2]: value for name, value, _ in self._given()}
        shown = "(" + ", ".join(f"{key}={given[key]!r}" for key in _ORDER if key in given) + ")"
        start = ".from_json" if "automaton" in given else ""
        return f"Grammar{start}{shown}: {len(self.states)} states, entropy {self.entropy:.4f}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> str:
        return self.to_json() + str(self.seed)

    def __reduce__(self) -> tuple[Callable[..., Grammar], tuple[Any, ...]]:
        return Grammar._from_items, (self._given(), self._native.config.automaton)


_ORDER = ("vocab", "ambiguities", "depth", "density", "start_states", "seed")
