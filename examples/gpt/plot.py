"""Charts as SVG files, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLORS = ("#1f5fa8", "#d1632a", "#2f8f5b", "#8a4fa3", "#b8860b", "#5b6770", "#c2385a", "#2a9aa8")
LEFT, TOP, WIDTH, HEIGHT, LEGEND = 64, 40, 480, 300, 200  # pixels


@dataclass(frozen=True)
class Curve:
    """A line; points that are not finite are left out."""

    name: str
    points: Sequence[tuple[float, float]]
    errors: Sequence[float] = ()  # half the length of each error bar
    line: bool = True  # False: dots alone

    def finite(self) -> Curve:
        """Return the points that can be drawn."""
        kept = [i for i, p in enumerate(self.points) if all(map(math.isfinite, p))]
        return Curve(self.name, [self.points[i] for i in kept],
                     [self.errors[i] for i in kept if self.errors], self.line)


class Axis:
    """Places values of one axis between two pixels."""

    def __init__(self, values: Sequence[float], begin: float, end: float, log: bool) -> None:
        self.log, self.begin, self.end = log, begin, end
        low, high = self._of(min(values)), self._of(max(values))
        margin = 0.02 * (high - low) or 0.5
        self.low, self.high = low - margin, high + margin

    def _of(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def pixel(self, value: float) -> float:
        part = (self._of(value) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return about five round values."""
        if self.log and self.high - self.low > 1.5:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            return [10.0**e for e in powers][::max(1, len(powers) // 6)]
        low, high = ((10**v for v in (self.low, self.high)) if self.log else (self.low, self.high))
        unit = 10 ** math.floor(math.log10((high - low) / 4))
        step = next(unit * k for k in (1, 2, 5, 10) if unit * k * 6 >= high - low)
        first = math.ceil(low / step)
        return [k * step for k in range(first, math.floor(high / step) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _drawn(curve: Curve, color: str, across: Axis, up: Axis) -> list[str]:
    """Return the marks of a curve."""
    found = []
    places = [(across.pixel(x), up.pixel(y)) for x, y in curve.points]
    if curve.line and places:
        found.append(f'<path d="{_path(places)}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    if not curve.line or len(places) <= 30:
        found += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in places]
    for (x, y), error in zip(curve.points, curve.errors):
        low, high = up.pixel(max(y - error, y / 2) if up.log else y - error), up.pixel(y + error)
        found.append(f'<path d="{_path([(across.pixel(x), low), (across.pixel(x), high)])}" '
                     f'stroke="{color}" stroke-width="1.5"/>')
    return found


def chart(curves: Sequence[Curve], path: str, *, title: str, x: str, y: str, log_x: bool = False,
          log_y: bool = False) -> None:
    """Write a chart of curves; `x` and `y` are what the axes say."""
    curves = [c.finite() for c in curves]
    values = [p for c in curves for p in c.points]
    spread = [p[1] + e * sign for c in curves for p, e in zip(c.points, c.errors) for sign in (1, -1)
              if not log_y or p[1] + e * sign > 0]
    across = Axis([p[0] for p in values], LEFT, LEFT + WIDTH, log_x)
    up = Axis([p[1] for p in values] + spread, TOP + HEIGHT, TOP, log_y)
    body = [_text(LEFT, 22, title, "start", ' font-size="15" font-weight="bold"')]
    for tick in up.ticks():
        at = up.pixel(tick)
        body.append(f'<path d="M{LEFT} {at:.1f}h{WIDTH}" stroke="#ddd"/>')
        body.append(_text(LEFT - 6, at + 4, f"{tick:g}", "end"))
    for tick in across.ticks():
        at = across.pixel(tick)
        body.append(f'<path d="M{at:.1f} {TOP + HEIGHT}v4" stroke="#888"/>')
        body.append(_text(at, TOP + HEIGHT + 17, f"{tick:g}"))
    body.append(f'<path d="M{LEFT} {TOP}v{HEIGHT}h{WIDTH}" fill="none" stroke="#888"/>')
    body.append(_text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, x))
    body.append(_text(0, 0, y, more=f' transform="translate(14 {TOP + HEIGHT / 2}) rotate(-90)"'))
    for i, curve in enumerate(curves):
        color = COLORS[i % len(COLORS)]
        body += _drawn(curve, color, across, up)
        at = TOP + 10 + 18 * i
        body.append(f'<path d="M{LEFT + WIDTH + 12} {at}h16" stroke="{color}" stroke-width="3"/>')
        body.append(_text(LEFT + WIDTH + 34, at + 4, curve.name, "start"))
    width, height = LEFT + WIDTH + LEGEND, TOP + HEIGHT + 48
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                  f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
                  'fill="#222">\n<rect width="100%" height="100%" fill="white"/>\n'
                  + "\n".join(body) + "\n</svg>\n")
