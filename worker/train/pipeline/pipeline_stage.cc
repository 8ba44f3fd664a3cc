// SPDX-License-Identifier: Apache-2.0
#include "worker/train/pipeline/pipeline_stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {
namespace {

// Gradients received ahead of their backward passes.
constexpr int kGradientsAhead = 2;

}  // namespace

PipelineStage::PipelineStage(Options options) : options_(std::move(options)) {}

PipelineStage::~PipelineStage() = default;

absl::StatusOr<std::unique_ptr<PipelineStage>> PipelineStage::Create(
    Options options) {
  std::unique_ptr<PipelineStage> stage(new PipelineStage(std::move(options)));
  const Options& o = stage->options_;
  TRIBUTARY_CHECK(o.micro_batches > 0 && (o.loss != nullptr || !stage->last()));
  TRIBUTARY_CHECK(o.model->activation_sets() >=
                  ActivationsInFlight(o.schedule, stage->stage(),
                                      stage->stages(), o.micro_batches));
  TRIBUTARY_RETURN_IF_ERROR(stage->Allocate());
  return stage;
}

absl::Status PipelineStage::Allocate() {
  Model& model = *options_.model;
  const int sets = model.activation_sets();
  outputs_.resize(sets);
  logits_.resize(sets);
  const int64_t input = model.max_rows() * model.input_size();
  const int64_t output = model.max_rows() * model.output_size();
  if (!first()) {
    const int inputs = std::min(sets + 1, options_.micro_batches);
    TRIBUTARY_ASSIGN_OR_RETURN(
        inputs_, TransferRing::Allocate(options_.ops, inputs, input));
    TRIBUTARY_ASSIGN_OR_RETURN(
        input_gradients_,
        TransferRing::Allocate(options_.ops, kGradientsAhead, input));
  }
  if (!last()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        output_gradients_,
        TransferRing::Allocate(options_.ops, kGradientsAhead, output));
  }
  int64_t shared = 0;  // gradients of the other stages, and the sum
  for (const SharedParameter& s : options_.shared) {
    shared = std::max(shared, static_cast<int64_t>(s.stages.size()) *
                                  model.parameters()[s.parameter].size());
  }
  if (shared == 0) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(
      shared_, DeviceArray<float>::Allocate(options_.ops, shared));
  return absl::OkStatus();
}

bool PipelineStage::IsShared(int parameter) const {
  return std::any_of(options_.shared.begin(), options_.shared.end(),
                     [parameter](const SharedParameter& s) {
                       return s.parameter == parameter;
                     });
}

absl::StatusOr<double> PipelineStage::Run(const Step& step) {
  timeline_.clear();
  receiving_inputs_ = receiving_gradients_ = 0;
  absl::StatusOr<double> loss_sum = RunTasks(step);
  if (!loss_sum.ok()) return AbortWith(loss_sum.status());
  return loss_sum;
}

absl::StatusOr<double> PipelineStage::RunTasks(const Step& step) {
  const int micro_batches = static_cast<int>(step.micro_batches.size());
  TRIBUTARY_CHECK(micro_batches <= options_.micro_batches);
  double loss_sum = 0;
  ReceiveAhead(step, 0);
  for (const PipelineTask& task :
       MakePipelineTasks(options_.schedule, stage(), stages(), micro_batches)) {
    TRIBUTARY_RETURN_IF_ERROR(
        task.kind == PipelineTask::Kind::kForward
            ? Forward(step.micro_batches[task.micro_batch], task.micro_batch)
            : Backward(step, task.micro_batch, &loss_sum));
  }
  for (int i = std::max(0, micro_batches - kGradientsAhead);
       !first() && i < micro_batches; ++i) {
    TRIBUTARY_RETURN_IF_ERROR(Finish(input_gradients_.transfer(i), stage() - 1,
                                     "take the gradients", i));
  }
  if (!step.gradient_ready) return loss_sum;
  if (micro_batches > 0) {
    TRIBUTARY_RETURN_IF_ERROR(ShareGradients());
    for (const SharedParameter& shared : options_.shared) {
      step.gradient_ready(shared.parameter);
    }
  } else {  // no samples, but the weights change
    const int parameters =
        static_cast<int>(options_.model->parameters().size());
    for (int p = parameters - 1; p >= 0; --p) step.gradient_ready(p);
  }
  return loss_sum;
}

