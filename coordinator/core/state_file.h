// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// Checked returns a CRC-32C of the message, then the message. ReadChecked
// returns false if `bytes` do not come from Checked.
std::string Checked(const google::protobuf::MessageLite& message);
bool ReadChecked(absl::string_view bytes,
                 google::protobuf::MessageLite* message);

// Returns the contents of coordinator.state, in the format of Checked.
std::string EncodeState(const v1::CoordinatorState& state);

// Decodes the contents of coordinator.state. DataLoss: `file` is damaged.
// InvalidArgument: it is intact, but no coordinator can continue from it; the
// message names what was wanted and what was found.
absl::StatusOr<v1::CoordinatorState> DecodeState(const std::string& file,
                                                 absl::string_view bytes);

}  // namespace tributary
