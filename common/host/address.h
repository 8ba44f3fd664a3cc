#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// OK when `address` reads host:port with a port of at most 65535.
absl::Status CheckAddress(absl::string_view address);

// Of host:port, for any number of colons in the host; CheckAddress first.
absl::string_view HostOf(absl::string_view address);

// The same without the brackets around an IPv6 address, which no resolver
// takes.
absl::string_view LookupHostOf(absl::string_view address);

// Where others reach whoever listens on `listen` and got `port`: the same host,
// or this machine's name where that is a wildcard.
std::string ReachableAddress(absl::string_view listen, int port);

// This machine's address on the way to `address`, as a number: where that
// machine, and others near it, reach this one. Unavailable: there is no way.
absl::StatusOr<std::string> LocalHostTowards(absl::string_view address);

}  // namespace tributary
