"""The hosted pages: choose how to pay, answer the bank's question, or read why there is nothing to pay.

Plain forms without a script; after a payment the browser is sent back to where the session says.
"""

from dataclasses import dataclass
from html import escape
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fake_stripe.errors import ApiError
from fake_stripe.paying import CHALLENGED, DEBIT_BAD, DEBIT_GOOD, DECLINES, GOOD_CARD, Outcome, answer_challenge, pay
from fake_stripe.store import Json
from fake_stripe.words import Words, amount_text, words_of
from fake_stripe.world import World

STYLE = (Path(__file__).parent / "pay.css").read_bytes()
_DECLINED, _POOR = DECLINES
_LATEST = 20


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a browser gets: a page, or (with `location`) a redirect."""

    html: str = ""
    status: int = 200
    location: str = ""
    form_targets: tuple[str, ...] = ()  # origins its forms may lead to, by way of a redirect


def show_index(world: World, how_to_control: str) -> Page:
    """Return what stands at the gateway's own address: what it is, its latest payments, and how it is controlled."""
    words = words_of(None)
    rows = "".join(
        f"<tr><td>{amount_text(row['amount_total'], row['currency'], words.lang)}</td>"
        f"<td>{escape(row['status'])}, {escape(row['payment_status'])}</td><td><code>{row['id']}</code></td></tr>"
        for row in islice(world.store.newest("checkout.session"), _LATEST)
    )
    inside = f"""<h1>Test payments</h1>
<p>This server plays the payment gateway: it speaks Stripe's public API, and no money moves.
Its messages go to <code>{escape(world.switch("webhook_url") or "nobody yet")}</code>.</p>
<table><thead><tr><th>Amount</th><th>State</th><th>Session</th></tr></thead><tbody>{rows}</tbody></table>
<pre tabindex="0">{escape(how_to_control)}</pre>"""
    return _page(words, inside, None, kind="wide")


def show_session(world: World, session_id: str, said: str = "") -> Page:
    """Return the page of a session as it stands; `said`: what came of the last attempt ("declined")."""
    session = world.store.find("checkout.session", session_id)
    if session is None:
        return _unknown()
    if session["status"] == "complete":
        return _back_to_site(session)
    if session["status"] != "open":
        return _over(session)
    return _choice(session, said)


def pay_session(world: World, session_id: str, body: bytes) -> Page:
    """Take what was chosen, and show what comes of it."""
    session = world.store.find("checkout.session", session_id)
    if session is None:
        return _unknown()
    chosen = parse_qs(body.decode("utf-8", "replace")).get("method", [""])[0]
    try:
        outcome = pay(world, session_id, chosen)
    except ApiError as refusal:
        return _to(session_id, said="unusable" if refusal.code == "incorrect_number" else "")
    return _after(world, session_id, outcome)


def show_challenge(world: World, session_id: str) -> Page:
    """Return the bank's question."""
    session = world.store.find("checkout.session", session_id)
    if session is None:
        return _unknown()
    if session["status"] != "open":
        return show_session(world, session_id)
    words = words_of(session["locale"])
    inside = f"""<h1>{escape(words.challenge_title)}</h1>
{_sum(session, words)}
<p>{escape(words.challenge_text)}</p>
<form method="post">
<button name="answer" value="yes">{escape(words.challenge_yes)}</button>
<button class="quiet" name="answer" value="no">{escape(words.challenge_no)}</button>
</form>"""
    return _page(words, inside, session)


def take_challenge(world: World, session_id: str, body: bytes) -> Page:
    """Take the answer to the bank's question."""
    if world.store.find("checkout.session", session_id) is None:
        return _unknown()
    passed = parse_qs(body.decode("utf-8", "replace")).get("answer") == ["yes"]
    try:
        outcome = answer_challenge(world, session_id, passed=passed)
    except ApiError:
        return _to(session_id)
    return _after(world, session_id, outcome, refused="unconfirmed")


