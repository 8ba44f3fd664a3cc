// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/all_reduce_synchronizer.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/sample_weights.h"
#include "common/host/steady_waits.h"
#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"
#include "worker/rank/parallel/exchange_samples.h"

namespace tributary {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);

// Stands in ready_ for the exchange of the samples, before the buckets.
constexpr int kSamples = -1;

}  // namespace

AllReduceSynchronizer::AllReduceSynchronizer(Options options)
    : options_(std::move(options)), held_(!options_.device.ops->is_host()) {
  if (options_.device.model_ops == nullptr) {
    options_.device.model_ops = options_.device.ops;
  }
}

absl::StatusOr<std::unique_ptr<AllReduceSynchronizer>>
AllReduceSynchronizer::Create(Options options) {
  std::unique_ptr<AllReduceSynchronizer> made(
      new AllReduceSynchronizer(std::move(options)));
  Options& o = made->options_;
  if (o.part.planned.empty()) {
    o.part.planned = o.model->parameters();
    o.part.mesh = {.data = o.group->size()};
    o.part.place = {.data = o.group->rank()};
    o.part.place_in_plan.resize(o.part.planned.size());
    std::iota(o.part.place_in_plan.begin(), o.part.place_in_plan.end(), 0);
  }
  TRIBUTARY_RETURN_IF_ERROR(made->PlanBuckets());
  made->checkpoints_ = std::make_unique<AllReduceCheckpoints>(
      o, made->optimizer_.get(), &*made->sums_);
  made->thread_ = std::thread([s = made.get()] { s->Run(); });
  return made;
}

AllReduceSynchronizer::~AllReduceSynchronizer() {
  if (!thread_.joinable()) return;
  bool broken_off = false;
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
    broken_off = left_ > 0 || !status_.ok();
  }
  // Otherwise the thread would wait for other ranks in a step that this rank
  // has given up.
  if (broken_off) options_.group->Abort("the training of this rank ends");
  thread_.join();
}

absl::Status AllReduceSynchronizer::PlanBuckets() {
  const ParameterSpecs& parameters = options_.model->parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    offsets_.push_back(options_.model->gradient(static_cast<int>(p)) -
                       gradients());
  }
  if (!parameters.empty()) {
    num_elements_ = offsets_.back() + parameters.back().size();
  }
  const int size = options_.group->size(), rank = options_.group->rank();
  bucket_of_.resize(parameters.size());
  std::vector<std::vector<GradientRange>> all_ranges(size);
  for (const GradientBucket& bucket :
       MakeBuckets(parameters, offsets_, options_.first_bucket_bytes,
                   options_.bucket_bytes)) {
    Bucket made{.bucket = bucket, .first_range = all_ranges[rank].size()};
    std::vector<int64_t> bounds(size + 1, bucket.end);
    bounds[0] = bucket.begin;  // rank 0 updates the whole bucket
    if (options_.cut()) bounds = CutBucket(bucket, parameters, offsets_, size);
    for (int r = 0; r < size; ++r) {
      const int64_t begin = options_.replicated() ? bucket.begin : bounds[r];
      const int64_t end = options_.replicated() ? bucket.end : bounds[r + 1];
      for (const GradientRange& range :
           RangesWithin(bucket, parameters, offsets_, begin, end)) {
        all_ranges[r].push_back(range);
      }
    }
    for (int64_t bound : bounds) made.bounds.push_back(bound - bucket.begin);
    made.num_ranges = all_ranges[rank].size() - made.first_range;
    for (int p = bucket.first; p <= bucket.last; ++p) {
      bucket_of_[p] = static_cast<int>(buckets_.size());
    }
    TRIBUTARY_ASSIGN_OR_RETURN(made.computed, NewEvent(options_.device));
    buckets_.push_back(std::move(made));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      optimizer_,
      LocalOptimizer::Create({.ops = options_.device.ops,
                              .model = options_.model,
                              .optimizer = options_.update.optimizer,
                              .groups = options_.update.groups,
                              .clip_norm = options_.update.clip_norm,
                              .skip_nonfinite = options_.update.skip_nonfinite,
                              .ranges = all_ranges[rank]}));
  means_.emplace(options_.replaced_mean, options_.group.get(), options_.model);
  two_phase_ = optimizer_->phases().needs_sums();
  sums_.emplace(options_.group.get(), options_.device.ops,
                std::move(all_ranges), options_.replicated(),
                parameters.size());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AllReduceSynchronizer::Start(
    const MakeWeights& initial, const OnProgress& on_progress) {
  const int64_t start = options_.checkpoints.start_step;
  on_progress({.steps = start, .begun = start});
  // Waits until the model's Ops has created the arrays that are filled here.
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.device.model_ops));
  if (options_.checkpoints.restore != nullptr) {
    TRIBUTARY_RETURN_IF_ERROR(checkpoints_->Restore());
    return start;
  }
  if (initial) {
    TRIBUTARY_ASSIGN_OR_RETURN(const Weights made, initial());
    for (size_t p = 0; p < made.size(); ++p) {
      options_.device.ops->CopyIn(options_.model->weight(static_cast<int>(p)),
                                  made[p].data(),
                                  made[p].size() * sizeof(float));
    }
  }
  if (num_elements_ > 0) {
    TRIBUTARY_RETURN_IF_ERROR(
        options_.group->Broadcast(weights(), num_elements_, 0));
  }
  TRIBUTARY_RETURN_IF_ERROR(optimizer_->Reset());
  TRIBUTARY_RETURN_IF_ERROR(
      SynchronizeDevice(*options_.device.ops));  // before the model reads them
  return 0;
}

