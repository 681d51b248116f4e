"""What pages and calls read of the exchange."""
