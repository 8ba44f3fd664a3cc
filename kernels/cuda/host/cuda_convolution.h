// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/model_launchers.h"

namespace tributary {

// One convolution of `rows` samples as matrix products, like TiledConvolution
// (kernels/convolution_tiles.h), with two additions: where planes are large,
// one call multiplies all samples of a tile straight from and to the images,
// and a 1 x 1 convolution needs no columns at all. The order of all sums
// depends only on the convolution and the number of rows.
class CudaConvolution {
 public:
  CudaConvolution(CudaOps& ops, const Convolution& c, int64_t rows);

  // In floats. It never shrinks when `rows` grows.
  int64_t scratch_size() const;

  void Forward(const float* x, const float* weight, const float* bias, float* y,
               float* scratch);
  // Computes all gradients except the bias's. dx may be null. d_weight becomes
  // beta d_weight + its gradient.
  void Backward(const float* x, const float* weight, const float* dy, float* dx,
                float beta, float* d_weight, float* scratch);

 private:
  // A tile and its columns in memory.
  struct Tile : ConvolutionTile {
    int64_t pixels = 0;  // of one sample
    ColumnLayout layout;
    int64_t columns() const { return samples * layout.sample; }
  };
  // A matrix for each sample, and how they lie in memory.
  template <typename Element>
  struct Matrices {
    const Element* data;
    ColumnLayout layout;
  };

  // Element: the type of the operands of products, float or uint16_t
  // (bfloat16).
  template <typename Element>
  void ForwardOf(const float* x, const float* weight, const float* bias,
                 float* y, float* scratch);
  template <typename Element>
  void BackwardOf(const float* x, const float* weight, const float* dy,
                  float* dx, float beta, float* d_weight, float* scratch);
  // Compute d_weight from all samples of a tile in one sum, or per sample.
  template <typename Element>
  void DifferentiateWeight(const Tile& tile, const Element* dy,
                           const Element* columns, float beta, float* d_weight);
  void DifferentiateWeightBySample(const Tile& tile, const float* dy,
                                   const Matrices<float>& columns, float beta,
                                   float* d_weight, float* partial);
  // Computes dx from dy, through the columns unless the planes are the columns.
  template <typename Element>
  void DifferentiateInput(const Tile& tile, const Matrices<Element>& weight,
                          const Matrices<Element>& dy, float* dx,
                          float* columns);
  // The filters, rounded if Element is bfloat16.
  template <typename Element>
  Matrices<Element> Weight(const float* weight, float* scratch);
  // The columns of a tile: the input itself or a copy in scratch.
  template <typename Element>
  Matrices<Element> Columns(const Tile& tile, const float* x, float* scratch);

  template <typename Element>
  void Multiply(const Product& product, const Element* a, const Element* b,
                float* c) {
    ops_.Record(ops_.cublas_->Multiply(product, a, b, c));
  }

  template <typename Use>
  void ForEachTile(Use use) const;
  ColumnLayout LayoutOf(int64_t samples, int64_t pixels) const;
  bool sums_by_sample() const;
  int64_t columns_size() const;
  int64_t out_size() const;
  int64_t filters() const { return c_.out_channels / c_.groups; }
  int64_t columns_height() const {
    return c_.in_channels * c_.window.kernel_pixels();
  }
  int64_t weight_size() const { return c_.out_channels * c_.filter_size(); }
  // Where a tile starts in an array of images or of outputs.
  int64_t InputAt(const Tile& tile) const {
    return tile.first_sample * c_.in_size() + tile.first_row * c_.window.width;
  }
  int64_t OutputAt(const Tile& tile) const {
    return tile.first_sample * c_.out_size() +
           tile.first_row * c_.window.out_width();
  }

  CudaOps& ops_;
  const cudaStream_t stream_;
  const Convolution c_;
  const int64_t rows_;
  const bool rounds_;
  bool batched_ = false;  // products per sample
  bool direct_ = false;   // the planes of a sample are its columns
  int64_t most_samples_ = 1, samples_ = 1;  // per tile
  int64_t out_rows_ = 1;  // per tile; all of them if samples_ is above 1
};

}  // namespace tributary
