"""What measurements mean: models of what was measured, from numbers to numbers. Knows no facts, runs nothing."""
