"""HTML that cannot be broken by what is put into it: a text is escaped unless it was made here."""

import html
import json
from collections.abc import Iterable
from typing import Any

VOID = {"meta", "br", "input"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(thing: object) -> Html:
    """HTML as it is, and of anything else its text, harmless.

    Example:
        >>> escaped("<b>")
        '&lt;b&gt;'
    """
    return thing if isinstance(thing, Html) else Html(html.escape(str(thing)))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. ``class_`` stands for class, other underscores for hyphens; None and False leave an attribute out.

    Example:
        >>> tag("td", "a < b", class_="number", data_run=3)
        '<td class="number" data-run="3">a &lt; b</td>'
    """
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{together(children)}</{name}>")


def together(parts: Iterable[object], between: str = "") -> Html:
    """Parts one after another."""
    return Html(escaped(between).join(escaped(part) for part in parts))


def own(name: object) -> Html:
    """A name that somebody else chose, whose direction of writing stays its own."""
    return tag("bdi", name)


def embedded(value: Any) -> str:
    r"""JSON that may stand in a script element: nothing in it can end that element, or a line of JavaScript.

    Example:
        >>> embedded("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 is an escape already
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
