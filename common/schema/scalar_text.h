// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace tributary {

// How single values of a job file are written, both ways: 4MiB, 0.1, bsp.

// The values of an enumeration as a job file has them: "auto", "cpu", "cuda".
std::vector<std::string> EnumTexts(
    const google::protobuf::EnumDescriptor& type);

// "; did you mean cuda?" after a wrong value of a field with names as values,
// or nothing.
std::string EnumHint(const std::string& text,
                     const google::protobuf::FieldDescriptor& field);

// "a whole number", "auto, cpu or cuda".
std::string WantedScalar(const google::protobuf::FieldDescriptor& field);

// Sets the field, or adds to it when it is repeated, from its text. Returns
// what is wrong, "wants a whole number", or nothing.
std::string SetScalar(const std::string& text, bool quoted,
                      google::protobuf::Message* message,
                      const google::protobuf::FieldDescriptor* field);

// The text that SetScalar reads back to the same value. `index` is the position
// in a repeated field; -1: the field is not repeated.
std::string ScalarText(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor* field,
                       int index);

// The value of a number as a double; 0 when the field is not a number. Whole
// numbers beyond 2^53 are rounded.
double ScalarNumber(const google::protobuf::Message& message,
                    const google::protobuf::FieldDescriptor* field, int index);

// "4MiB", in the largest unit that holds it exactly.
std::string BytesText(uint64_t bytes);

// True when the field's name says that it is a number of bytes.
bool IsBytes(const google::protobuf::FieldDescriptor& field);

// The shortest decimal that reads back to the same double.
std::string NumberText(double number);

}  // namespace tributary
