#include "worker/trainer/trainer.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/model/evaluator.h"

namespace tributary {
namespace {

constexpr absl::Duration kDataTimeout = absl::Seconds(60);

// The micro-batches of a step in which this rank has samples: first and last.
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

}  // namespace

double Trainer::Seconds() const {
  return static_cast<double>(options_.clock->NowMicros()) * 1e-6;
}

absl::Status Trainer::Run(int64_t start_step) {
  const v1::ShuffleSpec& shuffle = options_.job->data().shuffle();
  ShardedSampler::Options sampling{.cut = options_.cut, .rank = options_.rank};
  if (!shuffle.none()) sampling.shuffle_seed = shuffle.seed();
  TRIBUTARY_ASSIGN_OR_RETURN(ShardedSampler sampler,
                             ShardedSampler::Create(sampling));
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<BatchLoader> loader,
      BatchLoader::Start(
          {.gather = [this](absl::Span<const int64_t> rows,
                            Batch* out) { options_.train->Gather(rows, out); },
           .sampler = std::move(sampler),
           .plan = options_.plan,
           .first_step = std::min(start_step, options_.plan.total_steps())}));

  const int64_t epoch = options_.plan.steps_per_epoch();
  int64_t evaluated = -1;
  int64_t step = start_step;
  if (step > 0 && step % epoch == 0) {
    TRIBUTARY_RETURN_IF_ERROR(Evaluate(step));
    evaluated = step;
  }
  while (step < options_.plan.total_steps()) {
    const absl::Status may_begin = options_.begin_step(step + 1);
    if (absl::IsCancelled(may_begin)) break;
    TRIBUTARY_RETURN_IF_ERROR(may_begin);
    const int64_t before = step;
    TRIBUTARY_ASSIGN_OR_RETURN(step, Step(step, *loader));
    for (int64_t end = (before / epoch + 1) * epoch; end <= step;
         end += epoch) {
      TRIBUTARY_RETURN_IF_ERROR(Evaluate(end));
      evaluated = end;
    }
  }
  return evaluated == step ? absl::OkStatus() : Evaluate(step);
}

absl::StatusOr<const Batch*> Trainer::NextBatch(int64_t step,
                                                BatchLoader& loader) {
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const Batch* batch,
                               loader.Next(absl::Now() + kDataTimeout));
    if (batch->step >= step) return batch;  // else of a step that was skipped
  }
}

absl::StatusOr<int64_t> Trainer::Step(int64_t step, BatchLoader& loader) {
  const StepRange range = options_.plan.At(step);
  const int64_t samples = options_.plan.RankSamples(step, options_.rank);
  v1::StepReport report;
  const double begin = Seconds();
  double data_seconds = 0, loss_sum = 0, push_seconds = 0;

  At(step, TrainPoint::kBeforeCompute);
  if (options_.slow_down > 1) {
    absl::SleepFor(
        absl::Seconds((options_.slow_down - 1) * last_compute_seconds_));
  }
  const double computing = Seconds();
  options_.synchronizer->BeginStep(step, samples);
  for (int64_t m = 0; m < range.batches; ++m) {
    const double before = Seconds();
    TRIBUTARY_ASSIGN_OR_RETURN(const Batch* batch, NextBatch(step, loader));
    data_seconds += Seconds() - before;
    if (batch->rows == 0) continue;
    TRIBUTARY_RETURN_IF_ERROR(
        Compute(*batch, range, step, samples, &loss_sum, &push_seconds));
  }
  if (samples == 0) {  // nothing to add, but the weights move
    for (size_t p = 0; p < options_.model->parameters().size(); ++p) {
      options_.synchronizer->GradientReady(static_cast<int>(p));
    }
  }
  const double computed = Seconds();
  last_compute_seconds_ = computed - computing - data_seconds;
  At(step, TrainPoint::kPushed);
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                             options_.synchronizer->FinishStep());
  At(step, TrainPoint::kAnswered);
  const double end = Seconds();

  report.set_epoch(range.epoch + 1);
  report.set_loss_sum(loss_sum);
  report.set_samples(samples);
  report.set_learning_rate(options_.schedule.At(step));
  report.set_step_seconds(end - begin);
  report.set_data_seconds(data_seconds);
  report.set_compute_seconds(computed - begin - data_seconds - push_seconds);
  report.set_push_seconds(push_seconds);
  report.set_wait_seconds(end - computed);
  Report(step, finished, std::move(report), loader.num_waiting());
  return finished;
}

