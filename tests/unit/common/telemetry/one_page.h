// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/telemetry/http_listener.h"

namespace tributary::testing {

// A listener on a free port with one page: "/page".
inline HttpListener::Options OnePage() {
  const auto page = [] {
    return HttpAnswer{.content_type = "text/x", .body = "hello\n"};
  };
  return {.listen = "127.0.0.1:0", .pages = {{"/page", page}}};
}

}  // namespace tributary::testing