void PipelineStage::ReceiveAhead(const Step& step, int done) {
  const int count = static_cast<int>(step.micro_batches.size());
  int& input = receiving_inputs_;
  for (; !first() && input < std::min(count, done + inputs_.places());
       ++input) {
    const int64_t n =
        step.micro_batches[input].rows * options_.model->input_size();
    *inputs_.transfer(input) =
        options_.group->StartReceive(inputs_.at(input), n, stage() - 1);
  }
  int& gradient = receiving_gradients_;
  for (;
       !last() && gradient < std::min(count, done + output_gradients_.places());
       ++gradient) {
    const int64_t n =
        step.micro_batches[gradient].rows * options_.model->output_size();
    *output_gradients_.transfer(gradient) = options_.group->StartReceive(
        output_gradients_.at(gradient), n, stage() + 1);
  }
}

absl::Status PipelineStage::Forward(const MicroBatch& batch, int i) {
  const float* x = batch.features;
  if (!first()) {
    TRIBUTARY_RETURN_IF_ERROR(
        Finish(inputs_.transfer(i), stage() - 1, "send the activations", i));
    x = inputs_.at(i);
  }
  const int64_t begin = options_.clock->NowMicros();
  const int set = SetOf(i);
  const float* y = options_.model->Forward(x, batch.rows, batch.context, set);
  TRIBUTARY_RETURN_IF_ERROR(options_.model->status());
  if (last()) {
    logits_[set] = y;
  } else {
    outputs_[set] = options_.group->StartSend(
        y, batch.rows * options_.model->output_size(), stage() + 1);
  }
  Record(PipelineEvent::Kind::kForward, i, begin);
  return absl::OkStatus();
}

absl::Status PipelineStage::Backward(const Step& step, int i,
                                     double* loss_sum) {
  const MicroBatch& batch = step.micro_batches[i];
  const int set = SetOf(i);
  if (!last()) {
    TRIBUTARY_RETURN_IF_ERROR(Finish(output_gradients_.transfer(i), stage() + 1,
                                     "send the gradients", i));
    TRIBUTARY_RETURN_IF_ERROR(
        Finish(&outputs_[set], stage() + 1, "take the activations", i));
  }
  const int64_t begin = options_.clock->NowMicros();
  const float* d_output = last() ? nullptr : output_gradients_.at(i);
  if (last()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        d_output, options_.loss->Differentiate(logits_[set], batch.targets,
                                               batch.rows, step.scale));
  }
  std::function<void(int)> gradient_ready;
  if (step.gradient_ready &&
      i + 1 == static_cast<int>(step.micro_batches.size())) {
    gradient_ready = [this, &step](int parameter) {
      if (!IsShared(parameter)) step.gradient_ready(parameter);
    };
  }
  const float* d_input = options_.model->Backward(
      d_output, step.accumulate || i > 0, gradient_ready, set);
  TRIBUTARY_RETURN_IF_ERROR(options_.model->status());
  if (!first()) {
    TRIBUTARY_RETURN_IF_ERROR(SendInputGradient(d_input, batch.rows, i));
  }
  ReceiveAhead(step, i + 1);
  if (last()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const double sum, options_.loss->Sum());
    *loss_sum += sum;
  }
  Record(PipelineEvent::Kind::kBackward, i, begin);
  return absl::OkStatus();
}

// Sends a copy, because the next backward pass may overwrite the model's
// buffer.
absl::Status PipelineStage::SendInputGradient(const float* gradient,
                                              int64_t rows, int i) {
  TRIBUTARY_RETURN_IF_ERROR(Finish(input_gradients_.transfer(i), stage() - 1,
                                   "take the gradients",
                                   i - input_gradients_.places()));
  const int64_t n = rows * options_.model->input_size();
  Copy(n, gradient, input_gradients_.at(i));
  *input_gradients_.transfer(i) =
      options_.group->StartSend(input_gradients_.at(i), n, stage() - 1);
  return absl::OkStatus();
}