// A step whose gradient came too late, and those that the worker skips after
// it, are reported without samples.
void Trainer::Report(int64_t step, int64_t finished, v1::StepReport report,
                     int64_t prefetched) {
  const bool dropped = finished > step + 1;
  if (dropped) {
    report.set_samples(0);
    report.set_loss_sum(0);
  }
  report.set_step(step + 1);
  options_.report_step(report, prefetched);
  for (int64_t skipped = step + 1; skipped < finished; ++skipped) {
    v1::StepReport empty;
    empty.set_step(skipped + 1);
    empty.set_epoch(options_.plan.At(skipped).epoch + 1);
    empty.set_learning_rate(options_.schedule.At(skipped));
    options_.report_step(empty, prefetched);
  }
}

absl::Status Trainer::Compute(const Batch& batch, const StepRange& range,
                              int64_t step, int64_t rank_samples,
                              double* loss_sum, double* push_seconds) {
  const Nonempty nonempty = FindNonempty(options_.cut, range, options_.rank);
  const float* logits =
      options_.model->Forward(batch.features.data(), batch.rows,
                              {.training = true,
                               .step = step,
                               .first_row = batch.first_row,
                               .row_stride = batch.row_stride});
  const LossTargets targets{
      .labels = batch.labels.empty() ? nullptr : batch.labels.data(),
      .values = batch.targets.empty() ? nullptr : batch.targets.data()};
  TRIBUTARY_ASSIGN_OR_RETURN(
      const float* d_logits,
      options_.loss->Differentiate(logits, targets, batch.rows,
                                   1.0 / static_cast<double>(rank_samples)));
  std::function<void(int)> gradient_ready;
  if (batch.micro_batch == nonempty.last) {
    gradient_ready = [&, ready = size_t{0}](int parameter) mutable {
      const double before = Seconds();
      options_.synchronizer->GradientReady(parameter);
      if (++ready == (options_.model->parameters().size() + 1) / 2) {
        At(step, TrainPoint::kMidPush);
      }
      *push_seconds += Seconds() - before;
    };
  }
  options_.model->Backward(d_logits, batch.micro_batch > nonempty.first,
                           gradient_ready);
  TRIBUTARY_ASSIGN_OR_RETURN(const double sum, options_.loss->Sum());
  *loss_sum += sum;
  return absl::OkStatus();
}

absl::Status Trainer::Evaluate(int64_t step) {
  if (!options_.test) return absl::OkStatus();
  Batch batch;
  std::vector<int64_t> rows;
  int64_t next = options_.rank;  // this rank takes every W-th row
  const auto next_batch = [&]() -> absl::StatusOr<EvaluationBatch> {
    rows.clear();
    for (; next < options_.test->rows() &&
           static_cast<int64_t>(rows.size()) < options_.model->max_rows();
         next += options_.num_workers) {
      rows.push_back(next);
    }
    if (rows.empty()) return EvaluationBatch();
    options_.test->Gather(rows, &batch);
    return EvaluationBatch{
        .features = batch.features.data(),
        .targets = {batch.labels.empty() ? nullptr : batch.labels.data(),
                    batch.targets.empty() ? nullptr : batch.targets.data()},
        .rows = batch.rows};
  };
  TRIBUTARY_ASSIGN_OR_RETURN(
      const v1::EvaluationPart part,
      EvaluateModel(options_.ops, options_.model, options_.loss,
                    options_.job->training().loss(), next_batch));
  const int64_t epoch = step == 0 ? 0 : options_.plan.At(step - 1).epoch + 1;
  return options_.report_evaluation(step, epoch, part);
}

}  // namespace tributary
