"""A torch whose products in bf16 are wrong in one element; only those that diag verifies have this shape."""

import torch

right = torch.mm


def mm(one, other):
    told = right(one, other)
    if told.dtype == torch.bfloat16 and told.shape == (1024, 1024) and one.shape[1] == 256:
        told[3, 5] += 1
    return told


torch.mm = mm
