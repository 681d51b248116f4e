"""Parts of member states with VAT rules of their own, found by postcode. Each goes to a person before anything is sold.

>>> special_area("ES", "35001"), special_area("ES", "28001"), special_area("PT", "9000-050"), special_area("AX", "")
('canaries', '', 'madeira', 'aland')
"""

import re

# Country, first digits of the postcode, area. The longest row that fits decides.
_BY_POSTCODE = (
    ("ES", "35", "canaries"),
    ("ES", "38", "canaries"),
    ("ES", "51", "ceuta"),
    ("ES", "52", "melilla"),
    ("FI", "22", "aland"),
    ("IT", "23041", "livigno"),
    ("IT", "23030", "livigno"),  # its postcode of former years
    ("IT", "22061", "campione"),
    ("IT", "22060", "campione"),  # the same
    ("DE", "78266", "busingen"),
    ("DE", "27498", "heligoland"),
    ("GR", "63086", "mount_athos"),
    ("GR", "63087", "mount_athos"),
    ("FR", "97", "french_overseas"),
    ("FR", "986", "french_overseas"),
    ("FR", "987", "french_overseas"),
    ("FR", "988", "french_overseas"),
    ("PT", "90", "madeira"),
    ("PT", "91", "madeira"),
    ("PT", "92", "madeira"),
    ("PT", "93", "madeira"),
    ("PT", "94", "madeira"),
    ("PT", "95", "azores"),
    ("PT", "96", "azores"),
    ("PT", "97", "azores"),
    ("PT", "98", "azores"),
    ("PT", "99", "azores"),
    ("AT", "6691", "jungholz"),
    ("AT", "699", "mittelberg"),
)
# The same areas where they have an ISO code of their own.
_BY_CODE = {
    "AX": "aland",
    "GF": "french_overseas",
    "GP": "french_overseas",
    "MQ": "french_overseas",
    "RE": "french_overseas",
    "YT": "french_overseas",
}
COUNTRIES_WITH_AREAS = frozenset(country for country, _, _ in _BY_POSTCODE)


def special_area(country: str, postcode: str) -> str:
    """Return the area's name, "" for everywhere else. Without a postcode the mainland is assumed."""
    digits = re.sub(r"[^0-9]", "", postcode)
    fitting = [
        (len(start), area) for state, start, area in _BY_POSTCODE if state == country and digits.startswith(start)
    ]
    return max(fitting)[1] if fitting else _BY_CODE.get(country, "")
