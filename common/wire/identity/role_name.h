// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The word for a process's role in messages, files and metrics.
inline const char* RoleName(v1::Role role) {
  switch (role) {
    case v1::ROLE_SERVER:
      return "server";
    case v1::ROLE_WORKER:
      return "worker";
    case v1::ROLE_COORDINATOR:
      return "coordinator";
    default:
      return "observer";
  }
}

}  // namespace tributary
