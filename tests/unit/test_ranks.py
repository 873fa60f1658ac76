"""Which rank a process is, by the variables of its launcher."""

import pytest

from diag.errors import DiagError
from diag.ranks import HERE, PORTS, launched

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "8",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NODELIST": "gpu[07-08,12],login1",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "0",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "PMIX_NAMESPACE": "1234@1",
    "PMIX_RANK": "2",
}
HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (TORCHRUN, (3, 4, 1, "node1", "torchrun")),
        (SRUN, (5, 8, 1, "gpu07", "srun")),
        (MPIRUN, (2, 4, 2, HERE, "Open MPI")),
        (HYDRA, (1, 2, 1, HERE, "Hydra")),
        ({**SRUN, "SLURM_STEP_NODELIST": "a-1.b"}, (5, 8, 1, "a-1.b", "srun")),
        ({**MPIRUN, "MASTER_ADDR": "10.0.0.1"}, (2, 4, 2, "10.0.0.1", "Open MPI")),
    ],
)
def test_a_rank_is_told_by_its_launcher(environment, told):
    found = launched(environment)
    assert (found.rank, found.size, found.local, found.address, found.launcher) == told
    assert found.environment()["WORLD_SIZE"] == str(found.size)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77"},
        {**SRUN, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_alone_or_in_the_shell_of_a_batch_job_there_is_no_world(environment):
    assert launched(environment) is None


def test_all_ranks_of_a_job_meet_at_one_port_and_jobs_apart():
    ports = {launched({**SRUN, "SLURM_PROCID": str(rank)}).port for rank in range(8)}
    assert len(ports) == 1
    assert launched({**SRUN, "SLURM_STEP_ID": "1"}).port not in ports
    assert ports <= set(PORTS)
    assert launched(TORCHRUN).port == 29500


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({**TORCHRUN, "RANK": "x"}, "RANK is 'x'"),
        ({**TORCHRUN, "RANK": "-1"}, "RANK is '-1'"),
        ({**TORCHRUN, "RANK": "4"}, "RANK is 4, but WORLD_SIZE is 4"),
        ({**TORCHRUN, "MASTER_PORT": "p"}, "MASTER_PORT"),
        ({**MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "set MASTER_ADDR"),
    ],
)
def test_what_is_no_world_is_said_in_one_line(environment, says):
    with pytest.raises(DiagError, match=says):
        launched(environment)