void AllReduceSynchronizer::BeginStep(int64_t step, uint64_t samples) {
  step_ = step;
  samples_ = samples;
  skipped_ = false;
  // Without samples no gradient is computed. Clears that of an earlier step.
  if (samples == 0 && num_elements_ > 0) {
    options_.device.model_ops->Fill(num_elements_, 0, gradients());
  }
  if (options_.samples) sample_weights_ = SampleWeights(options_.samples(step));
  next_ = 0;
  missing_.clear();
  spans_.clear();
  for (const Bucket& b : buckets_) {
    missing_.push_back(b.bucket.last - b.bucket.first + 1);
  }
  absl::MutexLock lock(&mu_);
  left_ = static_cast<int>(buckets_.size());
  if (!options_.samples) {
    ++left_;
    ready_.push_back(kSamples);
  }
}

void AllReduceSynchronizer::GradientReady(int parameter) {
  const int bucket = bucket_of_[parameter];
  if (--missing_[bucket] > 0) return;
  DeviceEvent* const computed = buckets_[bucket].computed.get();
  if (computed != nullptr) computed->Record(*options_.device.model_ops);
  const absl::Status fault = DeviceFault(*options_.device.model_ops);
  if (!fault.ok()) Cancel(std::string(fault.message()));
  absl::MutexLock lock(&mu_);
  status_.Update(fault);
  for (; next_ < buckets_.size() && missing_[next_] == 0; ++next_) {
    ready_.push_back(static_cast<int>(next_));
  }
}

void AllReduceSynchronizer::Run() {
  const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || (!ready_.empty() && !held_);
  };
  while (true) {
    int bucket = 0;
    bool failed = false;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&wake));
      if (closing_) return;
      bucket = ready_.front();
      ready_.pop_front();
      failed = !status_.ok();
    }
    absl::Status status;
    if (!failed) {
      status = bucket == kSamples ? WeighSamples() : Process(buckets_[bucket]);
    }
    absl::MutexLock lock(&mu_);
    status_.Update(status);
    --left_;
  }
}

absl::Status AllReduceSynchronizer::WeighSamples() {
  const int64_t begin = Clock::Real().NowMicros();
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<uint64_t> samples,
                             ExchangeSamples(*options_.group, *sums_, step_,
                                             samples_, learning_rates_));
  sample_weights_ = SampleWeights(samples);
  AddSpan(/*optimizer=*/false, begin);
  return absl::OkStatus();
}

