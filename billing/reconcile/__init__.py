"""What the gateway says of itself, compared with our books: lists instead of messages, movements, the daily close."""
