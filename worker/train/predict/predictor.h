// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/ops.h"
#include "tributary/v1/model_record.pb.h"
#include "worker/train/data/batches/batch.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/model/model.h"

namespace tributary {

// A run's model with its weights and the preprocessing of its inputs, in memory
// of the CPU. For one thread.
class Predictor {
 public:
  // Selects the weights of a run. The default is those of WeightsOfRun.
  struct WeightsChoice {
    std::string file = {};  // this file instead
    bool last = false;      // the last step's, even if the best are kept
  };
  // Reads RUN/model.json and the weights. NotFound and InvalidArgument name the
  // file. InvalidArgument also when weights.safetensors of the run does not
  // have the checksum in model.json. A file that the caller names is used
  // without this check.
  static absl::StatusOr<std::unique_ptr<Predictor>> Open(
      const std::string& run, const WeightsChoice& choice);

  const v1::ModelRecord& record() const { return record_; }
  const std::string& weights() const { return weights_; }  // the file's path
  const v1::Preprocessing& preprocessing() const {
    return record_.preprocessing();
  }
  TargetKind target_kind() const;
  // Outputs are [values, outputs] for each sample: the logits of the classes
  // for each label, or else one number for each value.
  int64_t outputs() const;
  int64_t values() const { return model_->output_size() / outputs(); }
  // The shape of the outputs for one sample.
  const Shape& model_shape() const { return model_->output_shape(); }
  // Samples that Gather and Forward take at a time.
  int64_t max_rows() const { return model_->max_rows(); }
  // Whether the output at a position depends on no later positions.
  bool is_causal() const;
  Model* model() { return model_.get(); }
  Ops* ops() { return ops_.get(); }

  // Normalizes rows as the training did. InvalidArgument: they do not fit the
  // model.
  absl::Status Gather(RawData raw, Batch* batch) const;
  // The model's outputs for the batch, valid until the next call.
  absl::Span<const float> Forward(const Batch& batch);

 private:
  explicit Predictor(v1::ModelRecord record);

  absl::Status CreateModel();
  // recorded: the checksum that the weights must have; empty: any.
  absl::Status LoadWeights(const std::string& recorded);

  const v1::ModelRecord record_;
  const Normalization normalization_;
  const std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::string weights_;
  std::vector<float> outputs_;
};

// The class's name in the training data, or its number if it has none there;
// for a text, the token.
std::string ClassName(const v1::ModelRecord& record, int64_t index);

}  // namespace tributary
