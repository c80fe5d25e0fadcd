"""SVG pictures in the style of docs/pictures: bars against a limit, and curves."""

import math
from xml.sax.saxutils import escape

# Okabe and Ito's colours, which colour-blind readers can distinguish
colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def text(x, y, content, attributes=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(content)}</text>\n'


def line(x1, y1, x2, y2, attributes):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {attributes}/>\n'


def document(title, width, height, inside):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" fill="#222">\n'
            f"<title>{escape(title)}</title>\n"
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>\n'
            + text(width / 2, 30, title, 'text-anchor="middle" font-size="17"') + inside + "</svg>\n")


def legend(names, x, y, right):
    """The legend, and the number of lines it takes beyond the first."""
    out, left, lines = "", x, 0
    for k, name in enumerate(names):
        if x > left and x + 20 + 7.6 * len(name) > right:
            x, y, lines = left, y + 18, lines + 1
        out += f'<rect x="{x:.1f}" y="{y - 11:.1f}" width="14" height="12" fill="{colours[k % len(colours)]}"/>\n'
        out += text(x + 20, y, name)
        x += 44 + 7.6 * len(name)
    return out, lines


def bars(title, names, groups, limit=100, unit="%"):
    """Horizontal bars: groups of (label, {name: value}); the limit is a line. Bars are cut at 1.5 times the limit, and
    two strokes across a bar show that it is cut."""
    left, right, top, bar = 330, 70, 76, 13
    width, most = 1000, 1.5 * limit
    scale = (width - left - right) / most
    inside, lines = legend(names, left, 54, width)
    y = top = top + 18 * lines
    for label, values in groups:
        shown = [(k, values[name]) for k, name in enumerate(names) if name in values]
        inside += text(left - 8, y + bar * len(shown) / 2 + 4.5, label, 'text-anchor="end"')
        for k, value in shown:
            long = min(value, most) * scale
            inside += (f'<rect x="{left}" y="{y + 1:.1f}" width="{long:.1f}" height="{bar - 2}" '
                       f'fill="{colours[k % len(colours)]}"/>\n')
            if value > most:
                for at in (left + long - 16, left + long - 10):
                    inside += line(at, y + bar, at + 5, y, 'stroke="#fff" stroke-width="2.5"')
            digits = 0 if value >= 10 else 1
            inside += text(left + long + 4, y + bar - 2.5, f"{value:.{digits}f} {unit}", 'font-size="11"')
            y += bar
        y += 10
    x = left + limit * scale
    inside += line(x, top - 6, x, y, 'stroke="#444" stroke-dasharray="4 3"')
    inside += line(left, top - 6, left, y, 'stroke="#444"')
    inside += text(x, y + 16, f"{limit} {unit}: a copy in the same run", 'text-anchor="middle"')
    return document(title, width, y + 30, inside)


def number(x):
    digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
    if x == 0:
        return "0"
    power = round(math.log10(x))
    if 1e-3 < x < 1e5:
        return f"{x:g}"
    return "10" + ("⁻" if power < 0 else "") + "".join(digits[int(c)] for c in str(abs(power)))


def decades(values):
    """The powers of ten around some values."""
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return [10.0**k for k in range(low, max(high, low + 1) + 1)]


def round_numbers(values):
    """About five multiples of 1, 2 or 5 times a power of ten, from 0 to the largest value or beyond."""
    most = max(values)
    power = 10.0**math.floor(math.log10(most / 5))
    step = power * next(k for k in (1, 2, 5, 10) if most / 5 <= k * power)
    return [k * step for k in range(math.ceil(most / step - 1e-9) + 1)]


def rings(points, earlier):
    """The radius of each point: 3, and 2.5 more for each earlier point that it would cover."""
    for x, y in points:
        below = sum(math.hypot(x - a, y - b) < 2.5 for a, b in earlier)
        yield x, y, 3 + 2.5 * below


def curves(title, x_label, y_label, of, linear=""):
    """Curves {name: [(x, y)]} over logarithmic axes, of which those named in `linear` are linear from 0. Points that lie
    on each other are rings around each other."""
    width, left, right, top, bottom, height = 700, 74, 20, 86, 60, 440
    xs = (round_numbers if "x" in linear else decades)([x for c in of.values() for x, _ in c])
    ys = (round_numbers if "y" in linear else decades)([y for c in of.values() for _, y in c])
    def along(x, ticks, a, b):
        scale = float if ticks[0] == 0 else math.log10
        return a + (b - a) * (scale(x) - scale(ticks[0])) / (scale(ticks[-1]) - scale(ticks[0]))
    inside, lines = legend(list(of), left, 54, width)
    top, height = top + 18 * lines, height + 18 * lines
    inside += text(left - 60, top - 12, y_label)
    for y in ys:
        at = along(y, ys, height - bottom, top)
        inside += line(left, at, width - right, at, 'stroke="#e2e2e2"')
        inside += text(left - 7, at + 4.5, number(y), 'text-anchor="end"')
    for x in xs:
        at = along(x, xs, left, width - right)
        inside += line(at, height - bottom, at, height - bottom + 5, 'stroke="#444"')
        inside += text(at, height - bottom + 20, number(x), 'text-anchor="middle"')
    inside += line(left, height - bottom, width - right, height - bottom, 'stroke="#444"')
    inside += line(left, height - bottom, left, top, 'stroke="#444"')
    inside += text((left + width - right) / 2, height - 14, x_label, 'text-anchor="middle"')
    earlier = []
    for k, points in enumerate(of.values()):
        colour = colours[k % len(colours)]
        at = [(along(x, xs, left, width - right), along(y, ys, height - bottom, top)) for x, y in sorted(points)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        inside += (f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none" stroke-linejoin="round" '
                   'stroke-linecap="round"/>\n')
        for x, y, radius in rings(at, earlier):
            fill = f'fill="{colour}"' if radius == 3 else f'fill="none" stroke="{colour}" stroke-width="2"'
            inside += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {fill}/>\n'
        earlier += at
    return document(title, width, height, inside)
