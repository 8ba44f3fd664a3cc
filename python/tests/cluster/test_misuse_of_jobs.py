# SPDX-License-Identifier: Apache-2.0
"""Misuse that only real processes can commit: one exception that says what to do,
in every rank, and no process hangs.

A rank is a process of its own with numpy arrays (processes.py). A test fails by
its deadline only where a process hangs.
"""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from processes import Job, Rank  # noqa: E402

pytestmark = pytest.mark.cluster

DECLARE = "client.declare({'w': np.ones(2)}, lr=0.1)\n"
STEP = "client.step({'w': np.ones(2)})\n"
STEPS = "while True: client.step({'w': np.ones(2)})\n"
FINISH = "client.finish()\n"
# Says that it has joined, and keeps its place until the test ends it.
STAY = DECLARE + "print('joined', flush=True)\nsys.stdin.read()\n"


def two(
    folder: Path, first: str, second: str, connects: tuple[str, str] = ("", "")
) -> tuple[str, str]:
    """The outputs of the ranks of a job that run these statements."""
    with Job(folder, workers=2) as job:
        ranks = [
            job.rank(rank, statements, connect)
            for rank, (statements, connect) in enumerate(
                zip((first, second), connects, strict=True)
            )
        ]
        return ranks[0].output(), ranks[1].output()


def both_match(outputs: tuple[str, str], kinds: str, message: str) -> None:
    """Each rank's error has one of these classes; at least one has the first."""
    for output in outputs:
        assert re.search(f"^({kinds}): .*{message}", output, re.MULTILINE), outputs
    assert any(re.search(f"^{kinds.split('|')[0]}: ", o, re.MULTILINE) for o in outputs)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("{'w': np.ones(3)}, lr=0.1", r'"w" \[(2|3)\] instead of "w" \[(2|3)\]'),
        ("{'v': np.ones(2)}, lr=0.1", '"(w|v)" .* instead of "(w|v)"'),
        ("{'w': np.ones(2)}, 'adam', lr=0.1", "declares the setting .*adam"),
        ("{'w': np.ones(2)}, lr=0.1, total_steps=4", "steps instead of"),
    ],
)
def test_ranks_that_declare_different_things(
    tmp_path: Path, declaration: str, message: str
) -> None:
    other = f"client.declare({declaration})\n"
    outputs = two(tmp_path, DECLARE + FINISH, other + FINISH)
    both_match(outputs, "ModelMismatch|WrongState", message)


def test_ranks_with_different_data(tmp_path: Path) -> None:
    declare = "client.declare({'w': np.ones(2)}, lr=0.1, data_checksum=%d)\n"
    outputs = two(tmp_path, declare % 5 + FINISH, declare % 6 + FINISH)
    message = "checksum 0000000(5|6) instead of 0000000(5|6)"
    both_match(outputs, "ModelMismatch|WrongState", message)


def test_ranks_with_different_settings(tmp_path: Path) -> None:
    connects = ("clip_norm=1.0", "clip_norm=2.0")
    outputs = two(tmp_path, DECLARE + FINISH, DECLARE + FINISH, connects)
    both_match(outputs, "ModelMismatch|WrongState", "training.clip_norm=(1|2).0")


def test_a_rate_that_differs_between_ranks(tmp_path: Path) -> None:
    other = STEP + "client.step({'w': np.ones(2)}, lr=0.5)\n"
    outputs = two(tmp_path, DECLARE + STEP + STEP, DECLARE + other)
    message = "rank (0|1) sent learning rate .* for step 2, .* as rank (0|1) has sent"
    both_match(outputs, "Misuse|WrongState", message)


def test_a_gradient_that_is_not_finite(tmp_path: Path) -> None:
    infinite = "client.step({'w': np.full(2, np.inf)})\n"
    outputs = two(tmp_path, DECLARE + STEPS, DECLARE + infinite)
    message = 'gradient of rank 1 for step 1 is not finite in "w", element 0'
    both_match(outputs, "Misuse|WrongState", message)


def test_a_rank_that_takes_fewer_steps(tmp_path: Path) -> None:
    outputs = two(tmp_path, DECLARE + STEP + FINISH, DECLARE + STEP + STEP + FINISH)
    message = "ended after 1 steps, .* every rank must take the same number of steps"
    both_match(outputs, "WrongState", message)


@pytest.mark.parametrize(
    "raising",
    [
        f"with client:\n  {DECLARE}  1 / 0\n",
        DECLARE + STEP + "1 / 0\n",
    ],
    ids=["block", "program"],
)
def test_an_exception_in_one_rank_reaches_the_others(
    tmp_path: Path, raising: str
) -> None:
    raised, other = two(tmp_path, raising, DECLARE + STEPS)
    assert "ZeroDivisionError: division by zero" in raised
    wanted = "WrongState: .*rank 0: ZeroDivisionError: division by zero"
    assert re.search(wanted, other), other


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("sys.exit(3)\n", "SystemExit: 3"),
        ("sys.exit('no data')\n", "SystemExit: no data"),
        ("", "the program ended after step 1 without saying"),
        (
            "import threading\n"
            f"thread = threading.Thread(target=lambda: ({STEP.strip()}, 1 / 0))\n"
            "thread.start(); thread.join()\n",
            "ZeroDivisionError: division by zero",
        ),
    ],
    ids=["code", "text", "open", "thread"],
)
def test_a_program_that_gives_up_fails_the_job(
    tmp_path: Path, end: str, told: str
) -> None:
    _, other = two(tmp_path, DECLARE + STEP + end, DECLARE + STEPS)
    assert re.search(f"WrongState: .*rank 0: {told}", other), other


