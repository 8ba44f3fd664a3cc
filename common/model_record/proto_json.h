// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"

namespace tributary {

// A message as JSON in the words of the job file: names of fields as in the
// schema, numbers as numbers, enumerations in lower case without their prefix.
// Floats have all their digits. A field of bytes is a text if it is UTF-8, and
// else {"hex": "e9..."}. Fields without a value are left out, except numbers
// and switches without presence.
std::string ProtoToJson(const google::protobuf::Message& message);

// The inverse. InvalidArgument names the field, as in "sequential.0.linear.in:
// wants a whole number, got \"x\"": wrong type, unknown field or enumeration,
// or two members of a oneof.
absl::Status JsonToProto(const nlohmann::ordered_json& json,
                         google::protobuf::Message* message);

}  // namespace tributary
