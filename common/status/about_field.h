// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Says which field of the job file an error is about, as --set names it. A
// caller that knows more puts its part before: "labels" becomes
// "data.train.npy.labels". No effect on an OK status, or with an empty field.
// Only this process sees the field; gRPC does not carry it.
absl::Status AboutField(absl::Status status, absl::string_view field);
template <typename T>
absl::StatusOr<T> AboutField(absl::StatusOr<T> result,
                             absl::string_view field) {
  if (result.ok()) return result;
  return AboutField(std::move(result).status(), field);
}

// The field of AboutField. Empty: the error names no field.
std::string FieldOf(const absl::Status& status);

}  // namespace tributary
