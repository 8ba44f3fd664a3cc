// SPDX-License-Identifier: Apache-2.0
#include "common/files/sha256.h"

#include <openssl/evp.h>

#include <bit>
#include <map>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {

static_assert(std::endian::native == std::endian::little,
              "float32 bytes are taken as they stand in memory");

void Sha256::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

// OpenSSL fails here only when it runs out of memory.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  TRIBUTARY_CHECK(context_ != nullptr);
  TRIBUTARY_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) ==
                  1);
}

void Sha256::Update(const void* data, size_t size) {
  TRIBUTARY_CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1);
}

std::string Sha256::Digest() {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  TRIBUTARY_CHECK(
      EVP_DigestFinal_ex(context_.get(),
                         reinterpret_cast<unsigned char*>(digest.data()),
                         &size) == 1);
  digest.resize(size);
  return digest;
}

std::string Sha256::HexDigest() { return absl::BytesToHexString(Digest()); }

std::string WeightsSha256(const ParameterSpecs& specs,
                          absl::Span<const float* const> data) {
  TRIBUTARY_CHECK(specs.size() == data.size());
  Sha256 sha256;
  for (size_t i = 0; i < specs.size(); ++i) {
    sha256.Update(data[i],
                  static_cast<size_t>(specs[i].size()) * sizeof(float));
  }
  return sha256.HexDigest();
}

absl::StatusOr<std::string> WeightsSha256(const SafetensorsReader& reader,
                                          const ParameterSpecs& specs) {
  TRIBUTARY_RETURN_IF_ERROR(MatchTensors(reader, specs));
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    places[reader.tensors()[i].name] = i;
  }
  Sha256 sha256;
  std::vector<float> values;
  for (const ParameterSpec& spec : specs) {
    values.resize(static_cast<size_t>(spec.size()));
    TRIBUTARY_RETURN_IF_ERROR(
        reader.Read(places[spec.name], absl::MakeSpan(values)));
    sha256.Update(values.data(), values.size() * sizeof(float));
  }
  return sha256.HexDigest();
}

}  // namespace tributary