absl::Status PipelineStage::ShareGradients() {
  struct Pending {
    int stage;
    const char* wanted;
    std::unique_ptr<PendingTransfer> transfer;
  };
  for (const SharedParameter& shared : options_.shared) {
    const int64_t begin = options_.clock->NowMicros();
    const int64_t n = options_.model->parameters()[shared.parameter].size();
    float* const gradient = options_.model->gradient(shared.parameter);
    float* room = shared_.data();
    std::vector<const float*> parts;
    std::vector<Pending> pending;
    for (int other : shared.stages) {
      parts.push_back(other == stage() ? gradient : room);
      if (other == stage()) continue;
      pending.push_back({other, "send its part of a shared gradient",
                         options_.group->StartReceive(room, n, other)});
      room += n;
    }
    for (int other : shared.stages) {
      if (other == stage()) continue;
      pending.push_back({other, "take this part of a shared gradient",
                         options_.group->StartSend(gradient, n, other)});
    }
    for (Pending& p : pending) {
      TRIBUTARY_RETURN_IF_ERROR(Finish(&p.transfer, p.stage, p.wanted, -1));
    }
    const std::vector<float> ones(parts.size(), 1.0f);
    options_.ops->WeightedSum(n, static_cast<int>(parts.size()), parts.data(),
                              ones.data(), room);
    Copy(n, room, gradient);
    Record(PipelineEvent::Kind::kShare, -1, begin);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::EvaluationPart> PipelineStage::Evaluate(
    const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch) {
  absl::StatusOr<v1::EvaluationPart> part = EvaluateBatches(spec, next_batch);
  if (!part.ok()) return AbortWith(part.status());
  return part;
}

absl::StatusOr<v1::EvaluationPart> PipelineStage::EvaluateBatches(
    const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch) {
  int64_t passed = 0;
  const auto pass = [&](const EvaluationBatch& batch) {
    return Pass(batch, passed++);
  };
  if (last()) {
    return EvaluateOutputs(options_.ops, options_.model->output_shape(),
                           options_.loss, spec, next_batch, pass);
  }
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const EvaluationBatch batch, next_batch());
    if (batch.rows == 0) break;
    TRIBUTARY_RETURN_IF_ERROR(pass(batch).status());
  }
  for (auto& output : outputs_) {
    TRIBUTARY_RETURN_IF_ERROR(
        Finish(&output, stage() + 1, "take the activations", -1));
  }
  return v1::EvaluationPart();
}

absl::StatusOr<const float*> PipelineStage::Pass(const EvaluationBatch& batch,
                                                 int64_t i) {
  const int set = SetOf(i);
  const float* x = batch.features;
  if (!first()) {
    *inputs_.transfer(i) = options_.group->StartReceive(
        inputs_.at(i), batch.rows * options_.model->input_size(), stage() - 1);
    TRIBUTARY_RETURN_IF_ERROR(
        Finish(inputs_.transfer(i), stage() - 1, "send the activations", i));
    x = inputs_.at(i);
  }
  TRIBUTARY_RETURN_IF_ERROR(
      Finish(&outputs_[set], stage() + 1, "take the activations", i));
  const float* y = options_.model->Forward(x, batch.rows, {}, set);
  TRIBUTARY_RETURN_IF_ERROR(options_.model->status());
  if (last()) return y;
  outputs_[set] = options_.group->StartSend(
      y, batch.rows * options_.model->output_size(), stage() + 1);
  if (y == x) {  // x is valid only during this call
    TRIBUTARY_RETURN_IF_ERROR(
        Finish(&outputs_[set], stage() + 1, "take the activations", i));
  }
  return y;
}

absl::Status PipelineStage::Finish(std::unique_ptr<PendingTransfer>* transfer,
                                   int peer, const char* wanted,
                                   int64_t micro_batch) {
  if (*transfer == nullptr) return absl::OkStatus();
  const int64_t begin = options_.clock->NowMicros();
  waiting_for_ = JobRank(options_.ranks, peer);
  const absl::Status status = (*transfer)->Wait();
  waiting_for_ = -1;
  transfer->reset();
  if (options_.clock->NowMicros() > begin) {
    Record(PipelineEvent::Kind::kWait, micro_batch, begin);
  }
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("stage ", stage(), " of ", stages(), " waited for rank ",
                   JobRank(options_.ranks, peer), " to ", wanted,
                   micro_batch < 0
                       ? std::string()
                       : absl::StrCat(" of micro-batch ", micro_batch),
                   ": ", status.message()));
}

void PipelineStage::Record(PipelineEvent::Kind kind, int64_t micro_batch,
                           int64_t begin) {
  timeline_.push_back({kind, static_cast<int>(micro_batch), begin,
                       options_.clock->NowMicros()});
}

void PipelineStage::Copy(int64_t n, const float* from, float* to) {
  const float one = 1;
  options_.ops->WeightedSum(n, 1, &from, &one, to);
}

// Aborts the group first, so that pending transfers end, then destroys them.
absl::Status PipelineStage::AbortWith(const absl::Status& status) {
  options_.group->Abort(std::string(status.message()));
  inputs_.Clear();
  output_gradients_.Clear();
  input_gradients_.Clear();
  for (auto& output : outputs_) output.reset();
  return status;
}

}  // namespace tributary
