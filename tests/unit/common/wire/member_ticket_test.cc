// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/member_ticket.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr MemberPlace kPlace = {
    .job_id = 7, .role = v1::ROLE_WORKER, .index = 3, .incarnation = 12};

TEST(MemberTicketTest, ProvesThePlaceItWasMadeFor) {
  const std::string key = NewJobKey();
  const auto place = CheckTicket(key, MakeTicket(key, kPlace));
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(*place, kPlace);
  EXPECT_EQ(MakeTicket(key, kPlace), MakeTicket(key, kPlace));
}

TEST(MemberTicketTest, AnotherKeyProvesNothing) {
  const std::string ticket = MakeTicket(NewJobKey(), kPlace);
  EXPECT_THAT(CheckTicket(NewJobKey(), ticket).status(),
              StatusIs(absl::StatusCode::kUnauthenticated, ""));
  EXPECT_THAT(CheckTicket("", MakeTicket("", kPlace)).status(),
              StatusIs(absl::StatusCode::kUnauthenticated, ""));
}

TEST(MemberTicketTest, EveryChangedFieldIsNoticed) {
  const std::string key = NewJobKey();
  v1::MemberTicket ticket;
  ASSERT_TRUE(ticket.ParseFromString(MakeTicket(key, kPlace)));
  std::vector<v1::MemberTicket> forged(5, ticket);
  forged[0].set_job_id(8);
  forged[1].set_role(v1::ROLE_SERVER);
  forged[2].set_index(2);
  forged[3].set_incarnation(13);
  forged[4].set_mac(ticket.mac().substr(1));
  for (const v1::MemberTicket& each : forged) {
    EXPECT_FALSE(CheckTicket(key, each.SerializeAsString()).ok())
        << each.ShortDebugString();
  }
  EXPECT_TRUE(CheckTicket(key, ticket.SerializeAsString()).ok());
}

TEST(MemberTicketTest, EveryFlippedBitIsNoticed) {
  const std::string key = NewJobKey();
  const std::string ticket = MakeTicket(key, kPlace);
  for (size_t bit = 0; bit < 8 * ticket.size(); ++bit) {
    std::string other = ticket;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(CheckTicket(key, other).ok()) << "bit " << bit;
  }
  for (size_t size = 0; size < ticket.size(); ++size) {
    EXPECT_FALSE(CheckTicket(key, ticket.substr(0, size)).ok());
  }
}

// RFC 2104 with SHA-256, computed with Python's hmac module:
//   hmac.new(bytes(range(32)), b"tributary member ticket 1" +
//            struct.pack("<QIIQ", 7, 2, 3, 12), "sha256").hexdigest()
TEST(MemberTicketTest, TheHmacIsThatOfTheRfc) {
  std::string key;
  for (char byte = 0; byte < 32; ++byte) key.push_back(byte);
  v1::MemberTicket ticket;
  ASSERT_TRUE(ticket.ParseFromString(MakeTicket(key, kPlace)));
  std::string hex;
  for (const char byte : ticket.mac()) {
    char text[3];
    snprintf(text, sizeof(text), "%02x", static_cast<unsigned char>(byte));
    hex += text;
  }
  EXPECT_EQ(hex,
            "95d18af38189f4490d2bc7b729b7a71fc3aa3780a85dd85257cbfd580650ae25");
}

}  // namespace
}  // namespace tributary
