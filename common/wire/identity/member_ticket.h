// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/member_ticket.pb.h"

namespace tributary {

// The key of a job, with which its coordinator signs tickets and its servers
// check them: 32 random bytes. Secret.
std::string NewJobKey();

// The place that a caller has in a job.
struct MemberPlace {
  uint64_t job_id = 0;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t index = 0;        // shard or rank
  uint64_t incarnation = 0;  // 0: of the coordinator

  friend bool operator==(const MemberPlace&, const MemberPlace&) = default;
};

// A ticket for this place: a serialized MemberTicket with an HMAC-SHA256 over
// the place (RFC 2104). The same place and key give the same ticket.
std::string MakeTicket(absl::string_view job_key, const MemberPlace& place);

// The place that a ticket proves. Unauthenticated: the bytes are not a ticket
// that MakeTicket made with this key.
absl::StatusOr<MemberPlace> CheckTicket(absl::string_view job_key,
                                        absl::string_view ticket);

// The place that a ticket claims, without proof. Unauthenticated: the bytes are
// not a ticket.
absl::StatusOr<MemberPlace> ReadTicket(absl::string_view ticket);

}  // namespace tributary
