// SPDX-License-Identifier: Apache-2.0
#include "worker/train/measure/measure_compute.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/host/memory/peak_memory.h"
#include "common/job/job_options.h"
#include "common/layers/initializer.h"
#include "common/optimizer/optimizer.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "worker/rank/collective/device_fault.h"
#include "worker/train/data/class_weights.h"
#include "worker/train/data/open_data.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/model.h"

namespace tributary {
namespace {

// Passes are repeated for kSeconds, but at least kFewest and at most kMost
// times. The first kWarmUp passes only warm up caches.
constexpr double kSeconds = 0.5;
constexpr size_t kFewest = 5;
constexpr size_t kMost = 200;
constexpr int kWarmUp = 2;

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double NowSeconds() {
  return static_cast<double>(Clock::Real().NowMicros()) * 1e-6;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// The model and loss of a job on one device, with its initial weights.
class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(const v1::JobSpec& job,
                                                       const Dataset& data,
                                                       Ops* ops,
                                                       int64_t max_rows);

  absl::StatusOr<ComputeMeasurement::Pass> TimePasses(const Dataset& data,
                                                      int64_t rows);
  // Returns the seconds of one update of all weights. bytes: the bytes it
  // moves.
  absl::StatusOr<double> TimeUpdate(const OptimizerOptions& options,
                                    double* bytes);

 private:
  explicit Bench(Ops* ops) : ops_(ops) {}

  Ops* const ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
};

absl::StatusOr<std::unique_ptr<Bench>> Bench::Create(const v1::JobSpec& job,
                                                     const Dataset& data,
                                                     Ops* ops,
                                                     int64_t max_rows) {
  std::unique_ptr<Bench> bench(new Bench(ops));
  TRIBUTARY_ASSIGN_OR_RETURN(
      bench->model_,
      Model::Create(job.model(), data.feature_shape(),
                    {.ops = ops, .max_rows = max_rows, .seed = job.seed()}));
  Model& model = *bench->model_;
  TRIBUTARY_RETURN_IF_ERROR(data.CheckTargets(model.output_shape()));
  const bool classes = data.target_kind() == TargetKind::kClass;
  const int64_t outputs =
      classes ? model.output_shape().back() : model.output_size();
  TRIBUTARY_ASSIGN_OR_RETURN(
      const v1::LossSpec loss,
      WithClassWeights(job.training().loss(), data, outputs));
  TRIBUTARY_ASSIGN_OR_RETURN(
      bench->loss_,
      Loss::Create(loss, {.ops = ops,
                          .max_rows = max_rows,
                          .outputs = outputs,
                          .positions = model.output_size() / outputs}));
  if (classes) TRIBUTARY_RETURN_IF_ERROR(data.CheckClasses(outputs));
  if (model.num_tokens() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckTokens(model.num_tokens()));
  }
  for (size_t p = 0; p < model.parameters().size(); ++p) {
    const int index = static_cast<int>(p);
    std::vector<float> weights(model.parameters()[p].size());
    InitialWeights(model.parameters(), job.model(), job.seed(), index,
                   absl::MakeSpan(weights));
    ops->CopyIn(model.weight(index), weights.data(),
                weights.size() * sizeof(float));
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops));  // `weights` ends
                                                         // here
  }
  return bench;
}

absl::StatusOr<ComputeMeasurement::Pass> Bench::TimePasses(const Dataset& data,
                                                           int64_t rows) {
  std::vector<int64_t> indices(rows);
  for (int64_t i = 0; i < rows; ++i) indices[i] = i % data.rows();
  Batch batch;
  TRIBUTARY_RETURN_IF_ERROR(data.Fetch(indices, &batch));
  const LossTargets targets{
      .labels = batch.labels.empty() ? nullptr : batch.labels.data(),
      .values = batch.targets.empty() ? nullptr : batch.targets.data()};
  std::vector<double> forward, backward;
  double begin = NowSeconds();
  for (int i = 0; i < kWarmUp + static_cast<int>(kMost); ++i) {
    if (i == kWarmUp) begin = NowSeconds();
    const double started = NowSeconds();
    const float* logits = model_->Forward(batch.features.data(), batch.rows,
                                          {.training = true, .step = i});
    TRIBUTARY_ASSIGN_OR_RETURN(
        const float* d_logits,
        loss_->Differentiate(logits, targets, batch.rows,
                             1.0 / static_cast<double>(rows)));
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
    const double half = NowSeconds();
    model_->Backward(d_logits, /*accumulate=*/false, nullptr);
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
    const double end = NowSeconds();
    if (i < kWarmUp) continue;
    forward.push_back(half - started);
    backward.push_back(end - half);
    if (forward.size() >= kFewest && end - begin > kSeconds) break;
  }
  return ComputeMeasurement::Pass{rows, Median(forward), Median(backward)};
}

