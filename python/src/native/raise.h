// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Raises the Python exception that tributary/_errors.py makes of a status.
// `during` is the name of the method that failed. Needs the GIL.
[[noreturn]] void Raise(const absl::Status& status, absl::string_view during);

inline void RaiseUnlessOk(const absl::Status& status,
                          absl::string_view during) {
  if (!status.ok()) Raise(status, during);
}

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value, absl::string_view during) {
  if (!value.ok()) Raise(value.status(), during);
  return *std::move(value);
}

}  // namespace tributary
