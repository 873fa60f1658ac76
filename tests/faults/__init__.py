"""Faults of the machine and of what runs on it, given to the real program."""
