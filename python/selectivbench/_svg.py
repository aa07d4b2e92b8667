"""Line charts as SVG, without any library."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

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

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for quarter in range(5):
        at = y(quarter / 4)
        out.append(f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_LEFT + across}" y2="{at:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{quarter / 4:.2f}</text>')
    every = -(-len(ticks) // 12)  # labels that fit
    for place in range(0, len(ticks), every):
        out.append(f'<text x="{x(place):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{escape(ticks[place])}</text>')
    out.append(f'<text x="{_LEFT + across / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
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
        out.append(f'<text x="{key + 24}" y="{at}"{weight}>{escape(name if len(name) <= 22 else name[:21] + "…")}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _stretches(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Neighbouring places that have values."""
    out: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            out.append([])
        else:
            out[-1].append((place, value))
    return [stretch for stretch in out if stretch]
