"""SVG pictures in the style of docs/pictures: dots against a limit, and curves."""

import math
import os
import re
from xml.sax.saxutils import escape

parts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/parts")
page, margin = 780, 16
dashes = ("", "7 5", "2 4", "11 4 2 4", "15 6", "1 6")


def part(name):
    with open(os.path.join(parts, name), encoding="utf-8") as text:
        return text.read()


style = re.search(r'R"css\((.*?)\)css"', part("picture_style.inc"), re.S)[1]
letters = [int(x) for line in part("letter_widths.inc").splitlines() if not line.startswith("//")
           for x in re.findall(r"\d+", line)]


def width_of(content, size, bold=False):
    """The width of a text in DejaVu Sans, the widest font of the style."""
    of = sum(letters[ord(c) - 32] if " " <= c <= "~" else 838 for c in content)
    return of / 1000 * size * (1.12 if bold else 1)


def wrapped(content, size, most, bold=False):
    lines = []
    for word in content.split(" "):
        if lines and width_of(lines[-1] + " " + word, size, bold) <= most:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def text(x, y, content, attributes=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(content)}</text>\n'


def line(x1, y1, x2, y2, attributes):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {attributes}/>\n'


def heading(title):
    return 16 + 22 * len(wrapped(title, 17, page - 2 * margin, True))


def document(title, height, inside):
    head = "".join(text(margin, 28 + 22 * k, one, 'font-size="17" font-weight="bold"')
                   for k, one in enumerate(wrapped(title, 17, page - 2 * margin, True)))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {page} {height:.0f}" width="{page}" '
            f'height="{height:.0f}" font-size="13" role="img">\n<title>{escape(title)}</title>\n<style>{style}</style>\n'
            f'<rect class="bg" width="{page}" height="{height:.0f}"/>\n{head}{inside}</svg>\n')


def legend(names, y):
    """The legend, and the height below it."""
    out, x = "", margin
    for k, name in enumerate(names):
        entry = 16 + width_of(name, 13)
        if x > margin and x + entry > page - margin:
            x, y = margin, y + 20
        out += f'<circle class="f{k % 6}" cx="{x + 5:.1f}" cy="{y - 4.5:.1f}" r="5"/>\n'
        out += text(x + 16, y, name, f'class="n{k % 6}"')
        x += entry + 22
    return out, y


def dots(title, names, groups, limit=100, unit="%", says=None):
    """A dot plot: a line for each of the groups (label, {name: value}), from the largest value down if there is one name,
    whose values are written. The limit is a line across, and `says` what it is; without one there is none. Values beyond 1.5
    times the limit stand at the edge, with an arrow."""
    alone = len(names) == 1
    if alone and limit:
        groups = sorted(groups, key=lambda group: -group[1][names[0]])
    row, gap, right = (16, 5, 84) if alone else (8, 10, 40)
    left = margin + max(width_of(label, 13) for label, _ in groups) + 12
    inside, y = ("", heading(title)) if alone else legend(names, heading(title) + 18)
    top = y = y + 14
    if limit and any(value > 1.5 * limit for _, values in groups for value in values.values()):
        right = 84
    most = 1.5 * limit if limit else 1.05 * max(value for _, values in groups for value in values.values())
    scale = (page - left - right) / most
    rows = ""
    for label, values in groups:
        shown = [(k, values[name]) for k, name in enumerate(names) if name in values]
        rows += text(left - 10, y + row * len(shown) / 2 + 4.5, label, 'text-anchor="end"')
        for k, value in shown:
            at, middle = left + min(value, most) * scale, y + row / 2
            rows += line(left, middle, at, middle, f'class="p{k % 6}" stroke-width="1.2" stroke-opacity="0.45"')
            rows += f'<circle class="f{k % 6}" cx="{at:.1f}" cy="{middle:.1f}" r="4"/>\n'
            if value > most:
                rows += f'<path class="p{k % 6}" stroke-width="2" d="M{at + 7:.1f} {middle - 4:.1f}l4 4l-4 4"/>\n'
            if alone or value > most:
                digits = 0 if value >= 10 else 1
                rows += text(at + (16 if value > most else 9), middle + 4.5, f"{value:.{digits}f} {unit}",
                             'font-size="12" class="halo"')
            y += row
        y += gap
    for tick in round_numbers([most])[:-1]:
        at = left + tick * scale
        inside += line(at, top - 4, at, y, 'class="grid"')
        inside += text(at, y + 16, number(tick), 'font-size="12" class="soft" text-anchor="middle"')
    inside += line(left, top - 4, left, y, 'class="axis"')
    if limit:
        at = left + limit * scale
        inside += line(at, top - 4, at, y, 'class="axis" stroke-dasharray="5 4"')
    inside += rows
    inside += text((left + page - right) / 2, y + 36, f"{unit}; {says}" if says else unit, 'text-anchor="middle"')
    return document(title, y + 52, inside)


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


