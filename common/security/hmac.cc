// SPDX-License-Identifier: Apache-2.0
#include "common/security/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace tributary {

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  std::string mac(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  mac.resize(size);
  return mac;
}

}  // namespace tributary
