#pragma once

#include "kernels/ops.h"
#include "kernels/product_precision.h"

namespace tributary {

// The reference implementation of Ops. Each call does its work on the caller's
// thread before it returns. The files of this folder implement the methods by
// kind.
class CpuOps : public Ops {
 public:
  explicit CpuOps(ProductPrecision precision);

  const char* device_name() const override { return "cpu"; }
  bool is_host() const override { return true; }

  // cpu_ops.cc
  void* Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyIn(void* device, const void* host, size_t bytes) override;
  void CopyOut(void* host, const void* device, size_t bytes) override;
  void Fill(int64_t n, float value, float* y) override;
  DeviceStatus Synchronize() override { return DeviceStatus(); }
  DeviceStatus fault() const override { return DeviceStatus(); }
  void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
            float alpha, const float* a, const float* b, float beta,
            float* c) override;

  // elementwise.cc
  void AddBias(int64_t rows, int64_t cols, const float* bias,
               float* y) override;
  void ColumnSum(int64_t rows, int64_t cols, const float* x, float beta,
                 float* out) override;
  void Add(int64_t rows, int64_t cols, const float* x, const float* b,
           float* y) override;
  void CopyMatrix(int64_t rows, int64_t cols, const float* x, int64_t x_stride,
                  float* y, int64_t y_stride) override;
  void ToIds(int64_t n, const float* x, int64_t first, int64_t count,
             int64_t* ids) override;
  void Activation(ActivationKind kind, int64_t n, const float* x,
                  float* y) override;
  void ActivationBackward(ActivationKind kind, int64_t n, const float* x,
                          const float* y, const float* dy, float* dx) override;
  void Dropout(int64_t rows, int64_t cols, float p, const DropoutKey& key,
               const float* x, float* y) override;

  // convolution.cc
  void ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                  const float* x, float beta, float* out) override;
  int64_t ConvolutionScratch(const Convolution& c, int64_t rows) override;
  void Convolve(const Convolution& c, int64_t rows, const float* x,
                const float* weight, const float* bias, float* y,
                float* scratch) override;
  void ConvolveBackward(const Convolution& c, int64_t rows, const float* x,
                        const float* weight, const float* dy, float* dx,
                        float beta, float* d_weight, float* d_bias,
                        float* scratch) override;

  // pooling.cc
  void MaxPool(const Window& w, int64_t planes, const float* x, float* y,
               int32_t* argmax) override;
  void MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                       const int32_t* argmax, float* dx) override;
  void AveragePool(const Window& w, bool count_include_pad, int64_t planes,
                   const float* x, float* y) override;
  void AveragePoolBackward(const Window& w, bool count_include_pad,
                           int64_t planes, const float* dy, float* dx) override;

  // attention.cc
  int64_t AttentionScratch(const AttentionShape& s) override;
  void Attention(const AttentionShape& s, const float* q, const float* k,
                 const float* v, float* y, float* log_sum,
                 float* scratch) override;
  void AttentionBackward(const AttentionShape& s, const float* q,
                         const float* k, const float* v, const float* y,
                         const float* log_sum, const float* dy, float* dq,
                         float* dk, float* dv, float* scratch) override;

  // rows.cc
  void Softmax(int64_t rows, int64_t cols, const float* x, float* y) override;
  void SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                       const float* dy, float* dx) override;
  void LayerNorm(int64_t rows, int64_t cols, float epsilon, const float* x,
                 const float* gamma, const float* beta, float* y, float* mean,
                 float* rstd) override;
  void LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                         const float* gamma, const float* mean,
                         const float* rstd, const float* dy, float* dx,
                         float* dgamma, float* dbeta) override;
  void GroupNorm(const BatchNormShape& s, int64_t groups, float epsilon,
                 const float* x, const float* gamma, const float* beta,
                 float* y, float* mean, float* rstd) override;
  void GroupNormBackward(const BatchNormShape& s, int64_t groups,
                         const float* x, const float* gamma, const float* mean,
                         const float* rstd, const float* dy, float* dx,
                         float* dgamma, float* dbeta) override;

  // batch_norm.cc
  void BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                 const float* gamma, const float* beta, float* y, float* mean,
                 float* rstd, float* variance) override;
  void BatchNormWith(const BatchNormShape& s, float epsilon, const float* x,
                     const float* gamma, const float* beta, const float* mean,
                     const float* variance, float* y) override;
  void BatchNormBackward(const BatchNormShape& s, const float* x,
                         const float* gamma, const float* mean,
                         const float* rstd, const float* dy, float keep,
                         float* dx, float* dgamma, float* dbeta) override;

  // losses.cc
  void CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                    const int64_t* labels, const CrossEntropyOptions& options,
                    float scale, float* row_loss, float* row_weight,
                    float* d_logits) override;
  void CrossEntropyPart(int64_t rows, const ClassRange& range,
                        const float* logits, const int64_t* labels,
                        float* part) override;
  void CrossEntropyOfParts(int64_t rows, const ClassRange& range,
                           const float* logits, const int64_t* labels,
                           int ranks, const float* parts, float label_smoothing,
                           float scale, float* row_loss,
                           float* d_logits) override;
  void BceWithLogits(int64_t n, const float* logits, const float* targets,
                     float pos_weight, const float* weights, float scale,
                     float* loss, float* d_logits) override;
  void SquaredError(int64_t n, const float* prediction, const float* targets,
                    float scale, float* loss, float* d_prediction) override;

  // embedding.cc
  void Embedding(int64_t count, int64_t dim, const int64_t* ids,
                 const float* table, float* y) override;
  void EmbeddingBackward(int64_t count, int64_t dim, const int64_t* ids,
                         const float* dy, float* d_table) override;
  void EmbeddingBag(const EmbeddingBags& bags, int64_t dim, const float* table,
                    float* y) override;
  void EmbeddingBagBackward(const EmbeddingBags& bags, int64_t dim,
                            const float* table, const float* dy, float* d_table,
                            float* d_weights) override;
  void DotInteraction(int64_t batch, int64_t features, int64_t dim,
                      const float* x, float* y) override;
  void DotInteractionBackward(int64_t batch, int64_t features, int64_t dim,
                              const float* x, const float* dy,
                              float* dx) override;

  // update.cc
  void WeightedSum(int64_t n, int count, const float* const* parts,
                   const float* weights, float* out) override;
  void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                       const float* gradient, const float* weight_in,
                       float* weight_out, float* const* state) override;
  void LambDirection(const OptimizerStep& step, int64_t n,
                     const float* gradient, const float* weight,
                     float* direction, float* const* state) override;
  void ApplyDirection(int64_t n, float rate, const float* direction,
                      const float* weight_in, float* weight_out) override;
  void GrainSquares(int64_t n, int64_t grain, const float* x,
                    double* out) override;

 private:
  bool TakesDirectly(const Convolution& c) const;

  const ProductPrecision precision_;
};

}  // namespace tributary
