// SPDX-License-Identifier: Apache-2.0
#include "common/cost/predict_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/cost/check_cost_inputs.h"
#include "common/cost/exchange_times.h"
#include "common/cost/link.h"
#include "common/cost/pipeline_times.h"
#include "common/cost/tensor_shares.h"
#include "common/plan/planned_parameters.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

struct Traffic {
  double bytes = 0;
  double messages = 0;
};

// The data and methods that every simulation of a step shares.
class StepModel {
 public:
  StepModel(const CostInputs& in, ModelShare share, std::vector<int> bounds)
      : in_(in),
        replicas_(in.strategy.mesh().data),
        rows_((in.global_rows + replicas_ - 1) / replicas_),
        share_(std::move(share)),
        bounds_(std::move(bounds)) {}

  Prediction Predict() const;

 private:
  struct StageTraffic {
    double busiest_bytes = 0;
    Traffic all;
  };
  struct Run {
    double end = 0;
    ExchangeCost exchange;
    PipelineTimes pipeline;
  };

  int stages() const { return in_.strategy.stages; }
  bool staged() const { return stages() > 1; }
  int64_t micro_rows() const {
    const int m = staged() ? in_.strategy.micro_batches : 1;
    return (rows_ + m - 1) / m;
  }
  int micro_batches() const {
    return static_cast<int>((rows_ + micro_rows() - 1) / micro_rows());
  }
  double Crowding() const;
  double UpdateRate() const;
  // Time of one micro-batch. crowding: factor by which computing takes longer
  // than for a process with a core of its own.
  StageTime TimeOfStage(int stage, const ClusterShape& cluster,
                        double crowding) const;
  static double CollectiveSeconds(const ClusterShape& cluster, int ranks,
                                  const std::vector<LayerCollective>& all,
                                  double rows);
  std::vector<RankGradients> Gradients(const PipelineTimes& last,
                                       const std::vector<StageTime>& stages,
                                       double begin) const;
  Run Simulate(const ClusterShape& cluster, double update_rate) const;
  Traffic TensorTraffic() const;
  StageTraffic TrafficOfStages() const;
  Traffic AllTraffic(const Run& run) const;
  double CpuBound(const Run& run) const;
  void FillMemory(const Run& run, Prediction* out) const;

  const CostInputs& in_;
  const int replicas_;
  const int64_t rows_;  // of a replica's micro-batch
  const ModelShare share_;
  const std::vector<int> bounds_;  // layer bounds of the stages
  const double crowding_ = Crowding();
};

// Factor by which processes slow each other down on shared cores. Only some
// stages of a pipeline compute at a time: as many as are busy on average.
double StepModel::Crowding() const {
  const double cores = in_.cluster.shared_cores;
  if (cores <= 0) return 1;
  double busy = 1;
  if (staged()) {
    std::vector<StageTime> times;
    double work = 0;
    for (int s = 0; s < stages(); ++s) {
      times.push_back(TimeOfStage(s, in_.cluster, 1));
      const StageTime alone = TimeOfStage(s, ClusterShape(), 1);
      work +=
          (alone.forward_seconds + alone.backward_seconds) * micro_batches();
    }
    const double end = ReplayPipeline(times, micro_batches(),
                                      in_.strategy.schedule, in_.cluster)
                           .end_seconds;
    busy = end > 0 ? work / end / stages() : 1;
  }
  return std::max(1.0, busy * in_.strategy.workers / cores);
}

double StepModel::UpdateRate() const {
  if (in_.cluster.shared_cores <= 0) return in_.compute.memory_bandwidth;
  // One process alone nearly saturates the memory bus, so processes divide it.
  int at_once = 1;
  if (in_.strategy.uses_servers()) {
    at_once = in_.strategy.servers;
  } else if (!in_.strategy.one_process()) {
    at_once = in_.strategy.workers;
  }
  return in_.compute.memory_bandwidth / at_once;
}

