// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_status.h"

#include <algorithm>

#include "common/base/limits.h"
#include "common/job/job_options.h"

namespace tributary {
namespace {

// The status of a place: its holder, the holder's last heartbeat and its step.
// A place that no process has held yet has only role and index. `finished`: the
// steps that all workers have finished. A wait in one of these steps is over
// and is left out. The ranks waited for are kept, because samples of them show
// which rank is late most often.
v1::MemberStatus MemberStatusOf(const Place& place, int64_t step,
                                int64_t finished, int64_t now_micros) {
  v1::MemberStatus status;
  status.set_role(place.role);
  status.set_index(place.index);
  status.set_alive(place.alive);
  if (place.incarnation == 0) return status;
  status.set_host(place.holder.host());
  status.set_pid(place.holder.pid());
  status.set_address(place.holder.address());
  status.set_step(step);
  status.set_seconds_since_heartbeat(
      static_cast<double>(now_micros - place.last_heartbeat_micros) / 1e6);
  *status.mutable_wait() = place.figures.wait;
  const int64_t wait_step = place.figures.wait.step();
  const bool over = wait_step > 0 && wait_step <= finished;
  if (over && place.role == v1::ROLE_SERVER)
    status.mutable_wait()->clear_text();
  status.set_device(place.figures.device);
  status.set_peak_memory_bytes(place.figures.peak_memory_bytes);
  status.set_bytes_sent(place.figures.bytes_sent);
  status.set_bytes_received(place.figures.bytes_received);
  status.set_optimizer_seconds(place.figures.optimizer_seconds);
  status.set_finished(place.finished);
  status.set_holders(place.holders);
  status.set_losses(place.losses);
  status.set_metrics_address(place.holder.metrics_address());
  return status;
}

}  // namespace

const char* PhaseWord(v1::JobPhase phase) {
  switch (phase) {
    case v1::JOB_PHASE_WAITING:
      return "waiting";
    case v1::JOB_PHASE_RUNNING:
      return "running";
    case v1::JOB_PHASE_STOPPING:
      return "stopping";
    case v1::JOB_PHASE_DONE:
      return "done";
    case v1::JOB_PHASE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

int64_t StepsDone(const JobState& state, const WorkerReports& reports,
                  const JobCheckpoints& checkpoints) {
  const Progress& progress = reports.progress();
  const int64_t done =
      std::max({progress.merged_step(), checkpoints.ledger().newest_step(),
                state.plans().restore_step()});
  return state.life().phase() == v1::JOB_PHASE_FAILED
             ? std::max(done, progress.furthest_step())
             : done;
}

v1::JobStatusResponse JobStatusOf(const JobState& state,
                                  const WorkerReports& reports,
                                  const JobCheckpoints& checkpoints,
                                  int64_t now_micros) {
  const Progress& progress = reports.progress();
  const CheckpointLedger& ledger = checkpoints.ledger();
  v1::JobStatusResponse status;
  status.set_job_id(state.options().job_id);
  status.set_name(state.options().job.name());
  status.set_step(StepsDone(state, reports, checkpoints));
  status.set_total_steps(KnownSteps(state.plans().total_steps()));
  // A program that has not declared its epochs calls each step one.
  if (const DataCourse& course = state.plans().course();
      !course.empty() &&
      (!state.options().job.has_program() || course.steps_per_epoch() > 1)) {
    const DataPosition at = course.After(status.step());
    status.set_epoch(static_cast<double>(at.epoch) +
                     static_cast<double>(at.row) /
                         static_cast<double>(course.last().rows));
  }
  if (progress.latest().loss) status.set_loss(*progress.latest().loss);
  status.set_samples_per_second(progress.latest().samples_per_second);
  status.set_learning_rate(progress.latest().learning_rate);
  status.set_samples(progress.total_samples());
  if (state.plan() != nullptr && !state.life().over()) {
    status.set_step_wait_seconds(
        static_cast<double>(now_micros - reports.progress_micros()) / 1e6);
  }
  const bool validates = state.options().job.data().has_validation();
  const Evaluations& tests =
      validates ? reports.tests() : reports.evaluations();
  for (const auto& [name, value] : tests.shown().metrics) {
    (*status.mutable_test())[name] = value;
  }
  if (validates) {
    for (const auto& [name, value] : reports.evaluations().shown().metrics) {
      (*status.mutable_validation())[name] = value;
    }
  }
  status.set_strategy(StrategyOf(state.options().job).name());
  status.set_checkpoint_step(
      std::max(ledger.newest_step(), state.plans().restore_step()));
  status.set_checkpoint_every_steps(
      state.options().job.checkpoint().every_steps());
  if (state.plan() != nullptr) {
    const int64_t since =
        std::max(ledger.newest_micros(), reports.begin_micros());
    status.set_seconds_since_checkpoint(
        1e-6 * static_cast<double>(now_micros - since));
  }
  status.set_checkpoint_failures(ledger.failures());
  status.set_checkpoint_error(ledger.error());
  status.set_checkpoint_cause(ledger.cause());
  status.set_checkpoint_pause_seconds(ledger.pause_seconds());
  status.set_checkpoint_write_seconds(ledger.write_seconds());
  status.set_rollbacks(state.plans().rollbacks());
  status.set_workers_lost(state.losses().workers_lost());
  status.set_servers_lost(state.losses().servers_lost());
  for (const Place& place : state.membership().places()) {
    v1::MemberStatus& member = *status.add_members();
    member = MemberStatusOf(place, reports.LastStepOf(place), status.step(),
                            now_micros);
    if (place.role != v1::ROLE_WORKER) continue;
    const v1::StepReport& last = progress.last_report(place.index);
    if (last.step() > 0) *member.mutable_last_step() = last;
  }
  return status;
}

JobTotals JobTotalsOf(const JobState& state, const WorkerReports& reports,
                      const JobCheckpoints& checkpoints,
                      const EvaluationDecisions& decisions) {
  const Progress& progress = reports.progress();
  JobTotals totals;
  totals.steps = StepsDone(state, reports, checkpoints);
  totals.epochs = progress.latest().epoch;
  // If no step was done after the checkpoint, the course tells the epoch.
  if (const DataCourse& course = state.plans().course();
      totals.epochs == 0 && totals.steps > 0 && !course.empty()) {
    totals.epochs = course.EpochOf(totals.steps);
  }
  totals.samples = progress.total_samples();
  totals.skipped_steps = progress.skipped_steps().count();
  totals.training_seconds = progress.training_seconds();
  if (progress.latest().epoch > 0) totals.final_loss = progress.latest().loss;
  totals.start_step = state.options().start.step;
  totals.checkpoint_step = checkpoints.ledger().newest_step();
  if (state.plans().restore_step() > totals.start_step) {
    totals.checkpoint_step = state.plans().restore_step();
  }
  totals.stopped_early = state.steps().stop().stopped_early();
  if (decisions.decides()) {
    const BestEvaluation& best = decisions.best();
    totals.best = {best.metric(), best.step().value_or(0), best.value()};
  }
  totals.rollbacks = state.plans().rollbacks();
  totals.workers_lost = state.losses().workers_lost();
  totals.servers_lost = state.losses().servers_lost();
  totals.stopped = state.steps().stop().by_person() &&
                   totals.steps < state.plans().total_steps();
  totals.stopped_unbegun =
      state.steps().stop().by_person() && state.plan() == nullptr;
  totals.refused = state.life().refused();
  for (const Place& worker : state.membership().workers()) {
    totals.bytes_sent += worker.figures.bytes_sent;
    totals.bytes_received += worker.figures.bytes_received;
  }
  return totals;
}

}  // namespace tributary
