"""Which card a spelling means: `resolve("NVIDIA H100 80GB HBM3")` is `h100-sxm`, and never a guess.

The order, first answer wins: a spelling of the alias file, letter for letter; an ambiguous spelling, whose rule
decides by memory, form factor, cloud and machine type; the same two with case, separators and leading vendor words
evened out (`words`); last, a reading of the name in which every word must fit exactly one card (`cards`). A name that
fits several cards, or that the hints contradict, comes back with its candidates; anything else is unknown. Nothing is
matched by prefix or by likeness: a word that is not understood ends it.

>>> resolve("nvidia-h100-sxm5-80gb").slug
'h100-sxm'
>>> resolve("H100").candidates
('h100-sxm', 'h100-pcie', 'h100-nvl')
>>> resolve("H100", hints=Hints(cloud="azure", instance_type="Standard_NC40ads_H100_v5")).slug
'h100-nvl'
>>> resolve("RTX 4090 Laptop GPU")
Resolution(slug=None, matched_by='', candidates=())
"""

from catalog.names.clouds import cloud_slug
from catalog.names.hints import Hints
from catalog.names.index import NameIndex, NamesInvalid, default_index, load_index
from catalog.names.resolution import Resolution, resolve

__all__ = [
    "Hints",
    "NameIndex",
    "NamesInvalid",
    "Resolution",
    "cloud_slug",
    "default_index",
    "load_index",
    "resolve",
]
