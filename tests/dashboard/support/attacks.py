"""Texts that would change a page that did not escape them, and checks of pages that show them."""

from tests.dashboard.support.html import Parsed

ATTACKS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "</title></svg><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "` onmouseover=`alert(1)",
    '"><img src=x onerror=alert(1)>',
    "'><iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "{{ 7|add:7 }}{% load i18n %}",
    "</textarea></style></noscript><b>",
    "<!--",
    "--><b>",
    "<![CDATA[<b>]]>",
    "&lt;b&gt;&#60;b&#62;",
    "\\u003cscript\\u003e",
    "+ADw-script+AD4-",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0>",
    "<form action=//evil.example>",
    "<a href=//evil.example>x</a>",
    "</table></div></main></body>",
    "\0<b\0>\x1b[31m\r\n\u2028\u202e",
    "<" * 300,
    '"' * 300,
    "x" * 250 + "<b>",
]
# One for each place in a page. Pages that draw their texts with the same functions as test_escaping.py take these.
SAMPLE = [
    "<script>alert(1)</script>",
    "</title></svg><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7|add:7 }}{% load i18n %}",
    "--><b>",
    "</table></div></main></body>",
    "\0<b\0>\x1b[31m\r\n\u2028\u202e",
    "x" * 250 + "<b>",
]
# Out of an attribute, a link, a template, control characters: for pages whose parts other tests have with all of them.
FEW = [SAMPLE[place] for place in (3, 4, 5, 6, 9)]
assert set(SAMPLE) < set(ATTACKS)


def harmless_links(page: Parsed) -> bool:
    links = [
        value or ""
        for one in page.elements
        for name, value in one.attributes.items()
        if name in ("href", "src", "action", "formaction")
    ]
    return all(link.startswith(("/", "#")) or link == "" for link in links)


def without_titles(shape):
    # Escapes of control characters make a text longer, so that it may be cut and get a title. A chart has one bar
    # more when a minute begins between two pages.
    return [(tag, tuple(name for name in names if name != "title")) for tag, names in shape if tag != "rect"]
