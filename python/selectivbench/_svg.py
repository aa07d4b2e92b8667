"""Line and scatter charts as SVG, without any library."""
from __future__ import annotations

import math
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape

_CONVERTER = "rsvg-convert"  # of librsvg2-bin
_WIDTH, _PLOT = 480, 200  # of a chart; height of its plot
_LEFT, _RIGHT, _TOP = 58, 14, 34
_NAMES = 150  # right of a scatter chart, for the names of its points
_CHARACTER = 6.8  # width of an average character of a legend
_COLOURS = ("#0b5fa5", "#c25e10", "#2e8b57", "#8250a8", "#666666")
_GRID, _BAND, _PAPER, _REFERENCE = "#dddddd", "#eef1f5", "#ffffff", "#707070"
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_DASHES = ("6 3", "2 3")
_Key = tuple[str, str, bool]  # of a legend: name, mark, bold
# Colours on a dark page, in place of those above.
DARK = dict(zip((*_COLOURS, _GRID, _BAND, _PAPER, _REFERENCE),
                ("#7ab8f5", "#f0a35e", "#6fce9b", "#c9a2ec", "#b4bac2", "#3a414d", "#232932", "#121418", "#a4abb5")))  # fmt: skip


def line_chart(
    title: str,
    x_label: str,
    ticks: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    references: Mapping[str, Sequence[float | None]] | None = None,
    band: tuple[str, int] | None = None,
) -> str:
    """Accuracies from 0 to 1 over evenly spaced places; the first series is bold. Places without a value interrupt a line.

    ``ticks``: labels of the places, of one or more lines. ``references``: thin dashed lines. ``band``: the name of a shaded
    range, and how many places from the left it covers.

    >>> from selectivbench._svg import line_chart
    >>> series = {"mine": [0.5, 1.0], "other": [None, 0.25]}
    >>> chart = line_chart("a < b", "task", ["1", "2"], series, {"ceiling": [1.0, 1.0]})
    >>> chart.count("<polyline"), chart.count("<circle"), "a &lt; b" in chart, chart.count("stroke-dasharray")
    (2, 3, True, 2)
    """
    across = _WIDTH - _LEFT - _RIGHT

    def x(place: float) -> float:
        return _LEFT + across * (place + 0.5) / len(ticks)

    def y(value: float) -> float:
        return _TOP + _PLOT * (1 - value)

    out: list[str] = []
    shaded: list[_Key] = []
    if band is not None and band[1] > 0:
        shape = f'y="{_TOP}" width="{x(band[1] - 0.5) - _LEFT:.1f}" height="{_PLOT}" fill="{_BAND}"'
        out.append(f'<rect x="{_LEFT}" {shape}/>')
        shaded.append((band[0], f'<rect width="18" height="10" y="-9" fill="{_BAND}" stroke="{_GRID}"/>', False))
    out += [_grid_line(y(quarter / 4), quarter / 4, _WIDTH - _RIGHT) for quarter in range(5)]
    lines = max(tick.count("\n") for tick in ticks) + 1
    every = next((step for step in _STEPS if 12 * step >= len(ticks)), len(ticks))  # labels that fit
    for place in range(0, len(ticks), every):
        for index, line in enumerate(ticks[place].split("\n")):
            out.append(_tick(x(place), index, line))
    own: list[_Key] = []
    keys: list[_Key] = []
    for index, (name, values) in enumerate((references or {}).items()):
        look = f'stroke="{_REFERENCE}" stroke-width="1.2" stroke-dasharray="{_DASHES[index % len(_DASHES)]}"'
        ends = [(-0.5, values[0]), *enumerate(values), (len(ticks) - 0.5, values[-1])]
        points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in ends if value is not None)
        out.append(f'<polyline points="{points}" fill="none" {look}/>')
        keys.append((name, f'<line x2="18" y1="-4" y2="-4" {look}/>', False))
    for index, (name, values) in enumerate(series.items()):
        colour, bold = _COLOURS[index % len(_COLOURS)], index == 0
        look = f'stroke="{colour}" stroke-width="{3 if bold else 1.5}"'
        for stretch in _stretches(values):
            points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in stretch)
            if len(stretch) > 1:
                out.append(f'<polyline points="{points}" fill="none" {look}/>')
            if len(ticks) <= 12:
                for place, value in stretch:
                    out.append(f'<circle cx="{x(place):.1f}" cy="{y(value):.1f}" r="{4 if bold else 3}" fill="{colour}"/>')
        own.append((name, f'<line x2="18" y1="-4" y2="-4" {look}/>', bold))
    bottom = _TOP + _PLOT + 16 * lines + 24
    legend, height = _legend([*own, *keys, *shaded], bottom + 24)
    frame = _frame(title, x_label, "accuracy", height, bottom, _LEFT + across / 2)
    return "\n".join([*frame, *out, *legend, "</svg>"]) + "\n"


