// SPDX-License-Identifier: Apache-2.0
// The receiver of a refused call only receives its headers: the call is
// answered while its message has not even begun.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/security/method_access.h"
#include "common/wire/deadline.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/identity/caller_proof.h"
#include "server/service/parameter_server.h"
#include "tests/testing/ready_channel.h"

namespace tributary {
namespace {

class HeaderGateTest : public ::testing::Test {
 protected:
  HeaderGateTest() {
    guard_ = std::make_shared<CallGuard>(
        CallGuard::Options{.tls = Tls(kServer), .clock = &clock_});
    guard_->SetJob({"digits", kJobId, key_});
    server_ = ParameterServer::Start({.guard = guard_}).value();
  }

  std::shared_ptr<const PeerCredentials> Tls(PeerRole role) const {
    const absl::Time hour_ago = absl::Now() - absl::Hours(1);
    return PeerCredentials::FromPem(authority_.ToPem()->certificate,
                                    authority_
                                        .Issue({.identity = {"digits", role}},
                                               {hour_ago, absl::Hours(2)})
                                        .value())
        .value();
  }

  // Returns the answer to a call's headers when nothing follows within `wait`.
  grpc::Status AnswerToHeaders(const std::string& method,
                               const CallerProof& proof, absl::Duration wait) {
    grpc::GenericStub stub(
        testing::ReadyChannel(absl::StrCat("127.0.0.1:", server_->port()),
                              proof.ForChannel(PeerRole::kServer)));
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(wait));
    proof.AddTo(&context);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    grpc::Status status;
    call->StartCall(nullptr);
    call->Finish(&status, &status);
    void* tag = nullptr;
    for (bool ok = false; tag == nullptr && queue.Next(&tag, &ok);) {
    }
    queue.Shutdown();
    for (bool ok = false; queue.Next(&tag, &ok);) {
    }
    return status;
  }

  static constexpr PeerRole kServer = PeerRole::kServer;
  static constexpr uint64_t kJobId = 77;
  const std::string key_ = NewJobKey();
  const CertificateAuthority authority_ =
      CertificateAuthority::Create(
          {absl::Now() - absl::Hours(1), absl::Hours(24)})
          .value();
  ManualClock clock_;
  std::shared_ptr<CallGuard> guard_;
  std::unique_ptr<ParameterServer> server_;
};

TEST_F(HeaderGateTest, RefusesBeforeTheMessage) {
  const CallerProof worker(Tls(PeerRole::kWorker), "");
  const CallerProof forged = worker.WithTicket(
      MakeTicket(NewJobKey(), {kJobId, v1::ROLE_WORKER, 0, 1}));
  int asked = 0;
  for (const MethodAccess& access : AllMethodAccess()) {
    if (access.method.find("ParameterService") == std::string::npos) continue;
    const bool wants_ticket =
        access.WantsTicket() && access.MayCall(PeerRole::kWorker);
    for (const CallerProof& proof : {worker, forged}) {
      const grpc::Status status =
          AnswerToHeaders(access.method, proof, absl::Seconds(20));
      EXPECT_EQ(status.error_code(), wants_ticket
                                         ? grpc::StatusCode::UNAUTHENTICATED
                                         : grpc::StatusCode::PERMISSION_DENIED)
          << access.method << ": " << status.error_message();
      ++asked;
    }
  }
  EXPECT_GE(asked, 8);
}

// Without this, a server that refuses everything would pass the test above.
TEST_F(HeaderGateTest, WaitsForTheMessageOfAMember) {
  const CallerProof member =
      CallerProof(Tls(PeerRole::kWorker), "")
          .WithTicket(MakeTicket(key_, {kJobId, v1::ROLE_WORKER, 0, 1}));
  EXPECT_EQ(AnswerToHeaders("/tributary.v1.ParameterService/PushPull", member,
                            absl::Milliseconds(300))
                .error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(HeaderGateTest, RefusesCallsOfACallerWhoseOthersDoNotArrive) {
  guard_->connections()->SetLimits({.arriving = 3});
  const CallerProof worker(Tls(PeerRole::kWorker), "");
  const auto answer = [&](uint32_t rank, absl::Duration wait) {
    return AnswerToHeaders("/tributary.v1.ParameterService/PushPull",
                           worker.WithTicket(MakeTicket(
                               key_, {kJobId, v1::ROLE_WORKER, rank, 1})),
                           wait)
        .error_code();
  };
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(answer(0, absl::Milliseconds(300)),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(answer(0, absl::Seconds(20)), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(answer(1, absl::Milliseconds(300)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  clock_.AdvanceMicros(3'400'000);  // gives one of them back
  EXPECT_EQ(answer(0, absl::Milliseconds(300)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace tributary
