// SPDX-License-Identifier: Apache-2.0
#include "common/status/cause.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tributary {
namespace {

constexpr char kDetail[] = "tributary.v1.ErrorDetail";

}  // namespace

absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail) {
  status.SetPayload(kDetail, absl::Cord(detail.SerializeAsString()));
  return status;
}

absl::Status WithCause(absl::Status status, v1::Cause cause) {
  v1::ErrorDetail detail;
  detail.set_cause(cause);
  return WithDetail(std::move(status), detail);
}

v1::ErrorDetail DetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  const auto payload = status.GetPayload(kDetail);  // absl::optional
  if (!payload || !detail.ParseFromString(std::string(*payload))) return {};
  return detail;
}

v1::Cause CauseOf(const absl::Status& status) {
  return DetailOf(status).cause();
}

std::string CauseName(v1::Cause cause) {
  if (cause == v1::CAUSE_UNSPECIFIED || !v1::Cause_IsValid(cause)) return "";
  const std::string word =
      absl::AsciiStrToLower(absl::StripPrefix(v1::Cause_Name(cause), "CAUSE_"));
  return absl::StrReplaceAll(word, {{"_", "-"}});
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status other(status.code(), message);
  status.ForEachPayload(
      [&other](absl::string_view url, const absl::Cord& payload) {
        other.SetPayload(url, payload);
      });
  return other;
}

v1::Wait WaitFor(std::string text) {
  v1::Wait wait;
  wait.set_text(std::move(text));
  return wait;
}

v1::Wait WaitForServer(std::string text, int server) {
  v1::Wait wait = WaitFor(std::move(text));
  wait.set_cause(v1::CAUSE_SERVER);
  wait.set_server(static_cast<uint32_t>(server));
  return wait;
}

v1::Wait WaitForRanks(std::string text, const std::vector<uint32_t>& ranks,
                      int64_t step) {
  v1::Wait wait = WaitFor(std::move(text));
  wait.set_cause(v1::CAUSE_RANKS);
  wait.mutable_ranks()->Add(ranks.begin(), ranks.end());
  wait.set_step(step);
  return wait;
}

}  // namespace tributary
