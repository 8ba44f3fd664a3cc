// SPDX-License-Identifier: Apache-2.0
#include "common/status/about_field.h"

#include "absl/strings/cord.h"
#include "common/status/place.h"

namespace tributary {
namespace {

constexpr char kField[] = "tributary.field";

}  // namespace

absl::Status AboutField(absl::Status status, absl::string_view field) {
  if (status.ok() || field.empty()) return status;
  const std::string inner = FieldOf(status);
  status.SetPayload(kField, absl::Cord(inner.empty() ? std::string(field)
                                                     : JoinPath(field, inner)));
  return status;
}

std::string FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kField);  // absl::optional
  return payload ? std::string(*payload) : "";
}

}  // namespace tributary
