"""HTML as a browser parses it, for asserts about elements instead of text."""

from html.parser import HTMLParser
from typing import Any, NamedTuple

from django.contrib.messages import get_messages


class Element(NamedTuple):
    """A start tag, and the text between it and its end."""

    tag: str
    attributes: dict[str, str | None]
    text: list[str]

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


class Parsed(HTMLParser):
    """All elements of a page, in their order."""

    void = frozenset({"br", "circle", "hr", "img", "input", "link", "meta", "path", "rect"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in self.void:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text.append(data)

    def find(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements with this tag that have these attributes; ``class_`` is one of its classes."""
        return [one for one in self.elements if one.tag == tag and _has(one, attributes)]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Tags with the names of their attributes: what a text may never change."""
        return [(one.tag, tuple(one.attributes)) for one in self.elements]


def whole_page(response: Any) -> Parsed:
    """Return a page that was found."""
    assert response.status_code == 200
    return Parsed(response.content.decode())


def page(response: Any) -> Parsed:
    """Return the part of a page that is not the admin's own; a fragment is all of it."""
    assert response.status_code == 200
    text = response.content.decode()
    return Parsed(text[max(text.find("<main"), 0) :].partition("</main>")[0])


def refused(response: Any) -> str:
    """Return why a confirmation asks again."""
    assert response.status_code == 400
    (told,) = Parsed(response.content.decode()).find("p", id="rk-refused")
    return told.words


def said(response: Any) -> list[str]:
    """Return the messages that a page brought."""
    return [*map(str, get_messages(response.wsgi_request))]


def row_buttons(found: Parsed) -> dict[tuple[str, str], str]:
    """Return the values of the buttons of rows, by the name of the action and the row's head."""
    buttons = [one.attributes for one in found.find("button", name="row")]
    heads = [(one["formaction"] or "", (one["aria-label"] or "").partition(": ")[2]) for one in buttons]
    names = [(url.partition("?")[0].rstrip("/").rpartition("/")[2], head) for url, head in heads]
    return dict(zip(names, [one["value"] or "" for one in buttons], strict=True))


def rows(page: Parsed, title: str) -> list[dict[str, str]]:
    """Return the rows of a table by its title: the texts of their cells by column, the head of the row under ""."""
    (number,) = [
        heading.attributes["id"].rpartition("-")[2]
        for heading in page.find("h2")
        if heading.words == title and heading.attributes
    ]
    ids = [element.attributes.get("id") for element in page.elements]
    texts: list[dict[str, str]] = []
    for element in page.elements[ids.index(f"rk-item-{number}") + 1 :]:
        if element.tag == "section":
            break
        if element.tag == "tr" and element.attributes.get("role") == "row":
            texts.append({})
        elif element.tag == "th" and element.attributes.get("role") == "rowheader":
            texts[-1][""] = element.words
        elif "data-label" in element.attributes:
            texts[-1][element.attributes["data-label"]] = element.words
    return texts[1:]


def _has(element: Element, wanted: dict[str, str]) -> bool:
    return all(
        value in (element.attributes.get("class") or "").split()
        if name == "class_"
        else element.attributes.get(name.replace("_", "-")) == value
        for name, value in wanted.items()
    )