def test_weights_that_were_written_between_steps(tmp_path: Path) -> None:
    write = "weights = client.step({'w': np.ones(2)})\nweights['w'][1] = 7\n"
    with Job(tmp_path) as job:
        output = job.rank(0, DECLARE + write + STEP).output()
    assert re.search('Misuse: .*written into the weights of "w" after step 1', output)


def test_a_server_that_is_lost_and_not_started_again(tmp_path: Path) -> None:
    with Job(tmp_path) as job:
        kill = f"import os\nos.kill({job.servers[0].pid}, 9)\n"
        timeouts = "lease_seconds=1, sync_timeout=2"
        rank = job.rank(0, DECLARE + STEP + kill + STEPS, timeouts)
        wanted = (
            r"WrongState: server 0 .* was lost, last heard at step \d+, "
            "and nobody has taken"
        )
        assert re.search(wanted, rank.output())


def test_a_rank_and_a_job_that_are_full(tmp_path: Path) -> None:
    with Job(tmp_path, workers=2) as job:
        ranks = [job.rank(rank, STAY) for rank in (0, 1)]
        for rank in ranks:
            rank.wait_for("joined")
        twice = job.rank(0, DECLARE, "join_timeout=2")
        # The coordinator's own text, or the text of a search that timed out.
        wanted = r"(PlaceTaken|Unavailable): no place at coordinator .* after \d+\.\d s"
        assert re.search(wanted, twice.output())
        third = Rank(
            f"client = tributary.connect({job.address!r}, join_timeout=2)\n" + DECLARE
        )
        assert re.search(wanted, third.output())
        outside = job.rank(2, DECLARE)
        wanted = "InvalidSetting: worker 2 is wanted, but the job has 2 of them"
        assert wanted in outside.output()
        for rank in ranks:
            rank.process.kill()
            rank.output()


@pytest.mark.parametrize("field", ["clip_norm: 2", "nonfinite: skip"])
def test_a_job_file_that_contradicts_the_program(tmp_path: Path, field: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"training:\n  {field}\n")
    with Job(tmp_path, "--job", str(file)) as job:
        rank = job.rank(0, DECLARE, "clip_norm=1.0, nonfinite='reject'")
        wanted = r"InvalidSetting: .*is (2|skip) \(.*job.yaml:2\), but the program"
        assert re.search(wanted, rank.output()), rank.output()


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        ("checkpoint_every=-1", "checkpoint.every_steps must be at least 0"),
        ("sync='bps'", 'did you mean "bsp"'),
        ("settings={'trainig.clip_norm': 1}", 'did you mean "training"'),
        ("wire='float33'", "float33"),
    ],
)
def test_settings_that_the_job_refuses(
    tmp_path: Path, connect: str, message: str
) -> None:
    with Job(tmp_path) as job:
        output = job.rank(0, DECLARE, connect).output()
    assert re.search(f"InvalidSetting: .*{message}", output), output


def test_a_coordinator_that_trains_a_model_of_its_own(tmp_path: Path) -> None:
    example = HERE.parents[2] / "examples" / "digits.yaml"
    with Job(tmp_path, "--job", str(example), workers=2) as job:
        output = job.rank(0, DECLARE).output()
    assert re.search('WrongState: the job "digits" has a model of its own', output)


def test_no_coordinator_is_known() -> None:
    output = Rank("client = tributary.connect()\n" + DECLARE).output()
    assert re.search("Misuse: .*start this program with `tributary run", output)


def connect_to(address: str) -> str:
    opening = f"client = tributary.connect({address!r}, rank=0, join_timeout=1)\n"
    return Rank(opening + DECLARE).output()


def test_an_address_at_which_no_coordinator_answers() -> None:
    wanted = "Unavailable: .*could not be reached for .*; start the coordinator, or "
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # One port is closed; the other one accepts connections and never answers.
        for port in (1, silent.getsockname()[1]):
            output = connect_to(f"127.0.0.1:{port}")
            assert re.search(wanted, output), output
            assert "Deadline Exceeded" not in output


@pytest.mark.parametrize(
    "address, why",
    [
        ("nowhere", "address must be HOST:PORT"),
        (":7070", "address must be HOST:PORT"),
        ("127.0.0.1:99999", "the port of 127.0.0.1:99999 is too large"),
    ],
)
def test_an_address_that_is_none(address: str, why: str) -> None:
    assert f"InvalidSetting: {why}" in connect_to(address)


def test_the_address_of_a_server(tmp_path: Path) -> None:
    with Job(tmp_path) as job:
        rank = job.rank(0, STAY)
        rank.wait_for("joined")
        log = (tmp_path / "server-1.log").read_text()
        port = re.search(r"listening on port (\d+)", log)
        assert port is not None
        output = connect_to(f"127.0.0.1:{port[1]}")
        rank.process.kill()
        rank.output()
    assert re.search("Unavailable: .* not that of a coordinator", output), output


def test_a_fork_does_not_use_its_parents_connection(tmp_path: Path) -> None:
    fork = (
        "import os\n"
        "child = os.fork()\n"
        "try:\n"
        "    client.step({'w': np.ones(2)})\n"
        "except tributary.Error as error:\n"
        "    print(f'child {child}: {type(error).__name__}: {error}', flush=True)\n"
        "    sys.exit(7)  # the end of the child does not end the job\n"
        "_, status = os.waitpid(child, 0)\n"
        "print('the child exits with', os.waitstatus_to_exitcode(status))\n"
    )
    with Job(tmp_path) as job:
        output = job.rank(0, DECLARE + STEP + fork + STEP + FINISH).output()
    wanted = (
        r"child 0: WrongState: process \d+ was forked .* after it had connected.*"
        r'; connect in the process that trains, or .* "spawn"'
    )
    assert re.search(wanted, output), output
    assert "the child exits with 7" in output
    assert output.count("Error") == 0 and output.count("WrongState") == 1, output
