// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/place.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/utf8.h"
#include "common/wire/identity/role_name.h"

namespace tributary {

std::string ShortSentence(absl::string_view text) {
  return std::string(CutUtf8(text, Place::kMaxSentenceBytes));
}

MemberFigures MemberFigures::Of(const v1::HeartbeatRequest& heartbeat,
                                size_t num_workers) {
  v1::Wait wait = heartbeat.wait();
  wait.set_text(ShortSentence(wait.text()));
  wait.mutable_ranks()->Truncate(
      std::min(wait.ranks_size(), static_cast<int>(num_workers)));
  return {
      .wait = std::move(wait),
      .device = std::string(CutUtf8(heartbeat.device(), Place::kMaxNameBytes)),
      .bytes_sent = heartbeat.bytes_sent(),
      .bytes_received = heartbeat.bytes_received(),
      .peak_memory_bytes = heartbeat.peak_memory_bytes(),
      .optimizer_seconds = heartbeat.optimizer_seconds()};
}

std::string Place::ShortName() const {
  return absl::StrCat(RoleName(role), " ", index);
}

std::string Place::Name() const {
  return absl::StrCat(ShortName(), " (", holder.host(), ", pid ", holder.pid(),
                      ")");
}

}  // namespace tributary
