// SPDX-License-Identifier: Apache-2.0
#include "common/encoding/encoding.h"

#include "common/base/check.h"

namespace tributary {

#define TRIBUTARY_ENCODINGS(Add) void Add(Encodings* encodings);
#include "common/encoding/encodings.inc"
#undef TRIBUTARY_ENCODINGS

const Encodings& AllEncodings() {
  static const Encodings* const encodings = [] {
    auto* made = new Encodings;
#define TRIBUTARY_ENCODINGS(Add) Add(made);
#include "common/encoding/encodings.inc"
#undef TRIBUTARY_ENCODINGS
    return made;
  }();
  return *encodings;
}

const Encoding* FindEncoding(std::string_view name) {
  for (const auto& encoding : AllEncodings()) {
    if (name == encoding->name()) return encoding.get();
  }
  return nullptr;
}

const Encoding& Float32Encoding() {
  static const Encoding* const encoding = FindEncoding("float32");
  TRIBUTARY_CHECK(encoding != nullptr);
  return *encoding;
}

}  // namespace tributary
