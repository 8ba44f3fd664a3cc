// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status from the calling function when it is not OK.
#define TRIBUTARY_RETURN_IF_ERROR(expression)         \
  do {                                                \
    if (absl::Status tributary_status = (expression); \
        !tributary_status.ok()) {                     \
      return tributary_status;                        \
    }                                                 \
  } while (false)

// Returns the status from the calling function, or assigns the value to
// `target`.
#define TRIBUTARY_ASSIGN_OR_RETURN(target, expression) \
  TRIBUTARY_ASSIGN_OR_RETURN_IMPL(                     \
      TRIBUTARY_CONCAT(tributary_status_or_, __LINE__), target, expression)
#define TRIBUTARY_ASSIGN_OR_RETURN_IMPL(holder, target, expression) \
  auto holder = (expression);                                       \
  if (!holder.ok()) return holder.status();                         \
  target = *std::move(holder)
#define TRIBUTARY_CONCAT(a, b) TRIBUTARY_CONCAT_IMPL(a, b)
#define TRIBUTARY_CONCAT_IMPL(a, b) a##b
