"""Guides: one Markdown file per language in `texts/<slug>/`, their numbers filled in when they are read.

A figure is written `{{ kind:argument.argument }}` (kinds: `figures.py`); a paragraph, or a line of a list or table,
whose figure is not there today is left out. A link to a page of the site is written `[words](page:name/argument)`.
"""
