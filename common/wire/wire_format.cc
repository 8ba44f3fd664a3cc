// SPDX-License-Identifier: Apache-2.0
#include "common/wire/wire_format.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace tributary {

const Encoding* EncodingOf(v1::WireFormat wire, double top_k_fraction) {
  const std::string name = v1::WireFormat_Name(wire);
  const Encoding* const encoding = FindEncoding(
      absl::AsciiStrToLower(absl::StripPrefix(name, "WIRE_FORMAT_")));
  return encoding == nullptr ? nullptr : encoding->WithFraction(top_k_fraction);
}

}  // namespace tributary
