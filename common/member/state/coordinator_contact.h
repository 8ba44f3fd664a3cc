// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace tributary {

// A member's knowledge of its coordinator: how long it has been silent, and the
// term that distinguishes it from earlier ones. A plain object.
class CoordinatorContact {
 public:
  // address: host:port. The coordinator counts as lost after `lost_micros`
  // without an answer.
  CoordinatorContact(std::string address, uint64_t term, int64_t lost_micros,
                     int64_t now_micros)
      : address_(std::move(address)),
        lost_micros_(lost_micros),
        term_(term),
        last_answer_micros_(now_micros) {}

  // The coordinator has answered, but its answer does not count yet.
  void Touch(int64_t now_micros) { last_answer_micros_ = now_micros; }
  // Takes an answer; call it with terms that are at least term(). Returns
  // whether a new coordinator has taken over.
  bool Take(uint64_t term, int64_t now_micros) {
    last_answer_micros_ = now_micros;
    ++answers_;
    return std::exchange(term_, term) < term;
  }

  uint64_t term() const { return term_; }  // the highest received
  int64_t answers() const { return answers_; }
  int64_t silent_micros(int64_t now_micros) const {
    return now_micros - last_answer_micros_;
  }
  bool IsLost(int64_t now_micros) const {
    return silent_micros(now_micros) >= lost_micros_;
  }
  // Unavailable: "coordinator HOST:PORT has not answered for 6.1 s".
  absl::Status Silence(int64_t now_micros) const {
    return absl::UnavailableError(
        absl::StrFormat("coordinator %s has not answered for %.1f s", address_,
                        static_cast<double>(silent_micros(now_micros)) / 1e6));
  }

 private:
  const std::string address_;
  const int64_t lost_micros_;
  uint64_t term_;
  int64_t last_answer_micros_;
  int64_t answers_ = 0;
};

}  // namespace tributary
