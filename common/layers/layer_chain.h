// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The extents of a sample between two layers, as far as the job file tells; 0
// means unknown.
struct LayerWidth {
  int64_t features = 0;       // the last extent
  std::string features_path;  // of the field that gives `features`
  int64_t channels = 0;       // of images
  std::string channels_path;
};

// Checks the layers of a model one after the other: each must fit the one
// before, as far as numbers in the job tell (the sizes of images come with the
// data). The layers' kinds do the checking, with the second group of methods.
class LayerChain {
 public:
  // Both outlive the chain.
  LayerChain(const Places& places, const v1::ModelSpec& model)
      : places_(places), model_(model) {}

  absl::Status Check();

  // The width after the last layer that was checked.
  const LayerWidth& width() const { return width_; }
  // The path of the first layer that takes statistics of a batch in which each
  // sample has one value of a feature, so that the batch must have at least two
  // samples; empty: no layer does.
  const std::string& batch_statistics() const { return batch_statistics_; }

  const v1::ModelSpec& model() const { return model_; }
  bool IsFirst(const std::string& path) const;
  // True if a sample is a row of vectors, one for each token.
  bool sequence() const { return sequence_; }
  void set_sequence(bool sequence) { sequence_ = sequence; }

  // Returns InvalidArgument with the place of the value at `path`, the path and
  // the words.
  template <typename... Words>
  absl::Status Error(const std::string& path, const Words&... words) const {
    return places_.Error(path, path, words...);
  }
  // InvalidArgument: the layer before makes another number of features, or of
  // channels, than the field at `path` wants.
  absl::Status WantFeatures(const std::string& path, int64_t wanted) const;
  absl::Status WantChannels(const std::string& path, int64_t wanted) const;
  // Set the extents of the output. `path` is the field that gives them.
  void SetFeatures(int64_t features, std::string path);
  void SetChannels(int64_t channels, std::string path);
  void ForgetFeatures() { width_.features = 0; }
  void ForgetWidth() { width_ = LayerWidth(); }
  void NoteBatchStatistics(const std::string& path) {
    if (batch_statistics_.empty()) batch_statistics_ = path;
  }
  // Ties a layer to the embedding. False if another layer is tied already.
  bool Tie() { return !std::exchange(has_tied_, true); }

 private:
  using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

  absl::Status EnterAll(const std::string& path, const Layers& layers);
  absl::Status Enter(const std::string& path, const v1::LayerSpec& layer);
  absl::Status EnterResidual(const std::string& path,
                             const v1::ResidualSpec& residual);

  const Places& places_;
  const v1::ModelSpec& model_;
  LayerWidth width_;
  bool sequence_ = false;
  std::string batch_statistics_;
  bool has_tied_ = false;
  int num_layers_ = 0;
};

}  // namespace tributary
