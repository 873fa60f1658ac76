"""The way from a set of versions to one that works: what is wished for, the tables, all ways, and the nearest."""
