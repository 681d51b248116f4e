"""The terms of use in force, and the figures they promise.

A flow that stores somebody's consent stores VERSION with it. The pages print the figures from here, and the code that
keeps a promise reads the same line. A new version takes effect NOTICE_DAYS after its announcement at the earliest.
"""

from datetime import date

VERSION = "1"
IN_FORCE_FROM = date(2026, 12, 1)
NOTICE_DAYS = 15
END_NOTICE_DAYS = 30  # when it is we who end the agreement
ANSWER_DAYS = 30  # to a complaint, and to whoever asks for their data

# Renting
READY_WITHIN_MINUTES = 10  # otherwise the start has failed and costs nothing
GAP_AFTER_SECONDS = 60  # without a sign of life: not billed, from the last one to the next
INTERRUPTED_AFTER_MINUTES = 5  # without a sign of life: the rental ends
HELD_AHEAD_HOURS = 1  # of a rental without an end
LOW_BALANCE_ALERT_SECONDS = (86_400, 10_800, 1_800)  # of money left at the present rate

# Records
TAX_RECORD_YEARS = 10
SIGNS_OF_HOME = 2  # how many a consumer's rate of tax rests on
WITHDRAWAL_DAYS = 14
