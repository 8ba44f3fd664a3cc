// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/member_ticket.h"

#include <openssl/rand.h>

#include <random>

#include "common/security/hmac.h"
#include "common/security/secret.h"

namespace tributary {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kMacBytes = 32;
// Keeps a ticket's HMAC apart from any other use of the key.
constexpr absl::string_view kPurpose = "tributary member ticket 1";

void Append(uint64_t value, int bytes, std::string* text) {
  for (int i = 0; i < bytes; ++i) {
    text->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

std::string MacOf(absl::string_view job_key, const MemberPlace& place) {
  std::string text(kPurpose);
  Append(place.job_id, 8, &text);
  Append(static_cast<uint64_t>(place.role), 4, &text);
  Append(place.index, 4, &text);
  Append(place.incarnation, 8, &text);
  return HmacSha256(job_key, text);
}

absl::Status NoTicket() { return absl::UnauthenticatedError("no ticket"); }

absl::StatusOr<v1::MemberTicket> Parse(absl::string_view ticket) {
  v1::MemberTicket message;
  if (!message.ParseFromArray(ticket.data(), static_cast<int>(ticket.size()))) {
    return NoTicket();
  }
  return message;
}

MemberPlace PlaceOf(const v1::MemberTicket& ticket) {
  return {.job_id = ticket.job_id(),
          .role = ticket.role(),
          .index = ticket.index(),
          .incarnation = ticket.incarnation()};
}

}  // namespace

std::string NewJobKey() {
  std::string key(kKeyBytes, '\0');
  auto* const bytes = reinterpret_cast<unsigned char*>(key.data());
  if (RAND_bytes(bytes, static_cast<int>(key.size())) != 1) {
    std::random_device chance;  // getrandom(2), too
    for (char& byte : key) byte = static_cast<char>(chance());
  }
  return key;
}

std::string MakeTicket(absl::string_view job_key, const MemberPlace& place) {
  v1::MemberTicket ticket;
  ticket.set_job_id(place.job_id);
  ticket.set_role(place.role);
  ticket.set_index(place.index);
  ticket.set_incarnation(place.incarnation);
  ticket.set_mac(MacOf(job_key, place));
  return ticket.SerializeAsString();
}

absl::StatusOr<MemberPlace> CheckTicket(absl::string_view job_key,
                                        absl::string_view ticket) {
  const absl::StatusOr<v1::MemberTicket> message = Parse(ticket);
  // Without a key every caller could compute the HMAC.
  if (!message.ok() || job_key.size() != kKeyBytes) return NoTicket();
  const MemberPlace place = PlaceOf(*message);
  const std::string mac = MacOf(job_key, place);
  if (mac.size() != kMacBytes || !EqualSecrets(mac, message->mac())) {
    return NoTicket();
  }
  return place;
}

absl::StatusOr<MemberPlace> ReadTicket(absl::string_view ticket) {
  const absl::StatusOr<v1::MemberTicket> message = Parse(ticket);
  if (!message.ok()) return message.status();
  return PlaceOf(*message);
}

}  // namespace tributary
