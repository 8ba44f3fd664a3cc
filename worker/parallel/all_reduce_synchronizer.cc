#include "worker/parallel/all_reduce_synchronizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/partition_plan.h"
#include "common/sample_weights.h"
#include "common/status_macros.h"
#include "common/wire/crc32c.h"

namespace tributary {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);

int64_t NumGrains(int64_t elements) {
  return (elements + kGrainElements - 1) / kGrainElements;
}

}  // namespace

AllReduceSynchronizer::AllReduceSynchronizer(Options options)
    : options_(std::move(options)) {
  TRIBUTARY_CHECK(options_.ops->is_host());
}

absl::StatusOr<std::unique_ptr<AllReduceSynchronizer>>
AllReduceSynchronizer::Create(Options options) {
  std::unique_ptr<AllReduceSynchronizer> made(
      new AllReduceSynchronizer(std::move(options)));
  Options& o = made->options_;
  if (o.planned.empty()) {
    o.planned = o.model->parameters();
    o.mesh = {.data = o.group->size()};
    o.place = {.data = o.group->rank()};
    o.place_in_plan.resize(o.planned.size());
    std::iota(o.place_in_plan.begin(), o.place_in_plan.end(), 0);
  }
  TRIBUTARY_RETURN_IF_ERROR(made->PlanBuckets());
  made->StartCheckpointer();
  made->thread_ = std::thread([s = made.get()] { s->Run(); });
  return made;
}

AllReduceSynchronizer::~AllReduceSynchronizer() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  // A bucket under way, of a step that is given up, would wait for others.
  options_.group->Abort("the training of this rank ends");
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
  all_ranges_.resize(size);
  for (const GradientBucket& bucket :
       MakeBuckets(parameters, offsets_, options_.first_bucket_bytes,
                   options_.bucket_bytes)) {
    Bucket made{.bucket = bucket, .first_range = all_ranges_[rank].size()};
    std::vector<int64_t> bounds(size + 1, bucket.end);
    bounds[0] = bucket.begin;  // all of it rank 0's
    if (cut()) bounds = CutBucket(bucket, parameters, offsets_, size);
    for (int r = 0; r < size; ++r) {
      const int64_t begin = replicated() ? bucket.begin : bounds[r];
      const int64_t end = replicated() ? bucket.end : bounds[r + 1];
      for (const GradientRange& range :
           RangesWithin(bucket, parameters, offsets_, begin, end)) {
        all_ranges_[r].push_back(range);
      }
    }
    for (int64_t bound : bounds) made.bounds.push_back(bound - bucket.begin);
    made.num_ranges = all_ranges_[rank].size() - made.first_range;
    for (int p = bucket.first; p <= bucket.last; ++p) {
      bucket_of_[p] = static_cast<int>(buckets_.size());
    }
    buckets_.push_back(std::move(made));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      optimizer_,
      LocalOptimizer::Create({.ops = options_.ops,
                              .model = options_.model,
                              .optimizer = options_.optimizer,
                              .clip_norm = options_.clip_norm,
                              .learning_rate = options_.learning_rate,
                              .ranges = all_ranges_[rank]}));
  two_phase_ = optimizer_->needs_sums() || options_.skip_nonfinite;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AllReduceSynchronizer::Start(
    const MakeWeights& initial, const OnPosition& on_position) {
  on_position({options_.start_step, options_.start_step});
  if (options_.restore != nullptr) {
    TRIBUTARY_RETURN_IF_ERROR(Restore());
    return options_.start_step;
  }
  if (initial) {
    TRIBUTARY_ASSIGN_OR_RETURN(const Weights made, initial());
    for (size_t p = 0; p < made.size(); ++p) {
      options_.ops->CopyIn(options_.model->weight(static_cast<int>(p)),
                           made[p].data(), made[p].size() * sizeof(float));
    }
  }
  if (num_elements_ > 0) {
    TRIBUTARY_RETURN_IF_ERROR(
        options_.group->Broadcast(weights(), num_elements_, 0));
  }
  TRIBUTARY_RETURN_IF_ERROR(optimizer_->Reset());
  return 0;
}

