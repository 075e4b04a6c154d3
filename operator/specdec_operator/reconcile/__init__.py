"""The work queue, the reconcilers and their status: the only room that decides to write."""