def equal(of):
    """Groups of names whose curves are the same to half a percent."""
    groups = []
    for name, points in of.items():
        for group in groups:
            other = of[group[0]]
            if [x for x, _ in other] == [x for x, _ in points] and all(
                    abs(a - b) <= 0.005 * abs(a) for (_, a), (_, b) in zip(other, points)):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def spread(middles, sizes, top, bottom):
    """Middles of labels of these heights, near those given, so that no two labels cover each other."""
    order = sorted(range(len(middles)), key=lambda k: middles[k])
    placed = [middles[k] for k in order]
    for _ in range(200):
        for k in range(1, len(placed)):
            short = (sizes[order[k]] + sizes[order[k - 1]]) / 2 - (placed[k] - placed[k - 1])
            if short > 1e-6:
                placed[k - 1] -= short / 2
                placed[k] += short / 2
        low = max(0, top - placed[0])
        placed = [y + low for y in placed]
        high = max(0, placed[-1] - bottom)
        placed = [y - high for y in placed]
    return [y for _, y in sorted(zip(order, placed))]


def curves(title, x_label, y_label, of, linear=""):
    """Curves {name: [(x, y)]} over logarithmic axes, of which those named in `linear` are linear from 0. Names stand at the
    ends; those whose curves are the same share one."""
    left, bottom, plot = 70, 56, 300
    groups = equal(of)
    right = margin + 22 + max(width_of(" = ".join(group), 13) for group in groups)
    if right > 0.4 * page:
        right = margin + 22 + max(width_of(name, 13) + (18 if len(group) > 1 else 0) for group in groups for name in group)
    xs = (round_numbers if "x" in linear else decades)([x for c in of.values() for x, _ in c])
    ys = (round_numbers if "y" in linear else decades)([y for c in of.values() for _, y in c])
    def along(x, ticks, a, b):
        scale = float if ticks[0] == 0 else math.log10
        return a + (b - a) * (scale(x) - scale(ticks[0])) / (scale(ticks[-1]) - scale(ticks[0]))
    top = heading(title) + 30
    base, end = top + plot, page - right
    inside = text(margin, top - 12, y_label, 'font-weight="bold"')
    small = 'font-size="12" class="soft"'
    for y in ys:
        at = along(y, ys, base, top)
        inside += line(left, at, end, at, 'class="grid"')
        inside += text(left - 8, at + 4, number(y), small + ' text-anchor="end"')
    for x in xs:
        at = along(x, xs, left, end)
        inside += line(at, base, at, base + 5, 'class="axis"')
        inside += text(at, base + 19, number(x), small + ' text-anchor="middle"')
    inside += line(left, base, end, base, 'class="axis"')
    inside += text((left + end) / 2, base + 38, x_label, 'text-anchor="middle"')
    names, ends = list(of), []
    for group in groups:
        for turn, name in enumerate(group):
            k = names.index(name)
            at = [(along(x, xs, left, end), along(y, ys, base, top)) for x, y in sorted(of[name])]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
            dash = f' stroke-dasharray="{8 * (len(group) - turn)} {8 * turn}"' if turn else ""
            inside += f'<path d="{path}" class="p{k % 6}" stroke-width="2"{dash} stroke-linejoin="round"/>\n'
            if not turn:
                inside += "".join(f'<circle class="f{k % 6}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>\n' for x, y in at)
        ends.append(at[-1])
    lines = [[" = ".join(group)] if right > margin + 22 + width_of(" = ".join(group), 13) - 1
             else [name if k == 0 else "= " + name for k, name in enumerate(group)] for group in groups]
    middles = spread([y for _, y in ends], [17 * len(of_label) for of_label in lines], top, base)
    for group, (x, y), of_label, middle in zip(groups, ends, lines, middles):
        colour = names.index(group[0]) % 6
        inside += line(x + 4, y, end + 14, middle, f'class="p{colour}" stroke-width="0.8"')
        for k, one in enumerate(of_label):
            inside += text(end + 18, middle + 17 * (k - (len(of_label) - 1) / 2) + 4.5, one, f'class="n{colour}"')
    return document(title, base + bottom, inside)