absl::Status AllReduceSynchronizer::Restore() {
  const ParameterSpecs& parameters = options_.model->parameters();
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<PlannedCheckpoint> checkpoint,
      PlannedCheckpoint::Create(options_.restore, options_.planned,
                                optimizer_->state_names()));
  for (size_t p = 0; p < parameters.size(); ++p) {
    const int parameter = static_cast<int>(p);
    std::vector<float> host(parameters[p].size());
    TRIBUTARY_RETURN_IF_ERROR(checkpoint->ReadRange(
        0, options_.place_in_plan[p], 0, absl::MakeSpan(host)));
    options_.ops->CopyIn(options_.model->weight(parameter), host.data(),
                         host.size() * sizeof(float));
  }
  return optimizer_->Restore(*checkpoint, options_.place_in_plan);
}

void AllReduceSynchronizer::StartCheckpointer() {
  const Checkpoints& wanted = options_.checkpoints;
  const int rank = options_.group->rank();
  if (wanted.every_steps == 0 || (rank != 0 && !cut())) return;
  Checkpointer::Options made;
  made.directory = wanted.directory;
  made.header.job_id = wanted.job_id;
  // By rank of the job, or of the one replica that writes.
  made.header.shard = options_.mesh.RankOf(options_.place);
  made.header.num_shards =
      cut() ? options_.mesh.size() : options_.mesh.model_size();
  made.header.parameters = options_.planned;
  made.header.state_names = optimizer_->state_names();
  // A rank that has nothing to write writes a file that says so.
  made.num_blocks = std::max<size_t>(
      1, absl::c_count_if(optimizer_->ranges(), [this](const auto& range) {
        return Writes(range.parameter);
      }));
  made.on_written = [this](const Checkpointer::Written& written) {
    options_.checkpoints.on_written(written, optimizer_->state_names());
  };
  checkpointer_ = std::make_unique<Checkpointer>(std::move(made));
}

void AllReduceSynchronizer::BeginStep(int64_t step, uint64_t /*samples*/) {
  step_ = step;
  sample_weights_ = SampleWeights(options_.samples(step));
  missing_.clear();
  spans_.clear();
  for (const Bucket& b : buckets_) {
    missing_.push_back(b.bucket.last - b.bucket.first + 1);
  }
  absl::MutexLock lock(&mu_);
  left_ = static_cast<int>(buckets_.size());
}

void AllReduceSynchronizer::GradientReady(int parameter) {
  const int bucket = bucket_of_[parameter];
  if (--missing_[bucket] > 0) return;
  absl::MutexLock lock(&mu_);
  ready_.push_back(bucket);
}

void AllReduceSynchronizer::Run() {
  const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || !ready_.empty();
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
    const absl::Status status =
        failed ? absl::OkStatus() : Process(buckets_[bucket]);
    absl::MutexLock lock(&mu_);
    status_.Update(status);
    --left_;
  }
}

void AllReduceSynchronizer::AddSpan(bool optimizer, int64_t begin_micros) {
  spans_.push_back({optimizer, begin_micros, Clock::Real().NowMicros()});
}

absl::Status AllReduceSynchronizer::Process(const Bucket& bucket) {
  const int64_t reducing = Clock::Real().NowMicros();
  float* const gradient = gradients() + bucket.bucket.begin;
  if (!replicated()) {
    TRIBUTARY_RETURN_IF_ERROR(options_.group->ReduceScatter(
        gradient, bucket.bounds, sample_weights_));
  } else {
    TRIBUTARY_RETURN_IF_ERROR(options_.group->AllReduce(
        gradient, bucket.bucket.end - bucket.bucket.begin, sample_weights_));
  }
  AddSpan(/*optimizer=*/false, reducing);
  if (two_phase_) return absl::OkStatus();
  const int64_t updating = Clock::Real().NowMicros();
  for (size_t r = 0; r < bucket.num_ranges; ++r) {
    const size_t range = bucket.first_range + r;
    if (!optimizer_->UpdateIfFinite(step_, range)) return NotFinite(range);
  }
  AddSpan(/*optimizer=*/true, updating);
  return GatherWeights(bucket);
}

absl::Status AllReduceSynchronizer::NotFinite(size_t range) const {
  const GradientRange& r = optimizer_->ranges()[range];
  return absl::InvalidArgumentError(absl::StrCat(
      "the gradient of \"", options_.model->parameters()[r.parameter].name,
      "\" in step ", step_ + 1, " is not finite in elements ", r.begin, " to ",
      r.end - 1));
}

