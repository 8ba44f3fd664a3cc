# SPDX-License-Identifier: Apache-2.0
"""tributary.ray with a fake of Ray and with programs that act as the daemons.
tests/deploy/ray.sh uses the real ones."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_ray
import pytest

import tributary

# Writes its arguments to a file, says where it listens, and lives as the test says.
COORDINATOR = """#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --run-dir ] && run=$2
  echo "$1" >> {folder}/coordinator.words
  shift
done
mkdir -p $run
trap 'echo stopped > {folder}/stopped; exit 143' TERM
cat > {folder}/coordinator.keys
echo "small: coordinator 127.0.0.1:7 waits for servers: 1, workers: 1"
{life}
"""
# tributary certificates --out FOLDER
CERTIFICATES = """#!/bin/sh
echo $3 > {folder}/tls.folder
mkdir $3/ca
echo authority-ca.key > $3/ca/ca.key
for role in coordinator server worker; do
  mkdir -p $3/$role
  for file in ca.crt tls.crt tls.key; do echo $role-$file > $3/$role/$file; done
done
"""
DONE = """
echo 'epoch 1/2: test accuracy 0.5000, loss 1.2500'
printf '{{"step":3,"loss":0.5,"samples_per_second":100}}\n{{"st' \
  > $run/metrics.jsonl
echo '{{"weights_sha256": "ab", "test": {{"accuracy": 0.5}}, "lost": {{}}}}' \
  > $run/summary.json
"""


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Trains with a coordinator of this life; members run `member`."""
    fake_ray.install()
    fake_ray.Cluster.reset()
    ours = importlib.import_module("tributary.ray")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    job = tmp_path / "job.yaml"
    job.write_text("name: small\n")

    def run(life: str, member: str = "exit 0", **options: Any) -> Any:
        write = {
            "tributary-coordinator": COORDINATOR.format(folder=tmp_path, life=life),
            "tributary": CERTIFICATES.format(folder=tmp_path),
            "tributary-server": f"#!/bin/sh\necho $@ >> {tmp_path}/server\n"
            f"cat > {tmp_path}/server.keys\n{member}\n",
            "tributary-worker": f"#!/bin/sh\necho $@ >> {tmp_path}/worker\n{member}\n",
        }
        for name, text in write.items():
            (tmp_path / name).write_text(text.replace("{{", "{").replace("}}", "}"))
            (tmp_path / name).chmod(0o755)
        return ours.train(job, run_dir=tmp_path / "run", **options)

    yield run
    fake_ray.uninstall()


