"""The demo's market: sample providers with servers, a few days of trading, and a fleet that keeps it alive.

`rows` reads the data files, `plan` turns them into what shall have happened (pure, seeded), `people` opens the sample
organisations, `build` plays the plan through the exchange's own functions, `fleet` and `keep_alive` go on from there.
"""
