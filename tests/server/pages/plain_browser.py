"""A browser without JavaScript: it reads pages, follows links, fills in forms and presses buttons."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx

VOID = {"input", "meta", "link", "img", "br", "hr"}


@dataclass
class FoundForm:
    """A form of a page: what would be sent, and by which buttons."""

    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Label → what it adds to what is sent."""


@dataclass
class Tag:
    name: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """What is on a page."""

    def __init__(self, html: str, url: str = "", status: int = 200) -> None:
        super().__init__(convert_charrefs=True)
        self.html, self.url, self.status = html, url, status
        self.tags: list[Tag] = []
        self.forms: list[FoundForm] = []
        self.links: dict[str, str] = {}
        self._words: list[str] = []
        self._texts: list[tuple[str, list[str]]] = []
        self._open: list[Tag] = []
        self._select = ""
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {[tag.name for tag in self._open]}"

    @property
    def text(self) -> str:
        """The words of the page, in one line."""
        return " ".join(" ".join(self._words).split())

    def form_with(self, button: str, near: str = "") -> FoundForm:
        """The form that has this button; of several, the one whose address or values speak of `near`."""
        found = [
            form
            for form in self.forms
            if button in form.buttons and (not near or near in form.action or near in form.values.values())
        ]
        assert found, f"no form has the button {button!r}: {[list(form.buttons) for form in self.forms]}"
        return found[0]

    def handle_starttag(self, name: str, given: list[tuple[str, str | None]]) -> None:
        tag = Tag(name, dict(given))
        self.tags.append(tag)
        if name not in VOID and not (self._open and self._in_svg() and name in ("path", "rect", "circle")):
            self._open.append(tag)
        attributes = {key: value or "" for key, value in given}
        if name == "form":
            self.forms.append(FoundForm(attributes.get("action", ""), attributes.get("method", "get")))
        elif name == "input" and self.forms:
            self._input(attributes)
        elif name == "select":
            self._select = attributes["name"]
            self.forms[-1].values[self._select] = ""
        if name in ("a", "button", "textarea", "option"):
            self._texts.append((name, []))

    def _in_svg(self) -> bool:
        return any(tag.name == "svg" for tag in self._open)

    def _input(self, attributes: dict[str, str]) -> None:
        is_off = attributes.get("type") == "checkbox" and "checked" not in attributes
        if not is_off and "name" in attributes:
            self.forms[-1].values[attributes["name"]] = attributes.get("value", "")

    def handle_startendtag(self, name: str, given: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(name, dict(given)))

    def handle_endtag(self, name: str) -> None:
        if name in ("path", "rect", "circle") and self._open[-1].name != name:
            return
        tag = self._open.pop()
        assert tag.name == name, f"</{name}> closes <{tag.name}>"
        if name not in ("a", "button", "textarea", "option"):
            return
        _, parts = self._texts.pop()
        text = "".join(parts)
        attributes = {key: value or "" for key, value in tag.attributes.items()}
        if name == "a":
            self.links[" ".join(text.split())] = attributes.get("href", "")
        elif name == "button" and self.forms:
            self.forms[-1].buttons[text.strip()] = (attributes.get("name", ""), attributes.get("value", ""))
        elif name == "option" and "selected" in attributes:
            self.forms[-1].values[self._select] = attributes.get("value", text)
        elif name == "textarea":
            self.forms[-1].values[attributes["name"]] = text.removeprefix("\n")

    def handle_data(self, data: str) -> None:
        for _, parts in self._texts:
            parts.append(data)
        if not any(tag.name in ("style", "script", "title") for tag in self._open):
            self._words.append(data)


class PlainBrowser:
    """Somebody who uses the pages without JavaScript."""

    def __init__(self, client: httpx.Client, **headers: str) -> None:
        self.client = client
        self.headers = {"accept": "text/html", **headers}
        self.page = Page("<p></p>")

    def open(self, address: str) -> Page:
        """Go somewhere."""
        return self._arrive(self.client.get(address, headers=self.headers, follow_redirects=True))

    def press(self, button: str, typed: dict[str, str] | None = None, near: str = "") -> Page:
        """Fill in a form and press its button."""
        form = self.page.form_with(button, near)
        assert form.method == "post"
        name, value = form.buttons[button]
        unknown = set(typed or {}) - set(form.values) - {"part"}
        assert not unknown or all("field." in one for one in unknown), f"no such fields: {unknown}"
        sent = {**form.values, **(typed or {}), **({name: value} if name else {})}
        return self.send(form.action or self.page.url, sent)

    def send(self, action: str, sent: dict[str, Any]) -> Page:
        """Send what a form would send."""
        answer = self.client.post(action, data=sent, headers=self.headers, follow_redirects=True)
        return self._arrive(answer)

    def _arrive(self, answer: httpx.Response) -> Page:
        assert answer.headers["content-type"].startswith("text/html"), answer.text[:300]
        self.page = Page(answer.text, str(answer.url), answer.status_code)
        return self.page
