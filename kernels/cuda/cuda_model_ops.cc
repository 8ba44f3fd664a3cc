// SPDX-License-Identifier: Apache-2.0
// The methods of CudaOps for images and attention.
#include "kernels/convolution_tiles.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/launchers.h"

namespace tributary {

// The Device of TiledConvolution for CUDA.
class CudaConvolution {
 public:
  CudaConvolution(CudaOps& ops, cudaStream_t stream)
      : ops_(ops), stream_(stream) {}

  // Enough columns for large products. A batch of small images takes a few
  // tiles.
  int64_t tile_columns() const { return 1 << 16; }

  void Fill(int64_t n, float value, float* y) { ops_.Fill(n, value, y); }
  void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
            float alpha, const float* a, const float* b, float beta, float* c) {
    ops_.Gemm(transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c);
  }
  void Im2Col(const Convolution& c, const ConvolutionTile& tile, const float* x,
              float* columns) {
    ops_.Record(LaunchIm2Col(stream_, c, tile, x, columns));
  }
  void Col2Im(const Convolution& c, const ConvolutionTile& tile,
              const float* columns, float* dx) {
    ops_.Record(LaunchCol2Im(stream_, c, tile, columns, dx));
  }
  void TileOut(const Convolution& c, const ConvolutionTile& tile,
               const float* out, const float* bias, float* y) {
    ops_.Record(LaunchTileOut(stream_, c, tile, out, bias, y));
  }
  void TileIn(const Convolution& c, const ConvolutionTile& tile,
              const float* dy, float* out) {
    ops_.Record(LaunchTileIn(stream_, c, tile, dy, out));
  }

 private:
  CudaOps& ops_;
  const cudaStream_t stream_;
};

int64_t CudaOps::ConvolutionScratch(const Convolution& c, int64_t rows) {
  CudaConvolution device(*this, stream_);
  return TiledConvolution(device, c, rows).scratch_size();
}

void CudaOps::Convolve(const Convolution& c, int64_t rows, const float* x,
                       const float* weight, const float* bias, float* y,
                       float* scratch) {
  CudaConvolution device(*this, Stream());
  TiledConvolution(device, c, rows).Forward(x, weight, bias, y, scratch);
}

void CudaOps::ConvolveBackward(const Convolution& c, int64_t rows,
                               const float* x, const float* weight,
                               const float* dy, float* dx, float beta,
                               float* d_weight, float* d_bias, float* scratch) {
  CudaConvolution device(*this, Stream());
  TiledConvolution(device, c, rows)
      .Backward(x, weight, dy, dx, beta, d_weight, scratch);
  if (d_bias != nullptr) {
    ChannelSum(rows, c.out_channels, c.window.out_pixels(), dy, beta, d_bias);
  }
}

void CudaOps::ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                         const float* x, float beta, float* out) {
  Record(LaunchChannelSum(Stream(), rows, channels, pixels, x, beta, out));
}

void CudaOps::MaxPool(const Window& w, int64_t planes, const float* x, float* y,
                      int32_t* argmax) {
  Record(LaunchMaxPool(Stream(), w, planes, x, y, argmax));
}

void CudaOps::MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                              const int32_t* argmax, float* dx) {
  Record(LaunchMaxPoolBackward(Stream(), w, planes, dy, argmax, dx));
}

void CudaOps::AveragePool(const Window& w, bool count_include_pad,
                          int64_t planes, const float* x, float* y) {
  Record(LaunchAveragePool(Stream(), w, count_include_pad, planes, x, y));
}

void CudaOps::AveragePoolBackward(const Window& w, bool count_include_pad,
                                  int64_t planes, const float* dy, float* dx) {
  Record(LaunchAveragePoolBackward(Stream(), w, count_include_pad, planes, dy,
                                   dx));
}

void CudaOps::BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                        const float* gamma, const float* beta, float* y,
                        float* mean, float* rstd, float* variance) {
  const cudaStream_t stream = Stream();
  double* scratch = Scratch(BatchNormScratchBytes(s));
  if (scratch == nullptr) return;
  Record(LaunchBatchNorm(stream, s, epsilon, x, gamma, beta, y, mean, rstd,
                         variance, scratch));
}

void CudaOps::BatchNormWith(const BatchNormShape& s, float epsilon,
                            const float* x, const float* gamma,
                            const float* beta, const float* mean,
                            const float* variance, float* y) {
  Record(LaunchBatchNormWith(Stream(), s, epsilon, x, gamma, beta, mean,
                             variance, y));
}

void CudaOps::BatchNormBackward(const BatchNormShape& s, const float* x,
                                const float* gamma, const float* mean,
                                const float* rstd, const float* dy, float keep,
                                float* dx, float* dgamma, float* dbeta) {
  const cudaStream_t stream = Stream();
  double* scratch = Scratch(BatchNormScratchBytes(s));
  if (scratch == nullptr) return;
  Record(LaunchBatchNormBackward(stream, s, x, gamma, mean, rstd, dy, keep, dx,
                                 dgamma, dbeta, scratch));
}

// One float per query.
int64_t CudaOps::AttentionScratch(const AttentionShape& s) { return s.rows(); }

void CudaOps::Attention(const AttentionShape& s, const float* q, const float* k,
                        const float* v, float* y, float* log_sum,
                        float* /*scratch*/) {
  Record(LaunchAttention(Stream(), s, rounds(), q, k, v, y, log_sum));
}

void CudaOps::AttentionBackward(const AttentionShape& s, const float* q,
                                const float* k, const float* v, const float* y,
                                const float* log_sum, const float* dy,
                                float* dq, float* dk, float* dv,
                                float* scratch) {
  Record(LaunchAttentionBackward(Stream(), s, rounds(), q, k, v, y, log_sum, dy,
                                 scratch, dq, dk, dv));
}

}  // namespace tributary
