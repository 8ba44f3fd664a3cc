// SPDX-License-Identifier: Apache-2.0
// Every method of every service, called by those who may not call it: checks
// the code of the refusal, and that it reveals nothing. The methods come from
// the services' descriptors, so a new method is tested without being named
// here.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/security/method_access.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "common/wire/identity/access.h"
#include "common/wire/identity/member_ticket.h"
#include "coordinator/service/coordinator.h"
#include "server/service/parameter_server.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/temporary_folder.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {
namespace {

using google::protobuf::Message;
using grpc::StatusCode;
using grpc::internal::RpcMethod;

constexpr char kJob[] = "digits";
constexpr char kToken[] = "a token of this job, 32 characters or more";
constexpr char kOtherToken[] = "a token of another job, 32 characters or so";
constexpr uint64_t kIncarnation = 5;

// The sentences that refused callers may read.
const std::set<std::string> kSentences = {
    "it is not proved who calls", "the caller may not do this",
    "this address now serves another job, not the one that the caller has a "
    "place in; if the coordinator of that job had this address, it is gone: "
    "start it again with its own --run-dir"};

std::string CodeName(StatusCode code) {
  return std::string(
      absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
}

std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto* file : {v1::RegisterRequest::descriptor()->file(),
                           v1::PullRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

std::string PathOf(const google::protobuf::MethodDescriptor* method) {
  return absl::StrCat("/", method->service()->full_name(), "/", method->name());
}

template <typename Request>
std::string Signed(const Message& message) {
  Request request;
  request.CopyFrom(message);
  SignHeader(&request);
  return request.SerializeAsString();
}

// A request in the name of member 0, which holds its place as kIncarnation.
// Sets *names_place if the request names a place.
std::string RequestOf(const google::protobuf::MethodDescriptor* method,
                      bool* names_place) {
  const std::unique_ptr<Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(method->input_type())
          ->New());
  const auto* reflection = message->GetReflection();
  const auto* incarnation =
      message->GetDescriptor()->FindFieldByName("incarnation");
  *names_place = incarnation != nullptr;
  if (*names_place) {
    reflection->SetUInt64(message.get(), incarnation, kIncarnation);
  }
  if (const auto* role = message->GetDescriptor()->FindFieldByName("role")) {
    reflection->SetEnumValue(message.get(), role, v1::ROLE_WORKER);
  }
  if (method->name() == "PushPull") {
    return Signed<v1::PushPullRequest>(*message);
  }
  if (method->name() == "ReadClock") return Signed<v1::ClockRequest>(*message);
  return message->SerializeAsString();
}

class AccessTableTest : public testing::TemporaryFolderTest {
 protected:
  AccessTableTest()
      : authority_(NewAuthority()),
        other_(NewAuthority()),
        root_(authority_.ToPem()->certificate) {
    StartCoordinator(/*token=*/"", &coordinator_);
    StartServer(/*token=*/"", &server_);
    StartCoordinator(kToken, &token_coordinator_);
    StartServer(kToken, &token_server_);
  }

  static CertificateAuthority NewAuthority() {
    return CertificateAuthority::Create(
               {absl::Now() - absl::Hours(100), absl::Hours(200)})
        .value();
  }
  static Credential Issue(const CertificateAuthority& authority, PeerRole role,
                          const std::string& job = kJob,
                          absl::Duration valid = absl::Hours(200)) {
    return authority
        .Issue({.identity = {job, role}},
               {absl::Now() - absl::Hours(100), valid})
        .value();
  }
  std::shared_ptr<const PeerCredentials> Tls(const Credential& own) const {
    return PeerCredentials::FromPem(root_, own).value();
  }
  CallerProof With(PeerRole role) const {
    return CallerProof(Tls(Issue(authority_, role)), "");
  }
  // A proof that trusts the authority, but shows no certificate.
  CallerProof Nobody(const std::string& token = "") {
    std::ofstream(Path("ca.crt")) << root_;
    return CallerProof(PeerCredentials::AuthorityFromFolder(Path("")).value(),
                       token);
  }

  void StartCoordinator(const std::string& token,
                        std::unique_ptr<Coordinator>* coordinator) {
    Coordinator::Options options;
    options.job.set_name(kJob);
    options.job.mutable_cluster()->set_servers(1);
    options.job.mutable_cluster()->set_workers(2);
    options.job.mutable_strategy()->mutable_parameter_server();
    const auto guard = std::make_shared<CallGuard>(CallGuard::Options{
        .tls = Tls(Issue(authority_, PeerRole::kCoordinator)), .token = token});
    options.calls.guard = guard;
    options.calls.reflection = true;
    *coordinator = Coordinator::Start(std::move(options)).value();
    guard->SetJob(JobOf());  // with a key that this test knows
  }
  void StartServer(const std::string& token,
                   std::unique_ptr<ParameterServer>* server) {
    const auto guard = std::make_shared<CallGuard>(CallGuard::Options{
        .tls = Tls(Issue(authority_, PeerRole::kServer)), .token = token});
    guard->SetJob(JobOf());
    *server =
        ParameterServer::Start({.guard = guard, .reflection = true}).value();
  }
  CallGuard::Job JobOf() const { return {kJob, kJobId, key_}; }

  std::string Ticket(v1::Role role, uint32_t index, uint64_t job = kJobId,
                     uint64_t incarnation = kIncarnation) const {
    return MakeTicket(key_, {job, role, index, incarnation});
  }

  // Calls a method of the processes that take only certificates or, with
  // `tokens`, of those that also take tokens. A busy machine may need several
  // attempts to connect.
  grpc::Status Call(const std::string& method, const CallerProof& proof,
                    const std::string& request = "", bool tokens = false) {
    return Attempt(method, proof, request, tokens, /*wait_for_ready=*/true);
  }
  // Like Call, for a proof that the handshake refuses.
  grpc::Status Knock(const std::string& method, const CallerProof& proof) {
    return Attempt(method, proof, "", /*tokens=*/false,
                   /*wait_for_ready=*/false);
  }
  grpc::Status Attempt(const std::string& method, const CallerProof& proof,
                       const std::string& request, bool tokens,
                       bool wait_for_ready) {
    const bool at_server = absl::StrContains(method, "ParameterService");
    const ParameterServer& server = tokens ? *token_server_ : *server_;
    const Coordinator& coordinator =
        tokens ? *token_coordinator_ : *coordinator_;
    const auto channel =
        DataChannel(at_server ? absl::StrCat("127.0.0.1:", server.port())
                              : coordinator.address(),
                    proof.ForChannel(at_server ? PeerRole::kServer
                                               : PeerRole::kCoordinator));
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(absl::Minutes(1)));
    context.set_wait_for_ready(wait_for_ready);
    proof.AddTo(&context);
    const grpc::Slice slice(request);
    grpc::ByteBuffer bytes(&slice, 1), answer;
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
            channel.get(),
            RpcMethod(method.c_str(), RpcMethod::SERVER_STREAMING), &context,
            bytes));
    const bool answered = reader->Read(&answer);
    // An admitted watch reports each change and never ends by itself.
    const bool watches = answered && absl::EndsWith(method, "/Watch");
    if (watches) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return watches ? grpc::Status::OK : status;
  }

  // Expects a refusal with this code and nothing else to read.
  std::string ExpectRefused(const grpc::Status& status, StatusCode code) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    if (code != StatusCode::UNAVAILABLE) {
      EXPECT_TRUE(kSentences.count(status.error_message()))
          << status.error_message();
    }
    return CodeName(status.error_code());
  }
  static bool Refused(const grpc::Status& status) {
    return kSentences.count(status.error_message()) > 0 ||
           status.error_code() == StatusCode::UNAVAILABLE;
  }

  static constexpr uint64_t kJobId = 77;
  const std::string key_ = NewJobKey();
  const CertificateAuthority authority_;
  const CertificateAuthority other_;
  const std::string root_;
  std::unique_ptr<Coordinator> coordinator_, token_coordinator_;
  std::unique_ptr<ParameterServer> server_, token_server_;
};

