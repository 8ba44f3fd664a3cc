// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/trainer.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/evaluation_steps.h"
#include "common/base/failpoint.h"
#include "common/status/status_macros.h"
#include "worker/train/data/batches/training_batches.h"
#include "worker/train/model/evaluator.h"

namespace tributary {
namespace {

constexpr absl::Duration kDataTimeout = absl::Seconds(60);

// The first and last micro-batch of a step in which this rank has samples.
struct Nonempty {
  int64_t first = -1;
  int64_t last = -1;
};
Nonempty FindNonempty(const BatchCut& cut, const StepRange& range, int rank) {
  Nonempty found;
  for (int64_t m = 0; m < range.batches; ++m) {
    if (cut.RankRows(range.first_batch + m, rank) == 0) continue;
    if (found.first < 0) found.first = m;
    found.last = m;
  }
  return found;
}

v1::StepActivity ActivityOf(PipelineEvent::Kind kind) {
  switch (kind) {
    case PipelineEvent::Kind::kForward:
      return v1::STEP_ACTIVITY_FORWARD;
    case PipelineEvent::Kind::kBackward:
      return v1::STEP_ACTIVITY_BACKWARD;
    case PipelineEvent::Kind::kShare:
      return v1::STEP_ACTIVITY_EXCHANGE;
    case PipelineEvent::Kind::kWait:
      break;
  }
  return v1::STEP_ACTIVITY_IDLE;
}

}  // namespace

absl::Status Trainer::Run(int64_t start_step) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      BatchSource batches,
      TrainingBatches(*options_.data->train, options_.spec->data(),
                      options_.plan.cut(), rank()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<BatchLoader> loader,
      BatchLoader::Start(
          {.fill = std::move(batches),
           .rank = rank(),
           .plan = options_.plan,
           .first_step = std::min(start_step, options_.plan.total_steps())}));

  const EvaluationSteps due{.course = options_.plan.course(),
                            .every = options_.spec->evaluation().every_steps()};
  end_ = options_.plan.total_steps();
  int64_t step = start_step;
  if (due.Includes(step)) TRIBUTARY_RETURN_IF_ERROR(EvaluateAndDecide(step));
  while (step < end_) {
    const absl::Status may_begin = options_.job->BeginStep(step + 1);
    if (absl::IsCancelled(may_begin)) break;
    TRIBUTARY_RETURN_IF_ERROR(may_begin);
    const int64_t before = step;
    TRIBUTARY_ASSIGN_OR_RETURN(step, Step(step, *loader));
    for (int64_t at = due.After(before); at <= step; at = due.After(at)) {
      TRIBUTARY_RETURN_IF_ERROR(EvaluateAndDecide(at));
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(options_.synchronizer->End(step));
  return EvaluateAtEnd(step);
}

absl::Status Trainer::EvaluateAtEnd(int64_t step) {
  if (evaluated_ != step) TRIBUTARY_RETURN_IF_ERROR(Evaluate(step));
  const TrainTest& data = *options_.data;
  if (data.validation == nullptr || data.test == nullptr) {
    return absl::OkStatus();
  }
  return EvaluateOn(*data.test, step, ResultSender::Set::kTest);
}

absl::Status Trainer::EvaluateAndDecide(int64_t step) {
  TRIBUTARY_RETURN_IF_ERROR(Evaluate(step));
  const v1::EvaluationSpec& wanted = options_.spec->evaluation();
  if (!wanted.keep_best() && wanted.stop_after() == 0) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::AwaitEvaluationResponse decided,
                             options_.job->AwaitEvaluation(step));
  if (decided.has_stop_step()) end_ = std::min(end_, decided.stop_step());
  return decided.checkpoint()
             ? options_.synchronizer->Checkpoint(step, /*best=*/true)
             : absl::OkStatus();
}

absl::StatusOr<const Batch*> Trainer::NextBatch(int64_t step,
                                                BatchLoader& loader) {
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const Batch* batch, loader.Next(kDataTimeout));
    if (batch->step >= step) return batch;  // older: of a skipped step
  }
}

