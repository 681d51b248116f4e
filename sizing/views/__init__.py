"""The pages on top of the sizing engine: one file per page, the view first, what it prints below."""
