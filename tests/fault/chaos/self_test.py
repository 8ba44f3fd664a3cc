# SPDX-License-Identifier: Apache-2.0
"""Whether chaos finds errors in made-up runs: chaos.sh --self-test."""

import collections
import datetime
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import causes
import checkpoints
import endings
import faults
import jobs
import judge
import known
import promises
import ways
from results import Result
from run import WAYS, Run
from trials import Trial

Tools = collections.namedtuple("Tools", "binaries python source")
REFERENCE = Result("aa", 0, 0.5, None, [])


class KnownResult:
    """Stands for References."""

    def __init__(self, result):
        self.result = result

    def of(self, trial):
        return self.result


def trial_of(**fields):
    """A trial of 640 steps over two servers, without faults."""
    trial = next(t for t in map(Trial, range(1000)) if t.name == "ps2")
    trial.way, trial.every, trial.evaluate, trial.epochs = "train", 40, 0, 40
    trial.small_disk, trial.long, trial.faults = False, False, []
    trial.on_loss, trial.timeout, trial.steps = "wait", 0, 640
    trial.__dict__.update(fields)
    return trial


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="chaos-self-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_of(self, fired=(), output="", **fields):
        """A run in whose only attempt these faults have fired."""
        trial = trial_of(faults=list(fired), **fields)
        folder = tempfile.mkdtemp(dir=self.folder)
        run = Run(trial, folder, Tools("bin", "python3", "."))
        run.begin_attempt()
        os.makedirs(run.attempt.run_dir)
        for fault in fired:
            fault.fired, fault.attempt = True, 1
        with open(run.attempt.output, "w", encoding="utf-8") as file:
            file.write(output)
        return run

    def finish(self, run, recorded=None, samples=None, **summary):
        """Writes what a run that is done leaves behind."""
        content = {
            "status": "done",
            "steps": 640,
            "start_step": 0,
            "checkpoint_step": 640,
            "test": {"loss": 0.5},
            "evaluations": [],
            "lost": {"workers": 0, "servers": 0, "rollbacks": 0},
            "weights_sha256": "aa",
        }
        content.update(summary)
        path = os.path.join(run.attempt.run_dir, "summary.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        path = os.path.join(run.attempt.run_dir, "metrics.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for step in recorded or range(1, 641):
                line = {"step": step, "samples": samples or (80 if step % 16 else 50)}
                print(json.dumps(line), file=file)
        return run

    def wrong(self, run, reference=REFERENCE):
        return judge.what_is_wrong(run, KnownResult(reference))


class Draws(Case):
    def test_a_seed_draws_the_same_trial_again(self):
        self.assertEqual(str(Trial(17)), str(Trial(17)))

    def test_everything_is_drawn(self):
        trials = [Trial(seed) for seed in range(2000)]
        kinds = {fault.kind for trial in trials for fault in trial.faults}
        apart = {"take checkpoint"}
        self.assertEqual(kinds, {kind.name for kind in faults.KINDS} | apart)
        self.assertEqual({trial.name for trial in trials}, set(jobs.STRATEGIES))
        self.assertEqual({trial.way for trial in trials}, set(WAYS))
        self.assertTrue(any(trial.long for trial in trials))

    def test_no_open_reason_leaves_out_nothing_or_most(self):
        trials = [Trial(seed) for seed in range(2000)]
        for why, applies in known.OPEN.items():
            self.assertTrue(0 < sum(map(applies, trials)) < 1000, why)

    def test_a_field_joins_those_of_its_part(self):
        block = jobs.with_field(
            "{all_reduce: {}, tensor_parallel: 2}", "all_reduce", "a: 1"
        )
        self.assertEqual(block, "{all_reduce: {a: 1}, tensor_parallel: 2}")

    def test_a_pasted_command_gets_what_it_lacks_and_what_has_changed(self):
        said = ["train", "--servers", "2", "--set", "a=1", "--insecure"]
        wanted = ["--insecure", "--set", "a=1", "--set", "b=1", "--listen", "x"]
        self.assertEqual(ways.missing(wanted, said), ["--set", "b=1", "--listen", "x"])
        self.assertEqual(ways.without(["--servers", "3"], said), [said[0], *said[3:]])


class Ends(Case):
    def test_a_run_as_it_should_be(self):
        self.assertIsNone(self.wrong(self.finish(self.run_of())))

    def test_other_weights(self):
        run = self.finish(self.run_of(), weights_sha256="bb")
        self.assertIn("weights bb, undisturbed aa", self.wrong(run))

    def test_a_missing_step(self):
        run = self.finish(self.run_of(), recorded=[*range(1, 100), *range(101, 641)])
        self.assertIn("gaps [(99, 101)]", self.wrong(run))

    def test_samples_of_another_place_in_the_epoch(self):
        run = self.finish(self.run_of(), samples=80)
        self.assertIn("step 16: 80 samples, wanted 50", self.wrong(run))

    def test_a_repeated_evaluation(self):
        evaluations = [{"step": step} for step in (28, 56, 56)]
        run = self.finish(self.run_of(evaluate=28), evaluations=evaluations)
        reference = REFERENCE._replace(evaluations=[28, 56, 84])
        self.assertIn("steps [56] again, of [84]", self.wrong(run, reference))

    def test_another_best_evaluation(self):
        run = self.finish(self.run_of(evaluate=28), best={"step": 28})
        reference = REFERENCE._replace(best={"step": 56})
        self.assertIn("undisturbed {'step': 56}", self.wrong(run, reference))

    def test_the_weights_of_the_best_evaluation(self):
        """A full disk may have had no room for them, but others are wrong."""
        reference = REFERENCE._replace(best={"step": 28, "weights_sha256": "aa"})
        for small_disk in [False, True]:
            run = self.run_of(evaluate=28, small_disk=small_disk)
            wrong = self.wrong(self.finish(run, best={"step": 28}), reference)
            self.assertEqual(wrong is None, small_disk, wrong)
        own = {"step": 28, "weights_sha256": "bb"}
        run = self.finish(self.run_of(evaluate=28), best=own)
        self.assertIn("best", self.wrong(run, reference))

    def test_a_program_with_nothing_left_to_train_evaluates_nothing(self):
        for way, start in [("program", 600), ("train", 640), ("program", 640)]:
            run = self.run_of(way=way)
            self.finish(run, range(start + 1, 641), start_step=start, test={})
            is_wrong = (way, start) != ("program", 640)
            self.assertEqual("no evaluation" in str(self.wrong(run)), is_wrong)

    def test_a_half_written_file(self):
        run = self.finish(self.run_of())
        open(os.path.join(run.attempt.run_dir, "x.partial-1"), "w").close()
        self.assertIn("half-written", self.wrong(run))

    def test_a_lost_member_without_a_notice(self):
        kill = faults.Fault("kill", 0.5, role="worker", index=1)
        run = self.finish(self.run_of([kill]), lost={"workers": 1})
        self.assertIn("worker 1 was killed, and no notice", self.wrong(run))
        notice = "worker 1 (h pid 3) was lost, last heard at step 9: killed"
        run = self.finish(self.run_of([kill], notice), lost={"workers": 1})
        self.assertIsNone(self.wrong(run))

    def test_a_member_that_pauses_after_its_work_is_not_lost(self):
        done = "2026-11-29T16:44:10.075995Z info coordinator: the job is done\n"
        over = datetime.datetime(
            2026, 11, 29, 16, 44, 10, tzinfo=datetime.timezone.utc
        ).timestamp()
        for before, is_lost in ((1, False), (9, True)):
            pause = faults.Fault("long pause", 0.9, role="worker", index=1)
            pause.at = over - before
            run = self.finish(self.run_of([pause], done, lease=2))
            self.assertEqual(self.wrong(run) is not None, is_lost)

    def test_a_pause_ends_although_the_job_is_over(self):
        run = self.run_of(way="daemons")
        paused = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        run.way.address, run.way.members = "there", [("worker", paused)]
        run.at(0, paused.stdin.close)
        self.assertIsNone(endings.wait_for_members(run))
        self.assertEqual(paused.returncode, 0)


class Codes(Case):
    def test_a_fault_explains_its_own_codes_alone(self):
        run = self.run_of([faults.Fault("SIGTERM", 0.5)])
        self.assertEqual(endings.explained_codes(run), {143})
        run = self.run_of([faults.Fault("SIGHUP", 0.5)])
        self.assertEqual(endings.explained_codes(run), {129})
        self.assertEqual(endings.explained_codes(self.run_of()), set())

    def test_a_second_signal_ends_everything_when_it_comes_late(self):
        run = self.run_of([faults.Fault("SIGTERM twice", 0.5, seconds=2)])
        for second, late, codes in (
            ("SIGTERM", 0.5, {143}),
            ("SIGTERM", 1.5, {130, 143}),
            ("SIGHUP", 1.5, {143}),
        ):
            run.attempt.signals = [("SIGTERM", 10.0), (second, 10.0 + late)]
            self.assertEqual(endings.explained_codes(run), codes)

    def test_a_successor_does_not_know_which_signal_began_the_stop(self):
        for taken_over, signal, codes in (
            (True, "SIGTERM", {130, 143}),
            (True, "SIGKILL", {143}),
            (False, "SIGTERM", {143}),
        ):
            run = self.run_of([faults.Fault("SIGTERM", 0.5)])
            run.attempt.is_taken_over = taken_over
            run.attempt.signals = [(signal, 10.0)]
            self.assertEqual(endings.explained_codes(run), codes)

    def test_a_fault_of_an_earlier_attempt_explains_nothing(self):
        run = self.run_of([faults.Fault("SIGTERM", 0.5)])
        run.begin_attempt()
        self.assertEqual(endings.explained_codes(run), set())

    def test_a_stop_needs_a_checkpoint_of_its_step_and_the_command(self):
        stop = faults.Fault("SIGTERM", 0.5)
        said = "continue with: tributary train --resume run1\n"
        stopped = {"status": "interrupted", "steps": 77, "checkpoint_step": 77}
        run = self.finish(self.run_of([stop], said), **stopped)
        self.assertIsNone(promises.broken_at_end(run, 143))
        self.assertEqual(promises.printed_command(run)[1], "--resume")
        run = self.finish(self.run_of([stop]), **stopped)
        self.assertIn("no command", promises.broken_at_end(run, 143))
        stopped["checkpoint_step"] = 40
        run = self.finish(self.run_of([stop], said), **stopped)
        self.assertIn("stopped at 77, checkpoint 40", promises.broken_at_end(run, 143))

    def test_a_lost_worker_that_ends_the_job_is_named(self):
        run = self.finish(self.run_of(), status="failed", message="no idea")
        self.assertIn("no idea", promises.broken_at_end(run, 1))
        message = "worker 1 (host) was lost, last heard at step 4: killed"
        run = self.finish(self.run_of(), status="failed", message=message)
        self.assertIsNone(promises.broken_at_end(run, 1))


class Damage(Case):
    def checkpoint(self, run, name):
        folder = os.path.join(run.attempt.checkpoints(), name)
        os.makedirs(folder)
        for file in (checkpoints.MANIFEST, "shard.ckpt"):
            with open(os.path.join(folder, file), "wb") as out:
                out.write(b"x" * 300)
        return folder

    def test_every_damage_changes_the_file(self):
        for how in faults.DAMAGES:
            folder = self.checkpoint(self.run_of(), "step-1")
            path = checkpoints.damage(folder, how, 0.6)
            with open(path, "rb") as file:
                self.assertNotEqual(file.read(), b"x" * 300, how)

    def test_damage_hits_a_file_or_names_no_checkpoint(self):
        drawn = [f for seed in range(2000) for f in Trial(seed).faults]
        places = {f.which for f in drawn if f.kind.startswith("damage")}
        self.assertIn(0.99, places)
        self.assertLess(max(places), 1)
        gone = faults.Fault("damage", 0.5, how="longer", which=0.5)
        self.assertFalse(causes.damage(self.run_of(), gone, "/nowhere"))
        self.assertIsNone(gone.folder)

    def test_a_refusal_names_the_file_and_the_older_checkpoint(self):
        run = self.run_of()
        older, newest = (self.checkpoint(run, f"step-{i}") for i in (1, 2))
        run.attempt.is_refused_for = os.path.join(newest, "shard.ckpt")
        for said, wanted in (
            ("no", "is damaged, and not named"),
            ("shard.ckpt is damaged", "wanted the name of"),
            (f"shard.ckpt: {self.named(newest)}", "is named, wanted"),
            (f"shard.ckpt: {self.named(older)}", "None"),
        ):
            with open(run.attempt.output, "w", encoding="utf-8") as file:
                file.write(said)
            self.assertIn(wanted, str(promises.broken_at_end(run, 2)))

    def named(self, folder):
        return f"the newest intact checkpoint before it is {folder}: name it"

    def test_a_job_that_goes_back_to_a_damaged_checkpoint_says_why_it_does_not(self):
        damage = faults.Fault("damage alive", 0.5, role="server", index=0)
        damage.folder = "/run/checkpoints/step-2"
        noon = "2026-11-30T12:00:00.000000Z"
        damage.damaged_at = promises.seconds_of(noon) - 1
        said = (
            f"{noon} warning coordinator: "
            f"everybody goes back to step 2, checkpoint {damage.folder}\n"
        )
        run = self.run_of([damage], said)
        self.assertIn("is damaged", promises.broken_in_last(run))
        run = self.run_of([damage], said + "step 2 cannot be read, server 0: x")
        self.assertIsNone(promises.broken_in_last(run))
        damage.damaged_at += 2  # they had gone back to it before
        self.assertIsNone(promises.broken_in_last(self.run_of([damage], said)))


if __name__ == "__main__":
    unittest.main()