TEST_F(AccessTableTest, StrangersAreRefusedEverywhere) {
  const CallerProof foreign(
      PeerCredentials::FromPem(root_, Issue(other_, PeerRole::kWorker)).value(),
      "");
  const CallerProof expired(
      Tls(Issue(authority_, PeerRole::kWorker, kJob, absl::Hours(50))), "");
  const CallerProof elsewhere(
      Tls(Issue(authority_, PeerRole::kWorker, "letters")), "");
  printf("%-48s %-13s %-13s %-13s %-13s %-16s %s\n", "method", "no certificate",
         "other CA's", "expired", "other job's", "no token",
         "other job's token");
  for (const MethodAccess& access : AllMethodAccess()) {
    const std::string& m = access.method;
    const std::vector<std::string> codes = {
        ExpectRefused(Knock(m, Nobody()), StatusCode::UNAVAILABLE),
        ExpectRefused(Knock(m, foreign), StatusCode::UNAVAILABLE),
        ExpectRefused(Knock(m, expired), StatusCode::UNAVAILABLE),
        ExpectRefused(Knock(m, elsewhere), StatusCode::UNAVAILABLE),
        ExpectRefused(Call(m, Nobody(), "", /*tokens=*/true),
                      StatusCode::UNAUTHENTICATED),
        ExpectRefused(Call(m, Nobody(kOtherToken), "", /*tokens=*/true),
                      StatusCode::UNAUTHENTICATED)};
    printf("%-48s %-13s  %-13s %-13s %-13s %-16s %s\n", m.c_str(),
           codes[0].c_str(), codes[1].c_str(), codes[2].c_str(),
           codes[3].c_str(), codes[4].c_str(), codes[5].c_str());
  }
}

