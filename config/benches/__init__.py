"""Speed, measured as ratios: the physical limit and us in turn, in one run on one machine, medians."""