def test_a_run_has_the_coordinators_result_and_reports_its_evaluations(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    reported: list[dict[str, float]] = []
    result = train(
        DONE,
        servers=2,
        workers=3,
        overrides={"training.epochs": 2, "evaluation.keep_best": True},
        report=reported.append,
    )
    assert result.sha256 == "ab"
    assert result.test == {"accuracy": 0.5}
    assert result.weights == tmp_path / "run" / "weights.safetensors"
    assert reported == [{"epoch": 1, "test_accuracy": 0.5, "test_loss": 1.25}]
    words = (tmp_path / "coordinator.words").read_text().split()
    assert words[:2] == ["--listen", "127.0.0.1:0"]
    assert "training.epochs=2" in words
    assert "evaluation.keep_best=true" in words
    # The line that is not complete yet is left for later.
    assert fake_ray.Cluster.gauges["tributary_step"] == [3]
    assert fake_ray.Cluster.gauges["tributary_samples_per_second"] == [100]


@pytest.mark.parametrize("insecure_groups", [False, True])
def test_servers_and_workers_have_bundles_and_places(
    train: Callable[..., Any], tmp_path: Path, insecure_groups: bool
) -> None:
    train(
        f"cd {tmp_path}; until [ $(cat server worker | wc -l) = 3 ]; do :; done" + DONE,
        servers=1,
        workers=2,
        server_resources={"CPU": 1, "disk": 2},
        worker_resources={"CPU": 3, "GPU": 1},
        max_restarts=4,
        insecure_groups=insecure_groups,
    )
    actors = fake_ray.Cluster.actors
    assert len(actors) == 3
    assert actors[0].options["resources"] == {"disk": 2}
    assert [a.options["num_gpus"] for a in actors] == [0, 1, 1]
    assert [a.options["max_restarts"] for a in actors] == [4, 4, 4]
    bundles = [
        a.options["scheduling_strategy"].options["placement_group_bundle_index"]
        for a in actors
    ]
    assert bundles == [0, 1, 2]
    server = "--coordinator 127.0.0.1:7 --index 0 --tls - --listen 127.0.0.1:0\n"
    assert (tmp_path / "server").read_text() == server
    keys = json.loads((tmp_path / "server.keys").read_text())
    assert keys["key"] == "server-tls.key\n", "on standard input, in no command line"
    assert keys["certificate"] == "server-tls.crt\n"
    assert keys["authority"] == "server-ca.crt\n"
    workers = sorted((tmp_path / "worker").read_text().splitlines())
    assert workers == [
        f"--coordinator 127.0.0.1:7 --index {i} --tls - --local-rank 0"
        + (" --insecure-groups" if insecure_groups else "")
        for i in (0, 1)
    ]
    assert fake_ray.Cluster.killed == actors, "none outlives the call"
    assert fake_ray.Cluster.groups == [], "the placement group is removed"


def test_private_keys_are_on_no_disk_and_not_in_rays_control_store(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    train(
        f"cd {tmp_path}; until [ -s server.keys ]; do :; done\n"
        '[ -e "$(cat tls.folder)" ] && echo left > folder.left' + DONE,
        servers=1,
        workers=1,
    )
    for actor in fake_ray.Cluster.actors:
        assert "key" not in repr(actor.stored)
        assert "key" not in repr(actor.options)
    assert not (tmp_path / "folder.left").exists(), "gone while the job runs"
    keys = json.loads((tmp_path / "coordinator.keys").read_text())
    assert keys["key"] == "coordinator-tls.key\n"
    words = (tmp_path / "coordinator.words").read_text().split()
    assert words[words.index("--tls") + 1] == "-"


def test_certificates_that_cannot_be_made_leave_no_folder(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    module = sys.modules["tributary.ray._process"]
    refuses = tmp_path / "refuses"
    refuses.write_text(
        "#!/bin/sh\necho k > $3/ca.key; echo 'tributary: full' >&2; exit 1"
    )
    refuses.chmod(0o755)
    monkeypatch.setattr(module, "find_program", lambda _: str(refuses))
    with pytest.raises(tributary.Unavailable, match="^tributary: full$"):
        train("")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_member_that_is_lost_too_often_ends_the_run_and_is_named(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(
        tributary.Unavailable,
        match=r"^(server|worker)-0 exited with 7 3 times; its log says why$",
    ):
        train(
            "sleep 60 & wait",
            f"[ -e {tmp_path}/stopped ] && exit 0; exit 7",
            max_restarts=2,
        )
    assert (tmp_path / "stopped").exists(), "the coordinator was asked to stop"
    assert len(fake_ray.Cluster.killed) == 2


def test_an_actor_that_ray_gives_up_is_named(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(_: Any, keys: str) -> None:
        raise fake_ray.RayError("The actor died\nits node was terminated")

    module = sys.modules["tributary.ray._members"]
    monkeypatch.setattr(module.Member, "run", dies)
    with pytest.raises(
        tributary.Unavailable,
        match=r"^(server|worker)-0 was started 10 times again and is lost: its node",
    ):
        train("sleep 60 & wait")


def test_a_failed_job_raises_with_the_coordinators_error(
    train: Callable[..., Any],
) -> None:
    with pytest.raises(tributary.Error, match="^tributary-coordinator: no room$"):
        train("echo 'tributary-coordinator: no room' >&2; exit 1")


def test_a_refused_job_raises_before_a_member_starts(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = sys.modules["tributary.ray._process"]
    refuses = tmp_path / "refuses"
    refuses.write_text("#!/bin/sh\necho 'tributary: job.yaml:1: no' >&2; exit 2\n")
    refuses.chmod(0o755)
    find = module.find_program
    monkeypatch.setattr(
        module,
        "find_program",
        lambda name: find(name) if name == "tributary" else str(refuses),
    )
    with pytest.raises(tributary.Unavailable, match="^tributary: job.yaml:1: no$"):
        train("")
    assert fake_ray.Cluster.actors == []
    assert fake_ray.Cluster.groups == []


def test_a_cluster_without_the_resources_is_named(train: Callable[..., Any]) -> None:
    with pytest.raises(
        tributary.Timeout,
        match=r"^waited 1 s for a placement group \(SPREAD\) of 1 x {'CPU': 1.0} and "
        "8 x {'CPU': 2, 'GPU': 1}; the cluster has 8 CPU, 8 of it free, "
        "0 GPU, 0 of it free$",
    ):
        train(
            "",
            servers=1,
            workers=8,
            worker_resources={"CPU": 2, "GPU": 1},
            start_timeout=1,
            strategy="SPREAD",
        )
    assert fake_ray.Cluster.groups == []


def test_an_interrupt_stops_the_coordinator_and_is_raised(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    def interrupt(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            "echo 'epoch 1/2: test loss 1.0'; sleep 60 & wait",
            f"until [ -e {tmp_path}/stopped ]; do sleep 0.05; done",
            report=interrupt,
        )
    assert (tmp_path / "stopped").exists()
    assert len(fake_ray.Cluster.killed) == 2


# Python ignores what a finalizer raises.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_within_a_finalizer_is_not_lost(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(
            "echo 'epoch 1/2: test loss 1.0'; sleep 20 & wait",
            f"until [ -e {tmp_path}/stopped ]; do sleep 0.05; done",
            report=lambda _: (Finalized(), None)[1],
        )
    assert (tmp_path / "stopped").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_missing_job_file_is_named(train: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "job.yaml").unlink()
    with pytest.raises(tributary.InvalidSetting, match="there is no job file /.*job.y"):
        train("")


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("step 7: validation loss 2.5", {"step": 7, "validation_loss": 2.5}),
        ("epoch 2: test accuracy 1.0\n", {"epoch": 2, "test_accuracy": 1.0}),
        ("test: accuracy 0.8957, loss 0.3310", None),
        ("step 1186/11725 (10%), epoch 3/25: loss 0.4267, 54.1k samples/s", None),
        ("epoch 2/3: test accuracy unknown", None),
    ],
)
def test_only_lines_of_evaluations_are_evaluations(
    train: Callable[..., Any], line: str, values: dict[str, float] | None
) -> None:
    module = sys.modules["tributary.ray._result"]
    assert module.parse_evaluation(line) == values


def test_without_ray_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without_ray(name: str, *arguments: Any) -> Any:
        if name.split(".")[0] == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, *arguments)

    fake_ray.uninstall()
    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(ImportError, match="needs Ray: pip install 'tributary.ray.'"):
        importlib.import_module("tributary.ray")