absl::StatusOr<double> Bench::TimeUpdate(const OptimizerOptions& options,
                                         double* bytes) {
  OptimizerOptions timed = options;
  // Times LAMB as Adam, which does the same work for each weight; the norms are
  // extra.
  if (Optimizer(timed).makes_directions()) {
    timed.kind = "adam";
  }
  const Optimizer optimizer(timed);
  std::vector<std::vector<DeviceArray<float>>> states;
  *bytes = 0;
  for (const ParameterSpec& parameter : model_->parameters()) {
    const int64_t n = parameter.size();
    states.emplace_back();
    for (size_t s = 0; s < optimizer.state_names().size(); ++s) {
      TRIBUTARY_ASSIGN_OR_RETURN(DeviceArray<float> state,
                                 DeviceArray<float>::Allocate(ops_, n));
      ops_->Fill(n, 0, state.data());
      states.back().push_back(std::move(state));
    }
    // Reads gradient, weight and states; writes weight and states.
    *bytes += static_cast<double>(n * sizeof(float)) *
              static_cast<double>(3 + 2 * optimizer.state_names().size());
  }
  std::vector<double> seconds;
  const double begin = NowSeconds();
  for (size_t i = 0; i < kMost; ++i) {
    const double started = NowSeconds();
    const OptimizerStep step = optimizer.Prepare(static_cast<int64_t>(i) + 1,
                                                 /*learning_rate=*/1e-6, 1.0);
    for (size_t p = 0; p < states.size(); ++p) {
      std::vector<float*> pointers;
      for (const DeviceArray<float>& s : states[p])
        pointers.push_back(s.data());
      float* weight = model_->weight(static_cast<int>(p));
      ops_->OptimizerUpdate(step, model_->parameters()[p].size(),
                            model_->gradient(static_cast<int>(p)), weight,
                            weight, pointers.data());
    }
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
    seconds.push_back(NowSeconds() - started);
    if (seconds.size() >= kFewest && NowSeconds() - begin > kSeconds) break;
  }
  return Median(seconds);
}

absl::StatusOr<std::unique_ptr<Ops>> MakeOps(v1::Device device,
                                             v1::Precision precision) {
  const DeviceChoice choice = device == v1::DEVICE_CPU    ? DeviceChoice::kCpu
                              : device == v1::DEVICE_CUDA ? DeviceChoice::kCuda
                                                          : DeviceChoice::kAuto;
  std::string why;
  std::unique_ptr<Ops> ops = CreateOps(choice, &why, /*index=*/0,
                                       precision == v1::PRECISION_BFLOAT16
                                           ? ProductPrecision::kBfloat16
                                           : ProductPrecision::kFloat32);
  if (!ops) return absl::FailedPreconditionError(why);
  return ops;
}

}  // namespace

absl::StatusOr<ComputeMeasurement> MeasureCompute(const v1::JobSpec& job,
                                                  std::vector<int64_t> rows) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Ops> ops,
                             MakeOps(job.device(), job.training().precision()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const TrainTest data,
      OpenData(job.data(), TargetKindOf(job.training().loss())));
  ComputeMeasurement out;
  out.sample_shape = data.train->feature_shape();
  out.process_bytes = ResidentBytes();
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (!rows.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::unique_ptr<Bench> bench,
        Bench::Create(job, *data.train, ops.get(), rows.back()));
    for (int64_t batch : rows) {
      TRIBUTARY_ASSIGN_OR_RETURN(const ComputeMeasurement::Pass pass,
                                 bench->TimePasses(*data.train, batch));
      out.passes.push_back(pass);
    }
    double bytes = 0;
    TRIBUTARY_ASSIGN_OR_RETURN(
        out.update_seconds,
        bench->TimeUpdate(OptimizerOptionsOf(job.training().optimizer()),
                          &bytes));
    if (out.update_seconds > 0) {
      out.memory_bandwidth = bytes / out.update_seconds;
    }
  }
  // The kernel updates the resident size and the peak separately; they may
  // differ by some pages.
  out.peak_bytes =
      std::max(out.process_bytes, static_cast<int64_t>(PeakMemoryBytes()));
  return out;
}

}  // namespace tributary
