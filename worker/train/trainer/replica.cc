// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/plan/planned_parameters.h"
#include "common/status/status_macros.h"
#include "worker/train/data/class_weights.h"

namespace tributary {

Replica::Replica(const Options& options)
    : options_(options),
      mesh_(StrategyOf(*options.job).mesh()),
      place_(mesh_.PlaceOf(options.rank)) {}

absl::StatusOr<std::unique_ptr<Replica>> Replica::CreateWhole(
    const Options& options) {
  std::unique_ptr<Replica> replica(new Replica(options));
  TRIBUTARY_RETURN_IF_ERROR(replica->Build(nullptr, nullptr));
  return replica;
}

absl::StatusOr<std::unique_ptr<Replica>> Replica::Connect(
    const Options& options, const GroupParts& parts, const v1::Plan& plan) {
  std::unique_ptr<Replica> replica(new Replica(options));
  TRIBUTARY_RETURN_IF_ERROR(replica->ConnectTensor(parts, plan));
  TRIBUTARY_RETURN_IF_ERROR(replica->Build(&parts, &plan));
  return replica;
}

absl::Status Replica::CheckFits(const Dataset& data) const {
  if (model_->num_tokens() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckTokens(model_->num_tokens()));
  }
  if (loss_ == nullptr) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(data.CheckTargets(model_->output_shape()));
  if (data.target_kind() != TargetKind::kClass) return absl::OkStatus();
  const OutputCut& cut = model_->output_cut();
  return data.CheckClasses(cut.group == nullptr ? model_->output_shape().back()
                                                : cut.range.total);
}

absl::Status Replica::ConnectTensor(const GroupParts& parts,
                                    const v1::Plan& plan) {
  if (mesh_.tensor == 1) return absl::OkStatus();
  GroupSpec group{
      .name = absl::StrCat("tensor/", place_.data, "/", place_.stage),
      .ranks = {},
      .backend = options_.job->strategy().tensor_parallel().backend()};
  for (int t = 0; t < mesh_.tensor; ++t) {
    group.ranks.push_back(mesh_.RankOf({place_.data, place_.stage, t}));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(tensor_, ConnectGroup(parts, plan, group));
  tensor_group_ = std::make_unique<TensorGroup>(
      TensorGroup::Options{.ops = options_.ops, .communicator = tensor_.get()});
  return absl::OkStatus();
}

absl::Status Replica::Build(const GroupParts* parts, const v1::Plan* plan) {
  const v1::JobSpec& job = *options_.job;
  const Shape& sample = options_.train->feature_shape();
  Model::Options model{
      .ops = options_.ops, .max_rows = max_micro_rows(), .seed = job.seed()};
  const Strategy strategy = StrategyOf(job);
  model.share_gradients = strategy.uses_servers();
  model.group = tensor_group_.get();
  model.cut_logits = tensor_group_ != nullptr && CutsLogits(job);
  std::vector<int> bounds = {0, job.model().sequential_size()};
  if (mesh_.stages > 1) {
    TRIBUTARY_ASSIGN_OR_RETURN(bounds, StageBounds(job, sample));
    model.first_layer = bounds[place_.stage];
    model.end_layer = bounds[place_.stage + 1];
    model.activation_sets = ActivationsInFlight(
        strategy.schedule, place_.stage, mesh_.stages, num_micro_batches());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(model_, Model::Create(job.model(), sample, model));
  if (place_.stage == mesh_.stages - 1) TRIBUTARY_RETURN_IF_ERROR(MakeLoss());
  return mesh_.stages > 1 ? MakeStage(*parts, *plan, bounds) : absl::OkStatus();
}

absl::Status Replica::MakeLoss() {
  const bool classes = options_.train->target_kind() == TargetKind::kClass;
  const int64_t outputs =
      classes ? model_->output_shape().back() : model_->output_size();
  const OutputCut& cut = model_->output_cut();
  TRIBUTARY_ASSIGN_OR_RETURN(
      const v1::LossSpec loss,
      WithClassWeights(options_.job->training().loss(), *options_.train,
                       cut.group == nullptr ? outputs : cut.range.total));
  TRIBUTARY_ASSIGN_OR_RETURN(
      loss_, Loss::Create(loss, {.ops = options_.ops,
                                 .max_rows = max_micro_rows(),
                                 .outputs = outputs,
                                 .positions = model_->output_size() / outputs,
                                 .cut = cut}));
  return absl::OkStatus();
}

absl::Status Replica::MakeStage(const GroupParts& parts, const v1::Plan& plan,
                                const std::vector<int>& bounds) {
  PipelineStage::Options stage;
  for (int s = 0; s < mesh_.stages; ++s) {
    stage.ranks.push_back(mesh_.RankOf({place_.data, s, place_.tensor}));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      stage.group,
      ConnectGroup(
          parts, plan,
          {.name = absl::StrCat("stages/", place_.data, "/", place_.tensor),
           .ranks = stage.ranks,
           .backend = options_.job->strategy().pipeline_parallel().backend(),
           .messages = true}));
  stage.ops = options_.ops;
  stage.model = model_.get();
  stage.loss = loss_.get();
  stage.schedule = StrategyOf(*options_.job).schedule;
  stage.micro_batches = num_micro_batches();
  stage.shared =
      SharedParameters(options_.job->model(), bounds, *model_, place_.stage);
  TRIBUTARY_ASSIGN_OR_RETURN(stage_, PipelineStage::Create(std::move(stage)));
  return absl::OkStatus();
}

int Replica::num_micro_batches() const {
  return options_.job->strategy().pipeline_parallel().micro_batches();
}

int64_t Replica::max_micro_rows() const {
  if (mesh_.stages == 1) return options_.max_rows;
  const int64_t parts = num_micro_batches();
  return (options_.max_rows + parts - 1) / parts;
}

std::vector<int> Replica::DataRanks() const {
  std::vector<int> ranks;
  for (int d = 0; d < mesh_.data; ++d) {
    ranks.push_back(mesh_.RankOf({d, place_.stage, place_.tensor}));
  }
  return ranks;
}

std::vector<int> Replica::ModelRanks() const {
  std::vector<int> ranks;
  for (int r = 0; r < mesh_.model_size(); ++r) {
    ranks.push_back(place_.data * mesh_.model_size() + r);
  }
  return ranks;
}

uint64_t Replica::bytes_sent() const {
  return (tensor_ ? tensor_->bytes_sent() : 0) +
         (stage_ ? stage_->group().bytes_sent() : 0);
}

uint64_t Replica::bytes_received() const {
  return (tensor_ ? tensor_->bytes_received() : 0) +
         (stage_ ? stage_->group().bytes_received() : 0);
}

void Replica::Cancel(const std::string& why) {
  if (tensor_) tensor_->Abort(why);
  if (stage_) stage_->Cancel(why);
}

}  // namespace tributary
