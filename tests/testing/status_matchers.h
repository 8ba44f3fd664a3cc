// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Debian's Abseil has no status matchers; these are sufficient.
#define TRIBUTARY_ASSERT_OK(expression)                          \
  do {                                                           \
    ASSERT_PRED_FORMAT1(::tributary::testing::IsOk, expression); \
  } while (false)
#define TRIBUTARY_EXPECT_OK(expression)                          \
  do {                                                           \
    EXPECT_PRED_FORMAT1(::tributary::testing::IsOk, expression); \
  } while (false)

namespace tributary::testing {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// A failure names the expression and the status that it gave.
template <typename T>
::testing::AssertionResult IsOk(const char* expression, const T& result) {
  const absl::Status status = StatusOf(result);
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << expression << " gave " << status;
}

// The status has this code, and its message contains this text.
MATCHER_P2(StatusIs, code, piece, "") {
  const absl::Status status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         status.message().find(piece) != absl::string_view::npos;
}

}  // namespace tributary::testing
