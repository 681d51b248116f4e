"""Hours that a rental ran become lines of money: for its renter in the wallet's currency, for its provider in USD."""
