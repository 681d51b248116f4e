"""The catalogue's pages: one file per page, the view first, what it prints below."""
