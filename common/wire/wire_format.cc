#include "common/wire/wire_format.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace tributary {

const Encoding* EncodingOf(v1::WireFormat wire) {
  const std::string name = v1::WireFormat_Name(wire);
  return FindEncoding(
      absl::AsciiStrToLower(absl::StripPrefix(name, "WIRE_FORMAT_")));
}

}  // namespace tributary