double StepModel::CollectiveSeconds(const ClusterShape& cluster, int ranks,
                                    const std::vector<LayerCollective>& all,
                                    double rows) {
  double seconds = 0;
  for (const LayerCollective& one : all) {
    const double bytes = static_cast<double>(one.elements) * rows * kFloatBytes;
    const double whole = AllReduceEnd(cluster, ranks, 0, bytes);
    seconds += one.gather ? whole / 2 : whole;
  }
  return seconds;
}

StageTime StepModel::TimeOfStage(int stage, const ClusterShape& cluster,
                                 double crowding) const {
  const double rows = static_cast<double>(micro_rows());
  const int tensor = in_.strategy.tensor;
  double forward = 0, backward = 0;
  StageTime time;
  for (int i = bounds_[stage]; i < bounds_[stage + 1]; ++i) {
    const LayerShare& layer = share_.layers[i];
    forward += layer.forward_flops;
    backward += layer.backward_flops;
    time.forward_seconds +=
        CollectiveSeconds(cluster, tensor, layer.forward, rows);
    time.backward_seconds +=
        CollectiveSeconds(cluster, tensor, layer.backward, rows);
    time.output_bytes =
        static_cast<double>(in_.model->layers[i].output_elements()) * rows *
        kFloatBytes;
  }
  // Time of a pass that does not depend on the batch, in proportion to the
  // layers.
  const double part = static_cast<double>(bounds_[stage + 1] - bounds_[stage]) /
                      static_cast<double>(share_.layers.size());
  const double fixed = in_.compute.pass_seconds * part;
  time.forward_seconds +=
      crowding * (forward * rows / in_.compute.forward_flops + fixed / 3);
  time.backward_seconds +=
      crowding * (backward * rows / in_.compute.backward_flops + 2 * fixed / 3);
  return time;
}

// Every stage's gradients become final during its last backward pass, those of
// the last layers first.
std::vector<RankGradients> StepModel::Gradients(
    const PipelineTimes& last, const std::vector<StageTime>& stages,
    double begin) const {
  std::vector<RankGradients> ranks;
  for (int s = 0; s < this->stages(); ++s) {
    double all = 0;
    for (int i = bounds_[s]; i < bounds_[s + 1]; ++i) {
      all += share_.layers[i].backward_flops;
    }
    RankGradients rank;
    rank.elements.resize(share_.parameter_elements.size());
    rank.ready_seconds.resize(rank.elements.size());
    for (size_t p = 0; p < rank.elements.size(); ++p) {
      const int layer = share_.layer_of_parameter[p];
      if (layer < bounds_[s] || layer >= bounds_[s + 1]) continue;
      double done =
          share_.final_after_share[p] * share_.layers[layer].backward_flops;
      for (int i = layer + 1; i < bounds_[s + 1]; ++i) {
        done += share_.layers[i].backward_flops;
      }
      rank.elements[p] = share_.parameter_elements[p];
      rank.ready_seconds[p] =
          begin + last.last_backward_ends[s] -
          (all > 0 ? 1 - done / all : 0) * stages[s].backward_seconds;
    }
    // All ranks of a tensor-parallel group have equal gradients and a link
    // each.
    for (int t = 0; t < in_.strategy.tensor; ++t) ranks.push_back(rank);
  }
  return ranks;
}

StepModel::Run StepModel::Simulate(const ClusterShape& cluster,
                                   double update_rate) const {
  CostInputs in = in_;
  in.cluster = cluster;
  if (cluster.bandwidth == ClusterShape::kInfinite) {
    in.compute.cpu_seconds_per_byte = 0;
  }
  std::vector<StageTime> times;
  for (int s = 0; s < stages(); ++s)
    times.push_back(TimeOfStage(s, cluster, crowding_));
  Run run;
  run.pipeline =
      ReplayPipeline(times, micro_batches(), in.strategy.schedule, cluster);
  // Micro-batches before the last one exchange no gradients.
  const double begin =
      static_cast<double>(in.accumulation - 1) * run.pipeline.end_seconds;
  const double computed = begin + run.pipeline.end_seconds;
  std::vector<RankGradients> ranks = Gradients(run.pipeline, times, begin);
  // Local steps end with the exchange; with a delay a step begins with it.
  const bool local = in.strategy.exchange_every > 1;
  const double inner = !local ? 0
                              : in.model->parameter_elements() * kFloatBytes *
                                    (3 + 2 * in.optimizer_states) / update_rate;
  for (RankGradients& rank : ranks) {
    if (local) absl::c_fill(rank.ready_seconds, computed + inner);
    if (in.strategy.delay > 0) absl::c_fill(rank.ready_seconds, 0.0);
  }
  run.exchange = ExchangeTimes(in, replicas_, ranks, update_rate);
  const double exchanged = std::max(run.exchange.end_seconds, computed + inner);
  run.end = computed + inner +
            (exchanged - computed - inner) / in.strategy.exchange_every;
  return run;
}

