"""The catalogue over HTTP: one file per thing asked for. Read only, open to all, kept by caches."""
