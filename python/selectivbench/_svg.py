"""Line and scatter charts as SVG, without any library."""
from __future__ import annotations

import math
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape

_CONVERTER = "rsvg-convert"  # of librsvg2-bin
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 190, 16, 44
_COLOURS = ("#0b5fa5", "#d1701c", "#2e8b57", "#8250a8", "#666666")


def line_chart(title: str, x_label: str, ticks: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """Accuracies from 0 to 1 over evenly spaced places; the first series is bold. Places without a value interrupt a line.

    >>> from selectivbench._svg import line_chart
    >>> chart = line_chart("a < b", "task", ["1", "2"], {"mine": [0.5, 1.0], "other": [None, 0.25]})
    >>> chart.count("<polyline"), chart.count("<circle"), "a &lt; b" in chart
    (1, 3, True)
    """
    across = _WIDTH - _LEFT - _RIGHT
    down = _HEIGHT - _TOP - _BOTTOM

    def x(place: int) -> float:
        return _LEFT + across * (place + 0.5) / len(ticks)

    def y(value: float) -> float:
        return _TOP + down * (1 - value)

    out = [*_frame(title, x_label), *(_grid_line(y(quarter / 4), quarter / 4) for quarter in range(5))]
    every = -(-len(ticks) // 12)  # labels that fit
    for place in range(0, len(ticks), every):
        out.append(f'<text x="{x(place):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{escape(ticks[place])}</text>')
    for index, (name, values) in enumerate(series.items()):
        colour, bold = _COLOURS[index % len(_COLOURS)], index == 0
        for stretch in _stretches(values):
            points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in stretch)
            if len(stretch) > 1:
                out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{3 if bold else 1.5}"/>')
            if len(ticks) <= 12:
                for place, value in stretch:
                    out.append(f'<circle cx="{x(place):.1f}" cy="{y(value):.1f}" r="{4 if bold else 3}" fill="{colour}"/>')
        at = _TOP + 14 + 20 * index
        key = _WIDTH - _RIGHT + 14
        out.append(f'<line x1="{key}" y1="{at - 4}" x2="{key + 18}" y2="{at - 4}" stroke="{colour}" stroke-width="{3 if bold else 1.5}"/>')
        weight = ' font-weight="bold"' if bold else ""
        out.append(f'<text x="{key + 24}" y="{at}"{weight}>{_label(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def scatter_chart(title: str, x_label: str, points: Mapping[str, tuple[float, float]]) -> str:
    """Points (x, accuracy) with their names over a logarithmic x; the first is bold. The accuracies shown are those around the points.

    >>> from selectivbench._svg import scatter_chart
    >>> chart = scatter_chart("size", "values", {"mine": (100, 0.86), "other": (1000, 0.93)})
    >>> chart.count("<circle"), ">0.85<" in chart, ">0.95<" in chart, ">1,024<" in chart
    (2, True, True, True)
    """
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    accuracies = [value for _, value in points.values()]
    low, high = min(math.floor(20 * min(accuracies)), 19), math.ceil(20 * max(accuracies))  # steps of 0.05
    high = max(high, low + 1)
    sizes = [math.log2(size) for size, _ in points.values()]
    first, last = math.floor(min(sizes)), max(math.ceil(max(sizes)), math.floor(min(sizes)) + 1)

    def x(size: float) -> float:
        return _LEFT + across * (math.log2(size) - first) / (last - first)

    def y(value: float) -> float:
        return _TOP + down * (1 - (20 * value - low) / (high - low))

    out = _frame(title, x_label)
    for step in range(low, high + 1, -(-(high - low) // 5)):
        out.append(_grid_line(y(step / 20), step / 20))
    for power in range(first, last + 1, -(-(last - first) // 8)):
        out.append(f'<text x="{x(2**power):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{2**power:,}</text>')
    label_at = -math.inf
    for name in sorted(points, key=lambda each: -points[each][1]):
        size, value = points[name]
        bold = name == next(iter(points))
        colour = _COLOURS[0] if bold else _COLOURS[-1]
        label_at = max(label_at + 13, y(value))  # labels do not overlap
        out.append(f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="{5 if bold else 3.5}" fill="{colour}"/>')
        weight = ' font-weight="bold"' if bold else ""
        out.append(f'<text x="{x(size) + 8:.1f}" y="{label_at + 4:.1f}" fill="{colour}"{weight}>{_label(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def has_png() -> bool:
    """Whether PNG files can be written."""
    return shutil.which(_CONVERTER) is not None


def write_png(svg: pathlib.Path) -> None:
    """Writes the PNG beside an SVG file, at twice its size, if the converter is installed."""
    if has_png():
        command = [_CONVERTER, "--zoom", "2", "--output", str(svg.with_suffix(".png")), str(svg)]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _frame(title: str, x_label: str) -> list[str]:
    """The beginning of a chart: its size, title, background and the name of its x axis."""
    middle = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
    ]


def _grid_line(at: float, value: float) -> str:
    return (
        f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}" stroke="#dddddd"/>'
        f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:.2f}</text>'
    )


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
