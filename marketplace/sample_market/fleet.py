"""The demo fleet: plays the agents of the sample servers through the exchange's own functions.

Every function asks the database what is due and may run twice or late. A demo opened after a week has its servers and
best asks back with the first run.
"""

from datetime import datetime

from marketplace.sample_market.agents import servers_that_beat
from marketplace.servers import beat_all


def play_fleet(*, now: datetime) -> int:
    """Let the sample servers beat; return how many did. A second run at the same time changes nothing."""
    servers = servers_that_beat(now=now)
    beat_all(server_ids=servers, now=now)
    return len(servers)