def scatter_chart(
    title: str, x_label: str, y_label: str, points: Mapping[str, tuple[float, float]], coloured: Sequence[str] = ()
) -> str:
    """Points (x, accuracy) with their names over a logarithmic x; the first is bold.

    The accuracies shown are those around the points.
    ``coloured``: names in the order of the colours that they have in line charts; all others are grey.

    >>> from selectivbench._svg import scatter_chart
    >>> chart = scatter_chart("size", "values", "accuracy", {"mine": (100, 0.86), "other": (1000, 0.93)})
    >>> chart.count("<circle"), ">0.85<" in chart, ">0.95<" in chart, ">1,024<" in chart
    (2, True, True, True)
    """
    right = _WIDTH - _NAMES
    accuracies = [value for _, value in points.values()]
    low, high = min(math.floor(20 * min(accuracies)), 19), math.ceil(20 * max(accuracies))  # steps of 0.05
    high = max(high, low + 1)
    sizes = [math.log2(size) for size, _ in points.values()]
    first, last = math.floor(min(sizes)), max(math.ceil(max(sizes)), math.floor(min(sizes)) + 1)

    def x(size: float) -> float:
        return _LEFT + (right - _LEFT) * (math.log2(size) - first) / (last - first)

    def y(value: float) -> float:
        return _TOP + _PLOT * (1 - (20 * value - low) / (high - low))

    out = [_grid_line(y(step / 20), step / 20, right) for step in range(low, high + 1, -(-(high - low) // 5))]
    out += [_tick(x(2**power), 0, f"{2**power:,}") for power in range(first, last + 1, -(-(last - first) // 5))]
    label_at, halo = -math.inf, f'paint-order="stroke" stroke="{_PAPER}" stroke-width="3"'
    for name in sorted(points, key=lambda each: -points[each][1]):
        size, value = points[name]
        bold = name == next(iter(points))
        colour = _COLOURS[coloured.index(name)] if name in coloured else _COLOURS[-1]
        label_at = max(label_at + 14, y(value))  # labels do not overlap
        out.append(f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="{5 if bold else 3.5}" fill="{colour}"/>')
        out.append(f'<text x="{x(size) + 8:.1f}" y="{label_at + 4:.1f}"{_weight(bold)} {halo}>{_label(name)}</text>')
    bottom = _TOP + _PLOT + 40
    frame = _frame(title, x_label, y_label, max(bottom + 10, round(label_at) + 12), bottom, (_LEFT + right) / 2)
    return "\n".join([*frame, *out, "</svg>"]) + "\n"


def has_png() -> bool:
    """Whether PNG files can be written."""
    return shutil.which(_CONVERTER) is not None


def write_png(svg: pathlib.Path) -> None:
    """Writes the PNG beside an SVG file, at twice its size, if the converter is installed."""
    if has_png():
        command = [_CONVERTER, "--zoom", "2", "--output", str(svg.with_suffix(".png")), str(svg)]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _frame(title: str, x_label: str, y_label: str, height: int, x_label_at: int, middle: float) -> list[str]:
    """The beginning of a chart: its size, title, background and the names of its axes."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12.5" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}"/>',
        f'<text x="{_LEFT}" y="18" font-weight="bold" font-size="13.5">{escape(title)}</text>',
        f'<text x="{middle:.1f}" y="{x_label_at}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="rotate(-90)" x="{-_TOP - _PLOT // 2}" y="15" text-anchor="middle">{escape(y_label)}</text>',
    ]


def _legend(keys: Sequence[_Key], top: int) -> tuple[list[str], int]:
    """Names beside their marks in as many lines as they need, and the height of the chart."""
    out = []
    x, y = float(_LEFT), top
    for name, mark, bold in keys:
        width = 38 + _CHARACTER * min(len(name), 22)
        if x > _LEFT and x + width > _WIDTH:
            x, y = float(_LEFT), y + 18
        out.append(f'<g transform="translate({x:.1f} {y})">{mark}<text x="24"{_weight(bold)}>{_label(name)}</text></g>')
        x += width
    return out, y + 12


def _tick(x: float, line: int, text: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{_TOP + _PLOT + 17 + 15 * line}" text-anchor="middle">{escape(text)}</text>'


def _grid_line(at: float, value: float, right: float) -> str:
    return (
        f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="{_GRID}"/>'
        f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:.2f}</text>'
    )


def _weight(bold: bool) -> str:
    return ' font-weight="bold"' if bold else ""


def _label(name: str) -> str:
    return escape(name if len(name) <= 22 else name[:21] + "…")


def _stretches(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Neighbouring places that have values."""
    out: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            out.append([])
        else:
            out[-1].append((place, value))
    return [stretch for stretch in out if stretch]
