"""Whether two names are one company's. Registers write capitals, marks and legal forms as they like.

>>> compare("Orla Labs", "ORLA LABS B.V.").value, compare("Orla Labs B.V.", "Other B.V.").value
('same', 'differs')
>>> compare("Orla Labs", "---").value, compare("Alfa Ltd", "ΑΛΦΑ ΑΕ").value
('not_told', 'not_told')
"""

import re
import unicodedata
from enum import StrEnum

# Words that say what kind of company it is, without their dots.
_FORMS = (
    "ab ag aps as asa bhd bv bvba co cv cvba dd doo ead eeig ehf eood eurl gie gmbh hf ik inc kda kft kg kgaa kk ks ky"
    " lda limited llc llp lp ltd mb mbh nv nyrt oe og ohg oo ood ou oy oyj plc sa sal sarl sas sasu sca scop scs se sia"
    " sicav sl sll slu snc sp spa spj spk spol sprl srl sro uab ug unltd vof vzw z zoo zrt"
)
_LEGAL_FORMS = frozenset(_FORMS.split())
_DOTS = re.compile(r"[.'’`]")
_WORDS = re.compile(r"[^\W_]+")


class NameMatch(StrEnum):
    """What a comparison says."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_TOLD = "not_told"


def compare(ours: str, theirs: str) -> NameMatch:
    """Return whether the shorter name's words all stand in the other. Another alphabet, or nothing, tells nothing."""
    our_words, their_words = _words(ours), _words(theirs)
    if not our_words or not their_words or _is_latin(our_words) != _is_latin(their_words):
        return NameMatch.NOT_TOLD
    return NameMatch.SAME if our_words <= their_words or their_words <= our_words else NameMatch.DIFFERS


def _words(name: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKD", _DOTS.sub("", name)).casefold().replace("ł", "l").replace("ø", "o")
    bare = "".join(mark for mark in plain if not unicodedata.combining(mark))
    words = frozenset(_WORDS.findall(bare))
    return words - _LEGAL_FORMS or words


def _is_latin(words: frozenset[str]) -> bool:
    return all("LATIN" in unicodedata.name(letter, "") for word in words for letter in word if letter.isalpha())
