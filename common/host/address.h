// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// This machine's name, or that of its container; "unknown" if it has none.
std::string HostName();

// OK when `address` is host:port with a port of at most 65535.
absl::Status CheckAddress(absl::string_view address);

// The host of host:port; the host may contain colons. Call CheckAddress first.
absl::string_view HostOf(absl::string_view address);

// The host without the brackets around an IPv6 address, which resolvers do not
// accept.
absl::string_view LookupHostOf(absl::string_view address);

// Whether only processes of this machine reach a listener at host:port:
// "localhost", 127.0.0.0/8 or ::1. Call CheckAddress first.
bool IsLoopback(absl::string_view address);

// The address under which other machines reach a listener on `listen` that got
// `port`: the same host, or this machine's name if the host is a wildcard.
std::string ReachableAddress(absl::string_view listen, int port);

// This machine's numeric address on the route to `address`, at which machines
// on that side can reach this one. Unavailable when there is no route.
absl::StatusOr<std::string> LocalHostTowards(absl::string_view address);

}  // namespace tributary
