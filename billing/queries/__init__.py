"""What pages and calls read of an organisation's money: its wallets, the lines of a statement, the balance over time."""