absl::Status AllReduceSynchronizer::GatherWeights(const Bucket& bucket) {
  if (replicated()) return absl::OkStatus();
  const int64_t gathering = Clock::Real().NowMicros();
  TRIBUTARY_RETURN_IF_ERROR(options_.group->AllGather(
      weights() + bucket.bucket.begin, bucket.bounds));
  AddSpan(/*optimizer=*/false, gathering);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AllReduceSynchronizer::FinishStep() {
  TRIBUTARY_RETURN_IF_ERROR(WaitForBuckets());
  if (two_phase_) TRIBUTARY_RETURN_IF_ERROR(ApplyWithSums());
  const int64_t steps = step_ + 1, every = options_.checkpoints.every_steps;
  if (every > 0 && steps % every == 0) {
    TRIBUTARY_RETURN_IF_ERROR(CompareReplicas(steps));
    TRIBUTARY_RETURN_IF_ERROR(Checkpoint(steps));
  }
  return steps;
}

absl::Status AllReduceSynchronizer::CompareReplicas(int64_t steps) {
  const int size = options_.group->size(), rank = options_.group->rank();
  // Of the weights and, where all ranks hold the same, of the state.
  std::vector<uint32_t> hashes(2 * size);
  if (num_elements_ > 0) {
    hashes[2 * rank] =
        Crc32c(weights(), static_cast<size_t>(num_elements_) * sizeof(float));
  }
  if (replicated()) hashes[2 * rank + 1] = optimizer_->StateChecksum();
  std::vector<int64_t> bounds;
  for (int r = 0; r <= size; ++r) bounds.push_back(2 * r);
  static_assert(sizeof(float) == sizeof(uint32_t));
  TRIBUTARY_RETURN_IF_ERROR(options_.group->AllGather(
      reinterpret_cast<float*>(hashes.data()), bounds));
  for (int r = 1; r < size; ++r) {
    for (int i : {0, 1}) {
      if (hashes[2 * r + i] == hashes[i]) continue;
      return absl::DataLossError(absl::StrCat(
          "after step ", steps, " the ", i == 0 ? "weights" : "optimizer state",
          " of rank ", r, " have checksum ", absl::Hex(hashes[2 * r + i]),
          ", those of rank 0 ", absl::Hex(hashes[i])));
    }
  }
  return absl::OkStatus();
}

bool AllReduceSynchronizer::Writes(int parameter) const {
  const Holders& holders =
      options_.planned[options_.place_in_plan[parameter]].holders;
  return options_.place.stage == std::max(0, holders.stage) &&
         options_.place.tensor == std::max(0, holders.tensor);
}

absl::Status AllReduceSynchronizer::Checkpoint(int64_t steps) {
  if (checkpointer_ == nullptr) return absl::OkStatus();
  const auto take = [this](const BlockCut& cut) { checkpointer_->Take(cut); };
  bool any = false;
  for (size_t r = 0; r < optimizer_->ranges().size(); ++r) {
    const int parameter = optimizer_->ranges()[r].parameter;
    if (!Writes(parameter)) continue;
    any = true;
    TRIBUTARY_RETURN_IF_ERROR(
        optimizer_->Cut(steps, r, options_.place_in_plan[parameter], take));
  }
  if (!any) {
    const Block none;
    take(
        {.steps = steps,
         .block = &none,
         .weights = SharedBuffer(0),
         .state = std::vector<const float*>(optimizer_->state_names().size())});
  }
  return absl::OkStatus();
}

absl::Status AllReduceSynchronizer::WaitForBuckets() {
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return left_ == 0 || !status_.ok();
  };
  bool told = false;
  absl::MutexLock lock(&mu_);
  while (!mu_.AwaitWithTimeout(absl::Condition(&done), kLook)) {
    const int rank = options_.group->waiting_for();
    if (!options_.on_waiting || rank < 0) continue;
    options_.on_waiting(
        absl::StrCat("the gradients of rank ", rank, " in step ", step_ + 1));
    told = true;
  }
  if (told) options_.on_waiting("");
  return status_;
}

