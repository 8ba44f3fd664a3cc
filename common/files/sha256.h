// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/files/safetensors.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace tributary {

// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();

  void Update(const void* data, size_t size);
  // Return 32 bytes, or 64 lower-case hexadecimal digits. Either must be the
  // last call.
  std::string Digest();
  std::string HexDigest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// The weights_sha256 of summary.json: the hash of the little-endian float32
// bytes of all parameters, in the order of `specs`, without separators. data[i]
// holds specs[i].size() values.
std::string WeightsSha256(const ParameterSpecs& specs,
                          absl::Span<const float* const> data);

// The same of the tensors of a file, read one after the other. InvalidArgument
// unless the file has exactly the tensors of `specs`.
absl::StatusOr<std::string> WeightsSha256(const SafetensorsReader& reader,
                                          const ParameterSpecs& specs);

}  // namespace tributary
