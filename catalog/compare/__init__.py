"""Offers side by side: the filters, said once for API and page; what a job costs at each; rows, counts and columns."""
