"""The progress of :func:`train` in a terminal: one line that is rewritten, and a line for each evaluation."""
from __future__ import annotations

import time
from typing import TextIO

_SECONDS = 0.2  # between two rewrites of the line


class Progress:
    """Shows rows of the history; ``done`` updates were made by an earlier call."""

    def __init__(self, updates: int, done: int, stream: TextIO) -> None:
        self._updates, self._first, self._stream = updates, done, stream
        self._began = time.monotonic()
        self._shown = float("-inf")
        self._width = 0
        if done:
            self._line(f"resumed at update {done} of {updates}")

    def __call__(self, row: dict[str, float]) -> None:
        """Takes a row."""
        if "valid_loss" in row:
            accuracy = f"valid accuracy {row['valid_accuracy']:.4f}  " if "valid_accuracy" in row else ""
            self._line(f"update {row['update']:.0f}/{self._updates}  {accuracy}valid loss {row['valid_loss']:.4f}")
            return
        now = time.monotonic()
        made = int(row["update"]) + 1
        if now - self._shown < _SECONDS and made < self._updates:
            return
        self._shown = now
        rate = (made - self._first) / max(now - self._began, 1e-9)
        left = int((self._updates - made) / rate)
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        self._rewrite(f"update {made}/{self._updates}  loss {row['loss']:.4f}  {rate:.1f} updates/s  {clock} left")

    def evaluating(self) -> None:
        """The last update was made."""
        self._rewrite("evaluating")

    def end(self) -> None:
        """Leaves an empty line."""
        self._rewrite("")
        self._stream.write("\r")
        self._stream.flush()

    def _rewrite(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def _line(self, text: str) -> None:
        self._rewrite(text)
        self._stream.write("\n")
        self._width = 0