// The traffic that a rank sends within its tensor-parallel group.
Traffic StepModel::TensorTraffic() const {
  const int t = in_.strategy.tensor;
  if (t == 1) return {};
  double elements = 0, rounds = 0;
  for (const LayerShare& layer : share_.layers) {
    for (const auto* all : {&layer.forward, &layer.backward}) {
      for (const LayerCollective& one : *all) {
        elements += static_cast<double>(one.elements) * (one.gather ? 1 : 2);
        rounds += one.gather ? 1 : 2;
      }
    }
  }
  const double passes = micro_batches() * static_cast<double>(in_.accumulation);
  return {elements * kFloatBytes *
              static_cast<double>(rows_ * in_.accumulation) * (t - 1) / t /
              stages(),
          rounds * (t - 1) * passes / stages()};
}

// The traffic to neighbouring stages: of the busiest rank, and of all ranks.
StepModel::StageTraffic StepModel::TrafficOfStages() const {
  StageTraffic traffic;
  const double passes = micro_batches() * static_cast<double>(in_.accumulation);
  double before = 0;
  for (int stage = 0; stage + 1 < stages(); ++stage) {
    const double output =
        TimeOfStage(stage, ClusterShape(), crowding_).output_bytes * passes;
    traffic.busiest_bytes = std::max(traffic.busiest_bytes, output + before);
    traffic.all.bytes += 2 * output;
    traffic.all.messages += 2 * passes;
    before = output;
  }
  const double columns = replicas_ * in_.strategy.tensor;
  traffic.all.bytes *= columns;
  traffic.all.messages *= columns;
  return traffic;
}

// The traffic of all processes in a step.
Traffic StepModel::AllTraffic(const Run& run) const {
  const double every = in_.strategy.exchange_every;
  const Traffic tensor = TensorTraffic(), staged = TrafficOfStages().all;
  return {run.exchange.total_bytes / every +
              tensor.bytes * in_.strategy.workers + staged.bytes,
          run.exchange.total_messages / every +
              tensor.messages * in_.strategy.workers + staged.messages};
}

// Lower bound of the step on shared cores: the total work divided by the cores.
double StepModel::CpuBound(const Run& run) const {
  const double cores = in_.cluster.shared_cores;
  if (cores <= 0) return 0;
  double work = 0;
  for (int s = 0; s < stages(); ++s) {
    const StageTime time = TimeOfStage(s, ClusterShape(), 1);
    work += (time.forward_seconds + time.backward_seconds) * micro_batches();
  }
  work *=
      replicas_ * in_.strategy.tensor * static_cast<double>(in_.accumulation);
  // Sending and receiving each cost CPU time.
  const Traffic traffic = AllTraffic(run);
  work += 2 * (traffic.bytes * in_.compute.cpu_seconds_per_byte +
               traffic.messages * in_.compute.cpu_seconds_per_message);
  return work / cores;
}