TEST_F(AccessTableTest, EachRoleMayCallItsOwnMethodsAlone) {
  printf("%-62s", "method");
  for (const PeerRole role : AllPeerRoles()) {
    printf(" %-18s", PeerRoleName(role).c_str());
  }
  printf("\n");
  for (const MethodAccess& access : AllMethodAccess()) {
    printf("%-62s", access.method.c_str());
    for (const PeerRole role : AllPeerRoles()) {
      const grpc::Status status = Call(access.method, With(role));
      if (!access.MayCall(role)) {
        printf(" %-18s",
               ExpectRefused(status, StatusCode::PERMISSION_DENIED).c_str());
      } else if (access.WantsTicket()) {
        printf(" %-18s",
               ExpectRefused(status, StatusCode::UNAUTHENTICATED).c_str());
      } else {
        // For Register, the certificate's role and the request's differ.
        const bool registers = absl::EndsWith(access.method, "/Register");
        EXPECT_EQ(Refused(status), registers) << status.error_message();
        printf(" %-18s", "yes");
      }
    }
    printf("\n");
  }
}

TEST_F(AccessTableTest, ATicketIsOfOnePlace) {
  printf("%-48s %-16s %-16s %-18s %-18s %-20s %s\n", "method", "no ticket",
         "forged", "another role's", "another rank's", "another job's", "own");
  for (const auto* method : AllMethods()) {
    const std::string path = PathOf(method);
    const MethodAccess* const access = AccessTo(path);
    ASSERT_NE(access, nullptr) << path;
    if (!access->WantsTicket()) continue;
    bool names_place = false;
    const std::string request = RequestOf(method, &names_place);
    const bool server = access->MayCallWithTicket(PeerRole::kServer) &&
                        !access->MayCallWithTicket(PeerRole::kWorker);
    const v1::Role own = server ? v1::ROLE_SERVER : v1::ROLE_WORKER;
    const v1::Role other = server ? v1::ROLE_WORKER : v1::ROLE_SERVER;
    const CallerProof peer =
        With(server ? PeerRole::kServer : PeerRole::kWorker);
    const auto call = [&](const std::string& ticket) {
      return Call(path, peer.WithTicket(ticket), request);
    };
    const std::string forged =
        MakeTicket(NewJobKey(), {kJobId, own, 0, kIncarnation});
    const std::string no = ExpectRefused(call(""), StatusCode::UNAUTHENTICATED);
    const std::string wrong =
        ExpectRefused(call(forged), StatusCode::UNAUTHENTICATED);
    const std::string role =
        ExpectRefused(call(Ticket(other, 0)), StatusCode::PERMISSION_DENIED);
    const std::string rank =
        names_place
            ? ExpectRefused(call(Ticket(own, 1)), StatusCode::PERMISSION_DENIED)
            : "names none";
    if (names_place) {
      // An earlier or later holder of the same rank is another place, too.
      ExpectRefused(call(Ticket(own, 0, kJobId, kIncarnation + 1)),
                    StatusCode::PERMISSION_DENIED);
    }
    const std::string job = ExpectRefused(call(Ticket(own, 0, kJobId + 1)),
                                          StatusCode::FAILED_PRECONDITION);
    const grpc::Status mine = call(Ticket(own, 0));
    EXPECT_FALSE(kSentences.count(mine.error_message())) << path;
    printf("%-48s %-16s %-16s %-18s %-18s %-20s %s\n", path.c_str(), no.c_str(),
           wrong.c_str(), role.c_str(), rank.c_str(), job.c_str(),
           CodeName(mine.error_code()).c_str());
  }
}