absl::StatusOr<int64_t> Trainer::Step(int64_t step, BatchLoader& loader) {
  const StepRange range = options_.plan.At(step);
  const int64_t samples = options_.plan.RankSamples(step, rank());
  StepTimes times(options_.clock);
  double loss_sum = 0;

  TRIBUTARY_FAILPOINT("worker-before-compute");
  if (options_.slow_down > 1) {
    absl::SleepFor(
        absl::Seconds((options_.slow_down - 1) * last_compute_seconds_));
  }
  const int64_t computing = times.Now();
  const GradientSynchronizer::Traffic before = options_.job->traffic();
  if (replica_.tensor_group() != nullptr) {  // drops those of an evaluation
    replica_.tensor_group()->TakeExchanges();
  }
  options_.synchronizer->BeginStep(step, samples);
  for (int64_t m = 0; m < range.batches; ++m) {
    const int64_t asking = times.Now();
    TRIBUTARY_ASSIGN_OR_RETURN(const Batch* batch, NextBatch(step, loader));
    times.Add(v1::STEP_ACTIVITY_DATA, asking);
    if (batch->rows == 0) continue;
    TRIBUTARY_RETURN_IF_ERROR(
        Compute(*batch, range, step, samples, &loss_sum, &times));
  }
  if (samples == 0) {  // no samples, but the weights change
    // In backward order, as the ranks with samples.
    for (size_t p = replica_.model()->parameters().size(); p-- > 0;) {
      options_.synchronizer->GradientReady(static_cast<int>(p));
    }
  }
  const int64_t computed = times.Now();
  last_compute_seconds_ = 1e-6 * static_cast<double>(computed - computing) -
                          times.Seconds(v1::STEP_ACTIVITY_DATA);
  TRIBUTARY_FAILPOINT_AFTER("worker-pushed",
                            (void)options_.synchronizer->WaitUntilPushed());
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                             options_.synchronizer->FinishStep());
  TRIBUTARY_FAILPOINT("worker-answered");
  times.Add(v1::STEP_ACTIVITY_WAIT, computed);

  const GradientSynchronizer::Traffic after = options_.job->traffic();
  v1::StepReport report;
  report.set_step(step + 1);
  report.set_epoch(range.epoch + 1);
  if (replica_.reports()) {
    report.set_loss_sum(loss_sum);
    report.set_samples(samples);
  }
  report.set_learning_rate(options_.schedule.At(step));
  report.set_skipped(options_.synchronizer->skipped());
  report.set_bytes_sent(after.bytes_sent - before.bytes_sent);
  report.set_bytes_received(after.bytes_received - before.bytes_received);
  if (replica_.tensor_group() != nullptr) {
    times.TakeOut(replica_.tensor_group()->TakeExchanges());
  }
  const std::vector<GradientSynchronizer::Span> beside =
      options_.synchronizer->spans();
  times.Fill(beside, &report);
  if (options_.trace != nullptr && options_.trace->Covers(step)) {
    times.Record(step, beside, options_.trace);
  }
  Report(step, finished, std::move(report), loader.num_waiting());
  return finished;
}

// A step whose gradient came too late is reported without samples, and so are
// the steps that the worker then skips.
void Trainer::Report(int64_t step, int64_t finished, v1::StepReport report,
                     int64_t prefetched) {
  const bool dropped = finished > step + 1;
  if (dropped) {
    report.set_samples(0);
    report.set_loss_sum(0);
  }
  options_.job->ReportStep(report, prefetched);
  for (int64_t skipped = step + 1; skipped < finished; ++skipped) {
    v1::StepReport empty;
    empty.set_step(skipped + 1);
    empty.set_epoch(options_.plan.At(skipped).epoch + 1);
    empty.set_learning_rate(options_.schedule.At(skipped));
    options_.job->ReportStep(empty, prefetched);
  }
}

