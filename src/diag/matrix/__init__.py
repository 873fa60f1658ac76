"""The version matrix: releases, rules and cases as data, and the verdict on a set of versions."""
