"""The words of the hosted pages, per language of a session."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Words:
    """Every sentence of the pages in one language."""

    lang: str
    title: str
    ribbon: str
    to_pay: str
    how: str
    good_card: str
    declined_card: str
    poor_card: str
    challenged_card: str
    good_debit: str
    bad_debit: str
    cards: str
    debits: str
    pay: str
    cancel: str
    was_declined: str
    was_not_confirmed: str
    bad_number: str
    challenge_title: str
    challenge_text: str
    challenge_yes: str
    challenge_no: str
    over: str
    over_text: str
    unknown: str
    unknown_text: str
    back: str


_ENGLISH = Words(
    lang="en",
    title="Payment",
    ribbon="Test payments: no real money moves",
    to_pay="To pay",
    how="How do you want to pay?",
    good_card="is accepted",
    declined_card="is declined",
    poor_card="is declined: too little money",
    challenged_card="asks you to confirm (3-D Secure)",
    good_debit="arrives after a while",
    bad_debit="comes back after a while",
    cards="Card",
    debits="SEPA direct debit",
    pay="Pay",
    cancel="Cancel and go back",
    was_declined="The card was declined. Nothing was charged. Choose another one or try again.",
    was_not_confirmed="The payment was not confirmed. Nothing was charged. Choose another card or try again.",
    bad_number="Choose how to pay.",
    challenge_title="Your bank asks",
    challenge_text="Do you confirm this payment?",
    challenge_yes="Confirm the payment",
    challenge_no="Refuse",
    over="This page has expired",
    over_text="Nothing was charged. Go back and start again.",
    unknown="This page does not exist",
    unknown_text="The address is wrong, or the payment was forgotten.",
    back="Go back",
)
_DUTCH = Words(
    lang="nl",
    title="Betaling",
    ribbon="Testbetalingen: er wordt geen echt geld verplaatst",
    to_pay="Te betalen",
    how="Hoe wilt u betalen?",
    good_card="wordt geaccepteerd",
    declined_card="wordt geweigerd",
    poor_card="wordt geweigerd: te weinig saldo",
    challenged_card="vraagt om uw bevestiging (3-D Secure)",
    good_debit="komt na enige tijd binnen",
    bad_debit="wordt na enige tijd teruggeboekt",
    cards="Kaart",
    debits="SEPA-incasso",
    pay="Betalen:",
    cancel="Annuleren en teruggaan",
    was_declined="De kaart is geweigerd. Er is niets afgeschreven. Kies een andere kaart of probeer het opnieuw.",
    was_not_confirmed="De betaling is niet bevestigd. Er is niets afgeschreven. Kies een andere kaart of probeer het opnieuw.",
    bad_number="Kies hoe u wilt betalen.",
    challenge_title="Uw bank vraagt",
    challenge_text="Bevestigt u deze betaling?",
    challenge_yes="Betaling bevestigen",
    challenge_no="Weigeren",
    over="Deze pagina is verlopen",
    over_text="Er is niets afgeschreven. Ga terug en begin opnieuw.",
    unknown="Deze pagina bestaat niet",
    unknown_text="Het adres klopt niet, of de betaling is vergeten.",
    back="Teruggaan",
)
_POLISH = Words(
    lang="pl",
    title="Płatność",
    ribbon="Płatności testowe: bez prawdziwych pieniędzy",
    to_pay="Do zapłaty",
    how="Jak chcesz zapłacić?",
    good_card="zostanie przyjęta",
    declined_card="zostanie odrzucona",
    poor_card="zostanie odrzucona: brak środków",
    challenged_card="poprosi o potwierdzenie (3-D Secure)",
    good_debit="dotrze po chwili",
    bad_debit="zostanie po chwili zwrócone",
    cards="Karta",
    debits="Polecenie zapłaty SEPA",
    pay="Zapłać",
    cancel="Anuluj i wróć",
    was_declined="Karta została odrzucona. Niczego nie pobrano. Wybierz inną kartę lub spróbuj ponownie.",
    was_not_confirmed="Płatność nie została potwierdzona. Niczego nie pobrano. Wybierz inną kartę lub spróbuj ponownie.",
    bad_number="Wybierz sposób zapłaty.",
    challenge_title="Pytanie z Twojego banku",
    challenge_text="Czy potwierdzasz tę płatność?",
    challenge_yes="Potwierdź płatność",
    challenge_no="Odmów",
    over="Ta strona wygasła",
    over_text="Niczego nie pobrano. Wróć i zacznij od nowa.",
    unknown="Ta strona nie istnieje",
    unknown_text="Adres jest błędny albo płatność została usunięta.",
    back="Wróć",
)
_ALL = {words.lang: words for words in (_ENGLISH, _DUTCH, _POLISH)}


def words_of(locale: str | None) -> Words:
    """Return the words of a session's language, English when it has none of ours."""
    return _ALL.get(locale or "", _ENGLISH)


def amount_text(minor_units: int, currency: str, lang: str) -> str:
    """Return an amount as its language writes it.

    >>> amount_text(123456, "eur", "en"), amount_text(123456, "eur", "nl"), amount_text(123456, "eur", "pl")
    ('€1,234.56', '€\\xa01.234,56', '1\\xa0234,56\\xa0€')
    """
    plain = f"{minor_units // 100:,}.{minor_units % 100:02d}"
    sign = {"eur": "€", "usd": "$", "gbp": "£"}[currency]
    if lang == "nl":
        return f"{sign}\xa0{plain.translate({ord(','): '.', ord('.'): ','})}"
    if lang == "pl":
        return plain.replace(",", "\xa0").replace(".", ",") + f"\xa0{sign}"
    return f"{sign}{plain}"
