"""The exchange's fixed limits: what every rule, page and text takes from here."""

from datetime import timedelta
from decimal import Decimal

TICK_USD = Decimal("0.0001")
LIVE_FOR = timedelta(seconds=60)
START_WITHIN = timedelta(minutes=10)
QUOTE_FOR = timedelta(seconds=60)
LONGEST_ORDER = timedelta(days=7)
MOST_HOURS = 720
MOST_SERVERS = 16
MOST_RESTING_ORDERS = 200
MOST_LISTED_HOURS = 8760
USUAL_LISTED_HOURS = 720
OPEN_ENDED_HOURS_AT_FIRST = 1
COLLAR_FACTOR = Decimal("1.5")
FILLS_FOR_A_REFERENCE = 5
REFERENCE_PERIOD = timedelta(hours=24)
HOLD_SPARE_MICROS_PER_HOUR = 2
LOST_AFTER = timedelta(minutes=5)
STOP_WITHIN = timedelta(seconds=120)
RAISE_BEFORE = timedelta(minutes=10)
ALERT_LEVELS = (timedelta(hours=24), timedelta(hours=3), timedelta(minutes=30))
ALERT_CLEARED_AT = Decimal("1.25")  # of a level: what hovers around it is told once
CLOCKS_DIFFER_BY = timedelta(seconds=60)  # at most, between two processes: closer moments have no order
