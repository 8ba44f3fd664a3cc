#include "common/address.h"

#include <unistd.h>

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

absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

std::string ReachableAddress(absl::string_view listen, int port) {
  const absl::string_view host = HostOf(listen);
  if (host != "0.0.0.0" && host != "[::]" && host != "::" && !host.empty()) {
    return absl::StrCat(host, ":", port);
  }
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) {
    return absl::StrCat("localhost:", port);
  }
  return absl::StrCat(name, ":", port);
}

}  // namespace tributary
