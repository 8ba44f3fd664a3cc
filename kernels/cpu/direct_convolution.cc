// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/direct_convolution.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr int64_t kQuad = 4;  // outputs of a tile in Correlations
constexpr int64_t kTaps = 3;  // taps of a tile in Correlations::gather
constexpr int64_t kRoom = 8;  // floats of the widest vector
// Limits, in floats: the padded planes of one sample, and a backward tile.
constexpr int64_t kLargestSample = 256 * 1024;
constexpr int64_t kTile = 48 * 1024;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The padding at which every tap meets every input.
int64_t ReachHeight(const Window& w) {
  return w.dilation_height * (w.kernel_height - 1);
}
int64_t ReachWidth(const Window& w) {
  return w.dilation_width * (w.kernel_width - 1);
}

int64_t Pitch(const Window& w) {
  return w.width + std::max(2 * w.padding_width, ReachWidth(w));
}

}  // namespace

bool DirectConvolution::Takes(const Convolution& c) {
  const Window& w = c.window;
  if (c.groups != 1 || w.stride_height != 1 || w.stride_width != 1 ||
      w.padding_height > ReachHeight(w) || w.padding_width > ReachWidth(w)) {
    return false;
  }
  const int64_t height =
      w.height + std::max(2 * w.padding_height, ReachHeight(w));
  return 3 * w.out_width() >= 2 * Pitch(w) &&
         (c.in_channels + c.out_channels) * height * Pitch(w) <= kLargestSample;
}

DirectConvolution::DirectConvolution(const Convolution& c, int64_t rows,
                                     const Correlations& correlations)
    : c_(c), rows_(rows), correlations_(correlations), pitch_(Pitch(c.window)) {
  const Window& w = c.window;
  x_ = MakePadded(c.in_channels, c.in_channels, w.height, w.width,
                  w.padding_height, w.padding_width);
  dy_ =
      MakePadded(RoundUp(c.out_channels, kQuad), c.out_channels, w.out_height(),
                 w.out_width(), ReachHeight(w) - w.padding_height,
                 ReachWidth(w) - w.padding_width);
  padded_taps_ = RoundUp(taps(), kTaps);
  const int64_t sample = x_.planes * x_.size + dy_.planes * dy_.size;
  samples_ = std::clamp<int64_t>(kTile / sample, 1, std::max<int64_t>(1, rows));
}

DirectConvolution::Padded DirectConvolution::MakePadded(
    int64_t planes, int64_t used, int64_t height, int64_t width, int64_t top,
    int64_t left) const {
  Padded padded{planes, used, height, width, top, left};
  const int64_t rows = height + 2 * top;
  padded.size =
      RoundUp(rows * pitch_ + ReachWidth(c_.window) + 2 * kRoom, kRoom);
  return padded;
}

int64_t DirectConvolution::OutRow(int64_t height) const {
  return RoundUp(height * pitch_, kRoom) + 2 * kRoom;
}

// Forward: weights, biases, one sample of padded inputs, one of outputs.
// Backward: weights, zero biases, sums, a tile of padded inputs, a tile of
// padded output gradients, one sample of input gradients.
int64_t DirectConvolution::scratch_size() const {
  const int64_t outs = RoundUp(c_.out_channels, kQuad);
  const int64_t ins = RoundUp(c_.in_channels, kQuad);
  const int64_t forward =
      outs * (taps() + 1 + OutRow(dy_.height)) + x_.planes * x_.size;
  const int64_t backward =
      ins * (c_.out_channels * c_.window.kernel_pixels() + 1 +
             OutRow(x_.height)) +
      outs * padded_taps_ * kRoom +
      samples_ * (x_.planes * x_.size + dy_.planes * dy_.size);
  return std::max(forward, backward);
}

std::vector<int64_t> DirectConvolution::Offsets(const Padded& padded,
                                                int64_t stride,
                                                bool flipped) const {
  const Window& w = c_.window;
  std::vector<int64_t> offsets;
  for (int64_t plane = 0; plane < padded.used; ++plane) {
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const int64_t down = flipped ? w.kernel_height - 1 - kh : kh;
        const int64_t right = flipped ? w.kernel_width - 1 - kw : kw;
        offsets.push_back(plane * stride + down * w.dilation_height * pitch_ +
                          right * w.dilation_width);
      }
    }
  }
  return offsets;
}

// to: [planes, tile, size]. Fills the first `samples` of each plane.
void DirectConvolution::Pad(const Padded& padded, int64_t samples, int64_t tile,
                            const float* x, float* to) const {
  const int64_t pixels = padded.height * padded.width;
  to += padded.top * pitch_ + padded.left;
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t plane = 0; plane < padded.used; ++plane, x += pixels) {
      correlations_.copy_rows(padded.height, padded.width, x, padded.width,
                              to + (plane * tile + s) * padded.size, pitch_);
    }
  }
}

void DirectConvolution::PackForward(const float* weight, float* packed) const {
  for (int64_t o = 0; o < c_.out_channels; ++o) {
    for (int64_t k = 0; k < taps(); ++k) {
      packed[(o / kQuad * taps() + k) * kQuad + o % kQuad] =
          weight[o * taps() + k];
    }
  }
}