absl::Status Trainer::Compute(const Batch& batch, const StepRange& range,
                              int64_t step, int64_t rank_samples,
                              double* loss_sum, StepTimes* times) {
  const int64_t forward = times->Now();
  const Nonempty nonempty = FindNonempty(options_.plan.cut(), range, rank());
  std::function<void(int)> gradient_ready;
  if (batch.micro_batch == nonempty.last) {
    gradient_ready = [&, ready = size_t{0}](int parameter) mutable {
      const int64_t before = times->Now();
      if (ready == 0) TRIBUTARY_FAILPOINT("worker-computed");
      options_.synchronizer->GradientReady(parameter);
      if (++ready == (replica_.model()->parameters().size() + 1) / 2) {
        TRIBUTARY_FAILPOINT("worker-mid-push");
      }
      times->AddPush(before);
    };
  }
  const double scale = 1.0 / static_cast<double>(rank_samples);
  const bool accumulate = batch.micro_batch > nonempty.first;
  if (replica_.stage() != nullptr) {
    const std::vector<MicroBatch> micro_batches = CutBatch(
        batch, options_.spec->strategy().pipeline_parallel().micro_batches(),
        rank_samples);
    TRIBUTARY_ASSIGN_OR_RETURN(
        const double sum,
        replica_.stage()->Run({.micro_batches = micro_batches,
                               .scale = scale,
                               .accumulate = accumulate,
                               .gradient_ready = gradient_ready}));
    *loss_sum += sum;
    for (const PipelineEvent& event : replica_.stage()->timeline()) {
      times->Add(ActivityOf(event.kind), event.begin_micros, event.end_micros);
    }
    return replica_.model()->status();
  }
  const float* logits = replica_.model()->Forward(
      batch.features.data(), batch.rows,
      {.training = true,
       .step = step,
       .first_row = batch.first_row,
       .row_stride = batch.row_stride,
       .step_share = static_cast<double>(batch.rows) * scale});
  const LossTargets targets{
      .labels = batch.labels.empty() ? nullptr : batch.labels.data(),
      .values = batch.targets.empty() ? nullptr : batch.targets.data()};
  TRIBUTARY_ASSIGN_OR_RETURN(
      const float* d_logits,
      replica_.loss()->Differentiate(logits, targets, batch.rows, scale));
  times->Add(v1::STEP_ACTIVITY_FORWARD, forward);
  const int64_t backward = times->Now();
  replica_.model()->Backward(d_logits, accumulate, gradient_ready);
  TRIBUTARY_RETURN_IF_ERROR(replica_.model()->status());
  TRIBUTARY_ASSIGN_OR_RETURN(const double sum, replica_.loss()->Sum());
  *loss_sum += sum;
  times->Add(v1::STEP_ACTIVITY_BACKWARD, backward);
  return absl::OkStatus();
}

absl::Status Trainer::Evaluate(int64_t step) {
  const Dataset* data = options_.data->evaluated();
  if (data == nullptr) return absl::OkStatus();
  evaluated_ = step;
  TRIBUTARY_RETURN_IF_ERROR(options_.synchronizer->ShowNewest());
  TRIBUTARY_RETURN_IF_ERROR(
      EvaluateOn(*data, step, ResultSender::Set::kEvaluated));
  return options_.synchronizer->HideNewest();
}

absl::Status Trainer::EvaluateOn(const Dataset& data, int64_t step,
                                 ResultSender::Set set) {
  Batch batch;
  std::vector<int64_t> rows;
  int64_t next = rank();  // takes every W-th row
  const auto next_batch = [&]() -> absl::StatusOr<EvaluationBatch> {
    rows.clear();
    for (; next < data.rows() &&
           static_cast<int64_t>(rows.size()) < replica_.model()->max_rows();
         next += replica_.mesh().data) {
      rows.push_back(next);
    }
    if (rows.empty()) return EvaluationBatch();
    TRIBUTARY_RETURN_IF_ERROR(data.Fetch(rows, &batch));
    return EvaluationBatch{
        .features = batch.features.data(),
        .targets = {batch.labels.empty() ? nullptr : batch.labels.data(),
                    batch.targets.empty() ? nullptr : batch.targets.data()},
        .rows = batch.rows};
  };
  const v1::LossSpec& loss = options_.spec->training().loss();
  TRIBUTARY_ASSIGN_OR_RETURN(
      v1::EvaluationPart part,
      replica_.stage() != nullptr
          ? replica_.stage()->Evaluate(loss, next_batch)
          : EvaluateModel(options_.ops, replica_.model(), replica_.loss(), loss,
                          next_batch));
  if (!replica_.reports()) part.Clear();
  return options_.job->ReportEvaluation(
      step, options_.plan.course().EpochOf(step), part, set);
}

}  // namespace tributary