absl::StatusOr<std::vector<std::vector<double>>>
AllReduceSynchronizer::SumsOverRanks(const std::vector<double>& own,
                                     int stride) {
  const int size = options_.group->size(), rank = options_.group->rank();
  // Every rank's values one behind the other; as bytes, two floats a double.
  std::vector<int64_t> bounds = {0};
  for (const std::vector<GradientRange>& ranges : all_ranges_) {
    int64_t grains = 0;
    for (const GradientRange& range : ranges) grains += NumGrains(range.size());
    bounds.push_back(bounds.back() + 2 * stride * grains);
  }
  const int first = replicated() ? rank : 0;
  std::vector<double> values((bounds[size]) / 2);
  std::copy(own.begin(), own.end(), values.begin() + bounds[rank] / 2);
  if (!replicated()) {
    TRIBUTARY_RETURN_IF_ERROR(options_.group->AllGather(
        reinterpret_cast<float*>(values.data()), bounds));
  }
  // In the canonical order: by parameter, then position.
  struct Piece {
    GradientRange range;
    const double* values;
  };
  std::vector<Piece> pieces;
  for (int r = first; r < (replicated() ? rank + 1 : size); ++r) {
    const double* next = values.data() + bounds[r] / 2;
    for (const GradientRange& range : all_ranges_[r]) {
      pieces.push_back({range, next});
      next += stride * NumGrains(range.size());
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::make_pair(a.range.parameter, a.range.begin) <
           std::make_pair(b.range.parameter, b.range.begin);
  });
  std::vector<std::vector<double>> sums(
      stride, std::vector<double>(options_.model->parameters().size()));
  for (const Piece& piece : pieces) {
    for (int64_t g = 0; g < NumGrains(piece.range.size()); ++g) {
      for (int s = 0; s < stride; ++s) {
        sums[s][piece.range.parameter] += piece.values[g * stride + s];
      }
    }
  }
  return sums;
}

absl::StatusOr<std::vector<double>> AllReduceSynchronizer::TotalSums(
    const std::vector<double>& own) {
  if (options_.model_group == nullptr) return own;
  Communicator& group = *options_.model_group;
  const size_t n = options_.planned.size();
  std::vector<double> values(n * group.size());
  std::vector<int64_t> bounds;
  for (int r = 0; r <= group.size(); ++r) {
    bounds.push_back(2 * static_cast<int64_t>(n) * r);
  }
  for (size_t p = 0; p < own.size(); ++p) {
    if (!Writes(static_cast<int>(p))) continue;  // counts once
    values[n * group.rank() + options_.place_in_plan[p]] = own[p];
  }
  TRIBUTARY_RETURN_IF_ERROR(
      group.AllGather(reinterpret_cast<float*>(values.data()), bounds));
  std::vector<double> sums(n);
  for (size_t i = 0; i < values.size(); ++i) sums[i % n] += values[i];
  return sums;
}

absl::Status AllReduceSynchronizer::ApplyWithSums() {
  const int64_t updating = Clock::Real().NowMicros();
  TRIBUTARY_ASSIGN_OR_RETURN(auto own,
                             SumsOverRanks(optimizer_->GradientSquares(), 1));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> squares,
                             TotalSums(own[0]));
  for (size_t p = 0; p < squares.size(); ++p) {
    if (std::isfinite(squares[p])) continue;
    if (options_.skip_nonfinite) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the gradient of \"", options_.planned[p].name,
                     "\" in step ", step_ + 1, " is not finite"));
  }
  const double square = Optimizer::GradientSquare(options_.planned, squares);
  if (optimizer_->needs_trust_ratio()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        auto pairs, SumsOverRanks(optimizer_->Directions(step_, square), 2));
    optimizer_->ApplyDirections(step_, pairs[0], pairs[1]);
  } else {
    optimizer_->UpdateAll(step_, square);
  }
  AddSpan(/*optimizer=*/true, updating);
  for (const Bucket& bucket : buckets_) {
    TRIBUTARY_RETURN_IF_ERROR(GatherWeights(bucket));
  }
  return absl::OkStatus();
}

AllReduceSynchronizer::Traffic AllReduceSynchronizer::traffic() const {
  return {options_.group->bytes_sent(), options_.group->bytes_received(), 0};
}

}  // namespace tributary
