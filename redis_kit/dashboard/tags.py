"""Template filters of the dashboard: ``{% load redis_kit_dashboard %}``.

A page has thousands of cells, and a template for each would take most of the time of the page.
"""

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString

from redis_kit.dashboard.cells import Cell

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
    short = " rk-short" if cell.unbroken else ""
    if cell.below:
        lines = [
            f'<span class="rk-line{short}">{words(cell, base)}</span>',
            *(_below(line, base) for line in cell.below),
        ]
        return SafeString(f'<span class="rk-lines">{" ".join(lines)}</span>')
    if cell.drawing:
        drawing = render_to_string(cell.drawing.template, {"drawing": cell.drawing})
        return SafeString(f'<span class="rk-drawn">{drawing}{escape(cell.text)}</span>')
    if cell.moment:
        parts = " ".join(f'<span class="rk-short">{part}</span>' for part in cell.moment)
        return SafeString(f'<span class="rk-text">{parts}</span>')
    return SafeString(f'<span class="rk-text{short}">{words(cell, base)}</span>')


def _below(line: Cell, base: str) -> str:
    title = f' title="{escape(line.full)}"' if line.full else ""
    return f'<span class="rk-below{" rk-short" if line.unbroken else ""}"{title}>{words(line, base)}</span>'