void AllReduceSynchronizer::AddSpan(bool optimizer, int64_t begin_micros) {
  spans_.push_back({optimizer, begin_micros, Clock::Real().NowMicros()});
}

absl::Status AllReduceSynchronizer::Process(const Bucket& bucket) {
  const int64_t reducing = Clock::Real().NowMicros();
  if (bucket.computed != nullptr) bucket.computed->Await(*options_.device.ops);
  TRIBUTARY_RETURN_IF_ERROR(means_->Compute(
      bucket.bucket.first, bucket.bucket.last, sample_weights_));
  float* const gradient = gradients() + bucket.bucket.begin;
  if (!options_.replicated()) {
    TRIBUTARY_RETURN_IF_ERROR(options_.group->ReduceScatter(
        gradient, bucket.bounds, sample_weights_));
  } else {
    TRIBUTARY_RETURN_IF_ERROR(options_.group->AllReduce(
        gradient, bucket.bucket.end - bucket.bucket.begin, sample_weights_));
  }
  means_->Put();
  AddSpan(/*optimizer=*/false, reducing);
  if (two_phase_) return absl::OkStatus();
  const int64_t updating = Clock::Real().NowMicros();
  const OptimizerSteps prepared =
      optimizer_->Prepare(optimizer_->UpdateAfter(step_), Rates());
  for (size_t r = 0; r < bucket.num_ranges; ++r) {
    const size_t range = bucket.first_range + r;
    TRIBUTARY_ASSIGN_OR_RETURN(const bool finite,
                               optimizer_->UpdateIfFinite(prepared, range));
    if (!finite) return NotFinite(range);
  }
  // Waits for the update: the model's Ops reads the weights and is not ordered
  // with this Ops.
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.device.ops));
  AddSpan(/*optimizer=*/true, updating);
  return GatherWeights(bucket);
}

LearningRates AllReduceSynchronizer::Rates() const {
  return optimizer_->phases().optimizer().RatesAt(
      step_, options_.update.learning_rate(step_));
}

absl::Status AllReduceSynchronizer::NotFinite(size_t range) const {
  const GradientRange& r = optimizer_->ranges()[range];
  return WithCause(
      absl::InvalidArgumentError(absl::StrCat(
          "the gradient of \"", options_.model->parameters()[r.parameter].name,
          "\" in step ", step_ + 1, " is not finite in elements ", r.begin,
          " to ", r.end - 1)),
      v1::CAUSE_DIVERGENCE);
}

absl::Status AllReduceSynchronizer::GatherWeights(const Bucket& bucket) {
  if (options_.replicated()) return absl::OkStatus();
  const int64_t gathering = Clock::Real().NowMicros();
  TRIBUTARY_RETURN_IF_ERROR(options_.group->AllGather(
      weights() + bucket.bucket.begin, bucket.bounds));
  // Without this wait the model could read weights that are still on their way
  // from host memory.
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.device.ops));
  AddSpan(/*optimizer=*/false, gathering);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AllReduceSynchronizer::FinishStep() {
  TRIBUTARY_RETURN_IF_ERROR(WaitForBuckets());
  if (two_phase_) TRIBUTARY_RETURN_IF_ERROR(ApplyWithSums());
  const int64_t steps = step_ + 1, every = options_.checkpoints.every_steps;
  if (every > 0 && steps % every == 0) {
    TRIBUTARY_RETURN_IF_ERROR(Checkpoint(steps, /*best=*/false));
  }
  return steps;
}

absl::Status AllReduceSynchronizer::End(int64_t step) {
  const auto& at_end = options_.checkpoints.at_end;
  return at_end && at_end(step) ? Checkpoint(step, /*best=*/false)
                                : absl::OkStatus();
}

absl::Status AllReduceSynchronizer::Checkpoint(int64_t steps, bool best) {
  return checkpoints_->Write(steps, num_elements_, best);
}

