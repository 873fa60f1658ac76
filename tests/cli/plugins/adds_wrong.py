"""A backend for torch that adds wrong by one in one element of one rank; the rest is gloo's."""

import torch.distributed as dist


class AddsWrong(dist.ProcessGroup):
    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def allreduce(self, tensors, opts=None):
        work = self.gloo.allreduce(tensors, opts or dist.AllreduceOptions())
        work.wait()
        if self.rank() == 1:
            tensors[0][len(tensors[0]) // 2] += 1
        return work

    def barrier(self, opts=None):
        return self.gloo.barrier(opts or dist.BarrierOptions())


dist.Backend.register_backend("adds_wrong", AddsWrong, devices=["cpu"])
