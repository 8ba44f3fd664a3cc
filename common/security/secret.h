// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/crypto.h>

#include "absl/strings/string_view.h"

namespace tributary {

// Whether both are equal, in a time that depends only on the length.
inline bool EqualSecrets(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tributary
