// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/util/message_differencer.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>

namespace tributary::testing {

// Flips random bits of messages and of memory, reproducibly, and counts the
// results.
class BitFlips {
 public:
  struct Count {
    int flips = 0;
    int refused = 0;
    int same = 0;  // decoded to the same message, so there is nothing to refuse
  };

  // Seeds the random numbers for a message, so that its damage does not depend
  // on the order of messages. Call it first.
  void Begin(const std::string& message);

  // Flips one bit of `n` bytes; every second time, flips 2 to 8 bits or changes
  // any bits of up to 16 successive bytes. At least one bit then differs.
  void Damage(char* data, size_t n);
  // The same for a message; half of the time, in its first header_bytes.
  std::string Damaged(const std::string& message, size_t header_bytes);

  // Count a damaged message or memory under a name.
  void CountRefused(const std::string& name) { ++Add(name).refused; }
  void CountSame(const std::string& name) { ++Add(name).same; }

  // Prints a line for each name; returns the sum.
  Count Print() const;

 private:
  Count& Add(const std::string& name) {
    ++counts_[name].flips;
    return counts_[name];
  }
  size_t Below(size_t n) { return random_() % n; }

  std::mt19937 random_;
  bool many_ = false;  // whether the last damage was of many bits
  std::map<std::string, Count> counts_;
};

// Whether protobuf reads both as the same message. Some bits have no meaning: a
// bool is true for every number except 0, and the last byte of a ten-byte
// number has only one bit that counts.
template <typename Message>
bool SameMessage(const Message& message, const std::string& bytes) {
  Message other;
  return other.ParseFromString(bytes) &&
         google::protobuf::util::MessageDifferencer::Equals(message, other);
}

}  // namespace tributary::testing
