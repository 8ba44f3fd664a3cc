// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/call_guard.h"

#include <gmock/gmock.h>
#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/security/method_access.h"
#include "common/wire/identity/caller_proof.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

// Callers have no certificate, so that only their tickets say who they are.
class CallGuardTest : public ::testing::Test {
 protected:
  CallGuardTest() { guard_->SetJob({.name = "digits", .id = 5, .key = key_}); }

  std::string Ticket(v1::Role role, uint32_t index) const {
    return MakeTicket(key_, PlaceOf(role, index));
  }
  static MemberPlace PlaceOf(v1::Role role, uint32_t index) {
    return {.job_id = 5, .role = role, .index = index, .incarnation = 1};
  }
  absl::StatusOr<Caller> Call(const std::string& method,
                              const std::string& ticket) const {
    grpc::ServerContext context;
    grpc::testing::ServerContextTestSpouse metadata(&context);
    metadata.AddClientMetadata(kTicketKey, ticket);
    return guard_->Admit(context, method, /*message_bytes=*/0);
  }

  const std::string key_ = NewJobKey();
  const std::shared_ptr<CallGuard> guard_ =
      std::make_shared<CallGuard>(CallGuard::Options());
};

TEST_F(CallGuardTest, WithoutACertificateTheTicketsRoleMustBeAllowed) {
  const std::pair<v1::Role, PeerRole> roles[] = {
      {v1::ROLE_SERVER, PeerRole::kServer},
      {v1::ROLE_WORKER, PeerRole::kWorker},
      {v1::ROLE_COORDINATOR, PeerRole::kCoordinator},
      {v1::ROLE_OBSERVER, PeerRole::kOperator}};
  for (const MethodAccess& access : AllMethodAccess()) {
    if (!access.WantsTicket()) continue;
    for (const auto& [role, peer] : roles) {
      const std::string call =
          absl::StrCat(access.method, " of ", PeerRoleName(peer));
      const absl::StatusOr<Caller> caller =
          Call(access.method, Ticket(role, 3));
      if (access.MayCallWithTicket(peer)) {
        ASSERT_TRUE(caller.ok()) << call << ": " << caller.status();
        EXPECT_TRUE(caller->SpeaksFor(role, 3, 1).ok()) << call;
        EXPECT_FALSE(caller->SpeaksFor(role, 2, 1).ok()) << call;
      } else {
        EXPECT_THAT(caller.status(),
                    StatusIs(absl::StatusCode::kPermissionDenied, ""))
            << call;
      }
    }
    EXPECT_THAT(Call(access.method, Ticket(v1::ROLE_UNSPECIFIED, 3)).status(),
                StatusIs(absl::StatusCode::kPermissionDenied, ""))
        << access.method;
  }
}

// Nothing is known about that job: it may live at another address.
TEST_F(CallGuardTest, ATicketOfAnotherJobDoesNotSayThatThatJobHasEnded) {
  MemberPlace elsewhere = PlaceOf(v1::ROLE_WORKER, 3);
  elsewhere.job_id = 6;
  const absl::Status refused =
      guard_->CheckRank(MakeTicket(key_, elsewhere), 3).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                "this address now serves another job, not the "
                                "one that the caller has a place in"));
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("ended")));
}

// The hello for shared memory brings a ticket and nothing else.
TEST_F(CallGuardTest, ARanksTicketIsOfNoOtherRankAndOfNoOtherRole) {
  const auto place = guard_->CheckRank(Ticket(v1::ROLE_WORKER, 3), 3);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_TRUE(*place == PlaceOf(v1::ROLE_WORKER, 3));
  for (const std::string& other :
       {Ticket(v1::ROLE_WORKER, 2), Ticket(v1::ROLE_SERVER, 3),
        Ticket(v1::ROLE_COORDINATOR, 3), Ticket(v1::ROLE_OBSERVER, 3)}) {
    EXPECT_THAT(guard_->CheckRank(other, 3).status(),
                StatusIs(absl::StatusCode::kPermissionDenied, ""))
        << ReadTicket(other)->role;
  }
}

}  // namespace
}  // namespace tributary