void DirectConvolution::PackBackward(const float* weight, float* packed) const {
  const int64_t kernel = c_.window.kernel_pixels();
  const int64_t back_taps = c_.out_channels * kernel;
  for (int64_t o = 0; o < c_.out_channels; ++o) {
    for (int64_t i = 0; i < c_.in_channels; ++i) {
      for (int64_t k = 0; k < kernel; ++k) {
        packed[(i / kQuad * back_taps + o * kernel + k) * kQuad + i % kQuad] =
            weight[(o * c_.in_channels + i) * kernel + k];
      }
    }
  }
}

void DirectConvolution::Forward(const float* x, const float* weight,
                                const float* bias, float* y,
                                float* scratch) const {
  const int64_t quads = RoundUp(c_.out_channels, kQuad) / kQuad;
  const int64_t out_row = OutRow(dy_.height);
  float* const packed = scratch;
  float* const biases = packed + quads * kQuad * taps();
  float* const padded = biases + quads * kQuad;
  float* const out = padded + x_.planes * x_.size;
  std::fill(packed, out, 0.0f);
  PackForward(weight, packed);
  if (bias != nullptr) std::copy_n(bias, c_.out_channels, biases);
  const std::vector<int64_t> offsets = Offsets(x_, x_.size, false);
  for (int64_t s = 0; s < rows_; ++s, y += c_.out_size()) {
    Pad(x_, 1, 1, x + s * c_.in_size(), padded);
    correlations_.apply(dy_.height * pitch_, taps(), offsets.data(), padded,
                        quads, packed, biases, out, out_row);
    for (int64_t o = 0; o < c_.out_channels; ++o) {
      correlations_.copy_rows(dy_.height, dy_.width, out + o * out_row, pitch_,
                              y + o * dy_.height * dy_.width, dy_.width);
    }
  }
}

void DirectConvolution::AddWeightGradient(const float* sums, float beta,
                                          float* d_weight) const {
  const int64_t lanes = correlations_.lanes;
  for (int64_t o = 0; o < c_.out_channels; ++o) {
    for (int64_t k = 0; k < taps(); ++k) {
      const float* lane = sums + (o * padded_taps_ + k) * lanes;
      float sum = 0;
      for (int64_t l = 0; l < lanes; ++l) sum += lane[l];
      float& out = d_weight[o * taps() + k];
      out = beta == 0 ? sum : out + sum;
    }
  }
}

void DirectConvolution::Backward(const float* x, const float* weight,
                                 const float* dy, float* dx, float beta,
                                 float* d_weight, float* scratch) const {
  const int64_t quads = RoundUp(c_.out_channels, kQuad) / kQuad;
  const int64_t in_quads = RoundUp(c_.in_channels, kQuad) / kQuad;
  const int64_t back_taps = c_.out_channels * c_.window.kernel_pixels();
  const int64_t in_row = OutRow(x_.height);
  float* const packed = scratch;
  float* const biases = packed + in_quads * kQuad * back_taps;
  float* const sums = biases + in_quads * kQuad;
  float* const padded_x = sums + quads * kQuad * padded_taps_ * kRoom;
  float* const padded_dy = padded_x + samples_ * x_.planes * x_.size;
  float* const in = padded_dy + samples_ * dy_.planes * dy_.size;
  std::fill(packed, in, 0.0f);
  if (dx != nullptr) PackBackward(weight, packed);
  std::vector<int64_t> taps_of_x = Offsets(x_, samples_ * x_.size, false);
  taps_of_x.resize(padded_taps_, taps_of_x.back());
  const std::vector<int64_t> taps_of_dy =
      Offsets(dy_, samples_ * dy_.size, true);
  const float* const upstream = padded_dy + dy_.top * pitch_ + dy_.left;

  for (int64_t first = 0; first < rows_; first += samples_) {
    const int64_t samples = std::min(samples_, rows_ - first);
    Pad(x_, samples, samples_, x + first * c_.in_size(), padded_x);
    Pad(dy_, samples, samples_, dy + first * c_.out_size(), padded_dy);
    correlations_.gather(dy_.height * pitch_, samples, padded_taps_,
                         taps_of_x.data(), padded_x, x_.size, quads, upstream,
                         samples_ * dy_.size, dy_.size, sums);
    for (int64_t s = 0; dx != nullptr && s < samples; ++s) {
      correlations_.apply(x_.height * pitch_, back_taps, taps_of_dy.data(),
                          padded_dy + s * dy_.size, in_quads, packed, biases,
                          in, in_row);
      for (int64_t i = 0; i < c_.in_channels; ++i) {
        correlations_.copy_rows(
            x_.height, x_.width, in + i * in_row, pitch_,
            dx + (first + s) * c_.in_size() + i * x_.height * x_.width,
            x_.width);
      }
    }
  }
  AddWeightGradient(sums, beta, d_weight);
}

}  // namespace tributary
