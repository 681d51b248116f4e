"""Template tags about use cases."""
