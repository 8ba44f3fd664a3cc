#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/layers/tensor_cuts.h"
#include "worker/model/layer_factory.h"

namespace tributary {

// The parts of CreateLayer, by family.

using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;

// BLAS counts rows and columns in 32 bits.
inline constexpr int64_t kMaxExtent = 2147483647;

// "[3, 28, 28]".
inline std::string SampleText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// create_parallel_layers.cc
// What this rank has of a layer: of the extent that is cut, [begin, end).
struct LayerPart {
  LayerCut cut = LayerCut::kWhole;
  int64_t extent = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  // size() where the layer is cut so, else `whole`.
  int64_t Columns(int64_t whole) const {
    const bool columns =
        cut == LayerCut::kColumns || cut == LayerCut::kGatherColumns;
    return columns ? size() : whole;
  }
  int64_t Rows(int64_t whole) const {
    return cut == LayerCut::kRows ? size() : whole;
  }
};
LayerPart PartOf(const LayerOptions& options);
// Joins this rank's part of a layer with those of the others, as its cut wants;
// a layer that is whole stays as it is. bias: the name of what is added to
// summed outputs, or empty.
std::unique_ptr<Layer> JoinParts(std::unique_ptr<Layer> part,
                                 const LayerOptions& options,
                                 const std::string& bias);

// create_image_layers.cc
LayerOr CreateConv2d(const v1::Conv2dSpec& spec, const Shape& input_shape,
                     const LayerOptions& options);
LayerOr CreateMaxPool(const v1::MaxPoolSpec& spec, const Shape& input_shape,
                      const LayerOptions& options);
LayerOr CreateAvgPool(const v1::AvgPoolSpec& spec, const Shape& input_shape,
                      const LayerOptions& options);
LayerOr CreateGlobalAvgPool(const Shape& input_shape,
                            const LayerOptions& options);
LayerOr CreateBatchNorm(const v1::BatchNormSpec& spec, const Shape& input_shape,
                        const LayerOptions& options);

// create_sequence_layers.cc
LayerOr CreateEmbedding(const v1::EmbeddingSpec& spec, const Shape& input_shape,
                        const LayerOptions& options);
LayerOr CreatePositionEmbedding(const v1::PositionEmbeddingSpec& spec,
                                const Shape& input_shape,
                                const LayerOptions& options);
LayerOr CreateAttention(const v1::AttentionSpec& spec, const Shape& input_shape,
                        const LayerOptions& options);
LayerOr CreateTiedLinear(const v1::TiedLinearSpec& spec,
                         const Shape& input_shape, const LayerOptions& options);

}  // namespace tributary