def _after(world: World, session_id: str, outcome: Outcome, *, refused: str = "declined") -> Page:
    if outcome == "challenge":
        return Page(status=303, location=f"/c/pay/{session_id}/challenge")
    if outcome == "declined":
        return _to(session_id, said=refused)
    return _back_to_site(world.get("checkout.session", session_id))


def _to(session_id: str, *, said: str = "") -> Page:
    """Lead back to the page, by a redirect: to load it again is not to pay again."""
    return Page(status=303, location=f"/c/pay/{session_id}{'?said=' if said else ''}{said}")


def _back_to_site(session: Json) -> Page:
    return Page(status=303, location=session["success_url"].replace("{CHECKOUT_SESSION_ID}", session["id"]))


def _choice(session: Json, said: str) -> Page:
    words = words_of(session["locale"])
    faults = {
        "declined": words.was_declined,
        "unconfirmed": words.was_not_confirmed,
        "unusable": words.bad_number,
    }
    fault = faults.get(said, "")
    options = [
        f"<h2>{escape(words.cards)}</h2>",
        _option(GOOD_CARD, words.good_card, is_chosen=True),
        _option(CHALLENGED[0], words.challenged_card),
        _option(_DECLINED, words.declined_card),
        _option(_POOR, words.poor_card),
    ]
    if "sepa_debit" in session["payment_method_types"]:
        options += [
            f"<h2>{escape(words.debits)}</h2>",
            _option(DEBIT_GOOD, words.good_debit),
            _option(DEBIT_BAD, words.bad_debit),
        ]
    amount = amount_text(session["amount_total"], session["currency"], words.lang)
    warning = f'<p class="fault" role="alert">{escape(fault)}</p>' if fault else ""
    inside = f"""{warning}<h1>{escape(words.to_pay)}</h1>
{_sum(session, words)}
<form method="post" action="/c/pay/{session["id"]}">
<fieldset><legend>{escape(words.how)}</legend>
{"".join(options)}
</fieldset>
<button>{escape(words.pay)} {escape(amount)}</button>
</form>
<p class="away"><a href="{escape(session["cancel_url"])}">{escape(words.cancel)}</a></p>"""
    return _page(words, inside, session)


def _option(number: str, what: str, *, is_chosen: bool = False) -> str:
    spaced = " ".join(number[at : at + 4] for at in range(0, len(number), 4))
    checked = " checked" if is_chosen else ""
    return f"""<label><input type="radio" name="method" value="{number}" required{checked}>
<span><code>{spaced}</code> <small>{escape(what)}</small></span></label>"""


def _sum(session: Json, words: Words) -> str:
    amount = amount_text(session["amount_total"], session["currency"], words.lang)
    return f'<p class="amount">{escape(amount)}</p>\n<p class="what">{escape(session["_line"])}</p>'


def _over(session: Json) -> Page:
    words = words_of(session["locale"])
    inside = f"""<h1>{escape(words.over)}</h1>
<p>{escape(words.over_text)}</p>
<p><a href="{escape(session["cancel_url"])}">{escape(words.back)}</a></p>"""
    return _page(words, inside, session)


def _unknown() -> Page:
    words = words_of(None)
    return _page(words, f"<h1>{escape(words.unknown)}</h1>\n<p>{escape(words.unknown_text)}</p>", None, status=404)


def _page(words: Words, inside: str, session: Json | None, *, status: int = 200, kind: str = "") -> Page:
    html = f"""<!DOCTYPE html>
<html lang="{words.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{escape(words.title)} · {escape(words.ribbon)}</title>
<link rel="stylesheet" href="/pay.css">
</head>
<body class="{kind}">
<header class="ribbon">{escape(words.ribbon)}</header>
<main>
{inside}
</main>
</body>
</html>
"""
    urls = (session["success_url"], session["cancel_url"]) if session else ()
    origins = dict.fromkeys(f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls))
    return Page(html=html, status=status, form_targets=tuple(origins))