absl::Status AllReduceSynchronizer::WaitForBuckets() {
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return left_ == 0 || !status_.ok();
  };
  {
    absl::MutexLock lock(&mu_);
    held_ = false;
  }
  bool told = false;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (AwaitFor(&mu_, absl::Condition(&done), kLook)) break;
    }
    const int rank = options_.group->waiting_for();
    if (!options_.on_waiting || rank < 0) continue;
    options_.on_waiting(WaitForRanks(
        absl::StrCat("the gradients of rank ", rank, " in step ", step_ + 1),
        {static_cast<uint32_t>(rank)}, step_ + 1));
    told = true;
  }
  if (told) options_.on_waiting({});
  absl::MutexLock lock(&mu_);
  return status_;
}

absl::StatusOr<std::vector<double>> AllReduceSynchronizer::TotalSums(
    const std::vector<double>& own) {
  if (options_.part.group == nullptr) return own;
  Communicator& group = *options_.part.group;
  const size_t n = options_.part.planned.size();
  std::vector<double> values(n * group.size());
  std::vector<int64_t> bounds;
  for (int r = 0; r <= group.size(); ++r) {
    bounds.push_back(2 * static_cast<int64_t>(n) * r);
  }
  for (size_t p = 0; p < own.size(); ++p) {
    if (!options_.part.Writes(static_cast<int>(p))) continue;  // counted once
    values[n * group.rank() + options_.part.place_in_plan[p]] = own[p];
  }
  TRIBUTARY_RETURN_IF_ERROR(
      group.AllGather(reinterpret_cast<float*>(values.data()), bounds));
  std::vector<double> sums(n);
  for (size_t i = 0; i < values.size(); ++i) sums[i % n] += values[i];
  return sums;
}

absl::Status AllReduceSynchronizer::ApplyWithSums() {
  const int64_t updating = Clock::Real().NowMicros();
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> gradient_squares,
                             optimizer_->GradientSquares());
  TRIBUTARY_ASSIGN_OR_RETURN(auto own,
                             sums_->PerParameter(gradient_squares, 1));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> squares,
                             TotalSums(own[0]));
  const UpdatePhases& phases = optimizer_->phases();
  if (const int p = UpdatePhases::FirstNonFinite(squares); p >= 0) {
    skipped_ = phases.skips_nonfinite();
    const std::string& name = options_.part.planned[p].name;
    if (skipped_) return optimizer_->Skip(step_ + 1, name);
    return WithCause(absl::InvalidArgumentError(
                         absl::StrCat("the gradient of \"", name, "\" in step ",
                                      step_ + 1, " is not finite")),
                     v1::CAUSE_DIVERGENCE);
  }
  const LearningRates rates = Rates();
  const double scale = phases.Scale(options_.part.planned, squares);
  const int64_t update = optimizer_->UpdateAfter(step_);
  const OptimizerSteps prepared = optimizer_->Prepare(update, rates, scale);
  if (phases.needs_factors()) {
    TRIBUTARY_ASSIGN_OR_RETURN(std::vector<double> sums,
                               optimizer_->FactorSums(scale, own[0]));
    TRIBUTARY_ASSIGN_OR_RETURN(
        const auto totals,
        sums_->FactorTotals(phases.optimizer().of_group(0),
                            options_.model->parameters(), std::move(sums)));
    optimizer_->UpdateFactors(prepared, totals);
  }
  if (phases.makes_directions()) {
    TRIBUTARY_ASSIGN_OR_RETURN(std::vector<double> directions,
                               optimizer_->Directions(prepared));
    TRIBUTARY_ASSIGN_OR_RETURN(auto pairs,
                               sums_->PerParameter(std::move(directions), 2));
    optimizer_->ApplyDirections(phases.Moves(
        options_.model->parameters(), update, rates, pairs[0], pairs[1]));
  } else {
    optimizer_->UpdateAll(prepared);
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.device.ops));
  AddSpan(/*optimizer=*/true, updating);
  for (const Bucket& bucket : buckets_) {
    TRIBUTARY_RETURN_IF_ERROR(GatherWeights(bucket));
  }
  return absl::OkStatus();
}

}  // namespace tributary
