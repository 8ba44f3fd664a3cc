// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"

namespace tributary {
namespace {

class Float32 final : public Encoding {
 public:
  const char* name() const override { return "float32"; }
  int64_t Bytes(int64_t n) const override { return n * int64_t{sizeof(float)}; }
  void Encode(int64_t n, const float* values, char* out) const override {
    std::memcpy(out, values, static_cast<size_t>(Bytes(n)));
  }
  void Decode(int64_t n, const char* in, float* values) const override {
    std::memcpy(values, in, static_cast<size_t>(Bytes(n)));
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    const auto* const x = reinterpret_cast<const UnalignedFloat*>(in);
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x[i])) return i;
    }
    return -1;
  }
};

}  // namespace

void AddFloat32(Encodings* encodings) {
  encodings->push_back(std::make_unique<Float32>());
}

}  // namespace tributary
