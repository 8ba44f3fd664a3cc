#include "common/control/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tributary {

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 || address.size() > 256 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("address must be HOST:PORT, got \"", address, "\""));
  }
  return absl::OkStatus();
}

}  // namespace tributary
