"""Markdown to HTML in the site's own ways: no raw HTML, no styles, tables that scroll by themselves, links by page name."""

from collections.abc import MutableMapping, Sequence
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

PAGE = "page:"


def to_html(text: str, *, name: str = "") -> SafeString:
    """Return Markdown as HTML; `name` is what a table is called for those who cannot see it."""
    # The text is ours and raw HTML in it is escaped.
    html: str = _MARKDOWN.render(text, {"name": name})
    return mark_safe(html)  # noqa: S308


def _without_styles(tokens: Sequence[Token]) -> None:
    """A strict content security policy allows no style attribute: a column to the right becomes a class."""
    for token in tokens:
        if token.type in ("th_open", "td_open") and "right" in str(token.attrs.pop("style", "")):
            token.attrJoin("class", "r")
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.children:
            _lead_links(token.children)


def _lead_links(tokens: Sequence[Token]) -> None:
    open_links: list[Token] = []
    for token in tokens:
        if token.type == "link_open":
            _lead(token)
            open_links.append(token)
        elif token.type == "link_close" and open_links.pop().hidden:
            token.hidden = True


def _lead(token: Token) -> None:
    """Point a link to a page of the site by its name; where there is no such page its words stay without a link."""
    target = str(token.attrGet("href") or "")
    if not target.startswith(PAGE):
        if target.startswith("http"):
            token.attrSet("rel", "noopener")
        return
    path, _, fragment = target.removeprefix(PAGE).partition("#")
    name, *arguments = path.split("/")
    try:
        token.attrSet("href", reverse(name, args=arguments) + (f"#{fragment}" if fragment else ""))
    except NoReverseMatch:
        token.hidden = True


def _core_rule(state: Any) -> None:
    _without_styles(state.tokens)


def _link_rule(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    return "" if tokens[index].hidden else renderer.renderToken(tokens, index, options, env)


def _table_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    del renderer, tokens, index, options
    name = str(env["name"]).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return f'<section class="scroll" tabindex="0" aria-label="{name}"><table><caption class="vh">{name}</caption>\n'


def _table_close(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    del renderer, tokens, index, options, env
    return "</table></section>\n"


def _make() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.core.ruler.push("site", _core_rule)
    for name in ("link_open", "link_close"):
        markdown.add_render_rule(name, _link_rule)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


_MARKDOWN = _make()
