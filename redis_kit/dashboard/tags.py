"""Template filters of the dashboard: ``{% load redis_kit_dashboard %}``.

A page has thousands of cells, and a template for each would take most of the time of the page.
"""

from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString

from redis_kit.dashboard.cells import Cell, cell

register = template.Library()


@register.filter
def words(cell: Cell, base: str) -> SafeString:
    """Return the HTML of a text and of those beside it: links, relative to the overview at ``base``, or plain text."""
    text = "<wbr>".join(map(escape, cell.parts))
    shape = ' class="rk-long"' if cell.long else ""
    if cell.link:
        text = f'<a href="{escape(base + cell.link)}"{shape}>{text}</a>'
    elif shape:
        text = f"<span{shape}>{text}</span>"
    return SafeString(" ".join([text, *(words(other, base) for other in cell.beside)]))


@register.filter
def drawn(cell: Cell, base: str) -> SafeString:
    """Return the HTML of a cell: its drawing, its text, and the lines below it."""
    if cell.below:
        lines = [_span("rk-line", cell, base)]
        for line in cell.below:
            title = f' title="{escape(line.full)}"' if line.full else ""
            lines.append(_span("rk-below", line, base, title))
        return SafeString(f'<span class="rk-lines">{" ".join(lines)}</span>')
    if cell.drawing:
        drawing = render_to_string(cell.drawing.template, {"drawing": cell.drawing})
        return SafeString(f'<span class="rk-drawn">{drawing}{escape(cell.text)}</span>')
    if cell.moment:
        parts = " ".join(f'<span class="rk-short">{part}</span>' for part in cell.moment)
        return SafeString(f'<span class="rk-text rk-moment">{parts}</span>')
    return SafeString(_span("rk-text", cell, base))


@register.filter
def plain(value: Any) -> str:
    """Return any value as the text of a cell."""
    return cell(value).text


def _span(kind: str, cell: Cell, base: str, title: str = "") -> str:
    return f'<span class="{kind}{" rk-short" if cell.unbroken else ""}"{title}>{words(cell, base)}</span>'