void StepModel::FillMemory(const Run& run, Prediction* out) const {
  const ModelCosts& model = *in_.model;
  const Strategy& s = in_.strategy;
  const double rows = static_cast<double>(micro_rows());
  for (int stage = 0; stage < stages(); ++stage) {
    double elements = 0, kept = 0;
    for (size_t p = 0; p < share_.parameter_elements.size(); ++p) {
      const int layer = share_.layer_of_parameter[p];
      if (layer < bounds_[stage] || layer >= bounds_[stage + 1]) continue;
      elements += static_cast<double>(share_.parameter_elements[p]);
    }
    for (int i = bounds_[stage]; i < bounds_[stage + 1]; ++i) {
      kept += static_cast<double>(share_.layers[i].kept_elements);
    }
    kept += static_cast<double>(
        NumElements(model.layers[bounds_[stage]].input_shape));
    const double in_flight = run.pipeline.most_in_flight[stage];
    const double activations =
        rows *
        (in_flight * kept + static_cast<double>(model.workspace_elements));
    double copies = 2;  // weights and gradients
    double buffers = 0;
    if (s.exchange == Exchange::kShardedAllReduce) {
      copies += static_cast<double>(in_.optimizer_states) / replicas_;
    } else if (!s.uses_servers() || s.exchange_every > 1) {
      copies += in_.optimizer_states;
    }
    if (s.error_feedback) copies += 1;  // the residual
    if (s.delay > 0) copies += 3;       // ExchangeMemory
    if (s.exchange == Exchange::kAllReduce ||
        s.exchange == Exchange::kShardedAllReduce) {
      // Holds the parts of a bucket received from other ranks.
      if (replicas_ > 1) {
        buffers = std::min(elements * kFloatBytes,
                           static_cast<double>(s.bucket_bytes));
      }
    }
    buffers += elements * s.encoded_gradient_bytes();
    double bytes = kFloatBytes * (copies * elements + activations) + buffers;
    if (s.one_process()) {
      bytes =
          kFloatBytes * (in_.strategy.workers * (2 * elements + activations) +
                         in_.optimizer_states * elements);
    }
    out->worker_memory =
        std::max(out->worker_memory, in_.compute.process_bytes + bytes);
  }
  if (!s.uses_servers()) return;
  // Two versions of the weights, one more with a delay or if they are encoded,
  // the optimizer's state, and at most every replica's gradient until the step
  // is complete.
  const double held =
      static_cast<double>(model.parameter_elements()) / s.servers * kFloatBytes;
  out->server_memory =
      in_.compute.server_process_bytes +
      held * (2 + s.delay + in_.optimizer_states +
              (replicas_ * s.gradient_bytes + s.encoded_weight_bytes()) /
                  kFloatBytes);
}

Prediction StepModel::Predict() const {
  ClusterShape free_links = in_.cluster;
  free_links.bandwidth = ClusterShape::kInfinite;
  free_links.latency = 0;
  const Run whole = Simulate(in_.cluster, UpdateRate());
  const Run unlinked = Simulate(free_links, UpdateRate());
  const Run computed = Simulate(free_links, ComputeSpeed::kInfinite);

  Prediction out;
  double busiest = 0;
  for (int s = 0; s < stages(); ++s) {
    const StageTime time = TimeOfStage(s, free_links, crowding_);
    busiest = std::max(busiest, (time.forward_seconds + time.backward_seconds) *
                                    micro_batches());
  }
  out.compute_seconds = busiest * static_cast<double>(in_.accumulation);
  out.waiting_seconds = computed.end - out.compute_seconds;
  out.optimizer_seconds = unlinked.end - computed.end;
  out.exposed_seconds = whole.end - unlinked.end;
  out.step_seconds = std::max(whole.end, CpuBound(whole));
  out.waiting_seconds += out.step_seconds - whole.end;

  const Strategy& s = in_.strategy;
  out.bytes_sent_per_rank = whole.exchange.bytes_sent / s.exchange_every +
                            TensorTraffic().bytes +
                            TrafficOfStages().busiest_bytes;
  out.bytes_per_step = AllTraffic(whole).bytes;
  FillMemory(whole, &out);
  return out;
}

}  // namespace

absl::StatusOr<Prediction> PredictStep(const CostInputs& inputs) {
  TRIBUTARY_RETURN_IF_ERROR(CheckCostInputs(inputs));
  const TensorCuts cuts(inputs.model->model, inputs.strategy.tensor,
                        inputs.cut_logits);
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::vector<int> bounds,
      StageBounds(*inputs.model, cuts, inputs.strategy.stages));
  return StepModel(inputs, ShareOfModel(*inputs.model, cuts), std::move(bounds))
      .Predict();
}

}  // namespace tributary
