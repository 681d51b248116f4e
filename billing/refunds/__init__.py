"""Unspent money back to the payments it came from: allocation, the request, the call to the gateway, what it answers."""
