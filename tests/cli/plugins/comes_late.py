"""One rank begins each call of a chain late, by 30 % of the time from one call to the next."""

import os
import time

import torch

SHARE = 0.3
whole, mm = [], torch.mm
last = time.perf_counter()


def late(*matrices):
    global last
    now = time.perf_counter()
    whole.append(now - last)
    end = now + SHARE * sorted(whole[-24:])[len(whole[-24:]) // 2]
    while time.perf_counter() < end:
        pass
    last = time.perf_counter()
    return mm(*matrices)


if os.environ["RANK"] == os.environ.get("DIAG_TEST_LATE"):
    torch.mm = late
