#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// What is known of a sample between two layers; 0 is not known.
struct LayerWidth {
  int64_t features = 0;       // the last extent
  std::string features_path;  // of the number that says so
  int64_t channels = 0;       // of images
  std::string channels_path;
};

// Checks the layers of a model one after the other: each fits the one before as
// far as numbers in the job tell (the sizes of images come with the data).
class LayerChain {
 public:
  // Both outlive the chain.
  LayerChain(const Places& places, const v1::ModelSpec& model)
      : places_(places), model_(model) {}

  absl::Status Check();

  // Behind the last layer.
  const LayerWidth& width() const { return width_; }
  // The path of the first batch norm whose samples have one value a feature;
  // empty: none is known.
  const std::string& plain_batch_norm() const { return plain_batch_norm_; }

 private:
  using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

  absl::Status EnterAll(const std::string& path, const Layers& layers);
  absl::Status Enter(const std::string& path, const v1::LayerSpec& layer);
  absl::Status EnterConvolution(const std::string& path,
                                const v1::Conv2dSpec& conv);
  absl::Status EnterBatchNorm(const std::string& path,
                              const v1::BatchNormSpec& norm);
  absl::Status EnterResidual(const std::string& path,
                             const v1::ResidualSpec& residual);
  absl::Status EnterTied(const std::string& path,
                         const v1::TiedLinearSpec& tied);
  absl::Status WantFeatures(const std::string& path, int64_t wanted) const;
  absl::Status WantChannels(const std::string& path, int64_t wanted) const;
  void SetFeatures(int64_t features, std::string path);

  const Places& places_;
  const v1::ModelSpec& model_;
  LayerWidth width_;
  bool sequence_ = false;  // a sample is a row of vectors, one a token
  std::string plain_batch_norm_;
  bool has_tied_ = false;
  int num_layers_ = 0;
};

}  // namespace tributary
