"""Price alerts: asked for (`ask`), told (`tell`), ended (`end`)."""