TEST_F(AccessTableTest, ATokenStandsForACertificate) {
  const auto status = [this](const char* token) {
    return Call("/tributary.v1.CoordinatorService/GetJobStatus", Nobody(token),
                "", /*tokens=*/true);
  };
  EXPECT_TRUE(status(kToken).ok());
  ExpectRefused(status(""), StatusCode::UNAUTHENTICATED);
  // A token does not replace a ticket.
  ExpectRefused(Call("/tributary.v1.CoordinatorService/GetPlan", Nobody(kToken),
                     "", /*tokens=*/true),
                StatusCode::UNAUTHENTICATED);
  // A token proves nothing to a process that does not take tokens.
  EXPECT_EQ(
      Knock("/tributary.v1.CoordinatorService/GetJobStatus", Nobody(kToken))
          .error_code(),
      StatusCode::UNAVAILABLE);
}

TEST_F(AccessTableTest, AServerWithoutAJobAnswersNobodysTicket) {
  const auto guard = std::make_shared<CallGuard>(
      CallGuard::Options{.tls = Tls(Issue(authority_, PeerRole::kServer))});
  server_ = ParameterServer::Start({.guard = guard}).value();
  EXPECT_EQ(Call("/tributary.v1.ParameterService/Pull",
                 With(PeerRole::kWorker).WithTicket(Ticket(v1::ROLE_WORKER, 0)))
                .error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(AccessTableTest, ReflectionIsOffUnlessAsked) {
  const auto guard = std::make_shared<CallGuard>(
      CallGuard::Options{.tls = Tls(Issue(authority_, PeerRole::kServer))});
  server_ = ParameterServer::Start({.guard = guard}).value();
  const char method[] =
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  const auto channel = testing::ReadyChannel(
      absl::StrCat("127.0.0.1:", server_->port()),
      With(PeerRole::kOperator).ForChannel(PeerRole::kServer));
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(absl::Minutes(1)));
  const grpc::Slice nothing("");
  grpc::ByteBuffer request(&nothing, 1), answer;
  EXPECT_EQ(grpc::internal::BlockingUnaryCall(
                channel.get(), RpcMethod(method, RpcMethod::NORMAL_RPC),
                &context, request, &answer)
                .error_code(),
            StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tributary
