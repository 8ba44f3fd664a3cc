// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile/attacker.h"

#include <grpcpp/impl/codegen/client_unary_call.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/header_checksum.h"
#include "common/wire/identity/peer_credentials.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/member_ticket.pb.h"

namespace tributary::testing {
namespace {

int PortOf(const std::string& address) {
  int port = 0;
  const bool is_number =
      absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port);
  return is_number ? port : 0;
}

}  // namespace

Stranger::Stranger(int port)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connected_ =
      connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

Stranger::~Stranger() { close(fd_); }

bool Stranger::Send(absl::string_view bytes) {
  connected_ = connected_ && send(fd_, bytes.data(), bytes.size(),
                                  MSG_NOSIGNAL | MSG_DONTWAIT) ==
                                 static_cast<ssize_t>(bytes.size());
  return connected_;
}

bool Stranger::IsOver() const {
  char byte = 0;
  const ssize_t n = recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return !connected_ || n == 0 || (n < 0 && errno != EAGAIN);
}

TlsContext::TlsContext(const std::string& folder)
    : tls_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_use_certificate_chain_file(tls_, (folder + "/tls.crt").c_str());
  SSL_CTX_use_PrivateKey_file(tls_, (folder + "/tls.key").c_str(),
                              SSL_FILETYPE_PEM);
  constexpr std::array<unsigned char, 3> kProtocol = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(tls_, kProtocol.data(), kProtocol.size());
}

TlsContext::~TlsContext() { SSL_CTX_free(tls_); }

void Pause(int milliseconds) {
  absl::SleepFor(absl::Milliseconds(milliseconds));
}

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                  const CallerProof& proof, const std::string& method,
                  const std::string& request, std::string* answer) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(absl::Seconds(10)));
  // On a busy machine the first attempts to connect may fail.
  context.set_wait_for_ready(true);
  proof.AddTo(&context);
  const grpc::Slice slice(request);
  grpc::ByteBuffer bytes(&slice, 1), received;
  const grpc::Status status = grpc::internal::BlockingUnaryCall(
      channel.get(),
      grpc::internal::RpcMethod(method.c_str(),
                                grpc::internal::RpcMethod::NORMAL_RPC),
      &context, bytes, &received);
  grpc::Slice whole;
  if (answer != nullptr && received.DumpToSingleSlice(&whole).ok()) {
    answer->assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  return status;
}

v1::PullRequest PullOf(const AttackedJob& job, int64_t version) {
  v1::PullRequest pull;
  pull.mutable_address()->set_job_id(job.job_id);
  pull.mutable_address()->set_plan_epoch(job.plan.epoch());
  pull.set_min_version(version);
  pull.set_wait_ms(60'000);
  SignHeader(&pull);
  return pull;
}

// The ticket's bits as a header. Values of 127 bytes and more do not occur.
Http2Peer::Headers TicketHeader(const std::string& ticket) {
  return {{kTicketKey, absl::Base64Escape(ticket)}};
}

std::string RandomBytes(std::mt19937& random, size_t most) {
  std::string bytes(random() % most + 1, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// A ticket that nobody signed: a real one with another place, another job or
// changed bits.
std::string Forge(const std::string& ticket, std::mt19937& random) {
  v1::MemberTicket forged;
  forged.ParseFromString(ticket);
  switch (random() % 4) {
    case 0:
      forged.set_role(v1::ROLE_WORKER);
      forged.set_index(random() % 2);
      forged.set_incarnation(forged.incarnation() + random() % 3);
      break;
    case 1:
      forged.set_role(v1::ROLE_SERVER);
      break;
    case 2: {
      std::string mac = forged.mac();
      mac[random() % mac.size()] ^= static_cast<char>(1 << random() % 8);
      forged.set_mac(mac);
      break;
    }
    default:
      forged.set_mac(RandomBytes(random, 64));
  }
  return forged.SerializeAsString();
}

absl::StatusOr<AttackedJob> Infiltrate(const std::string& coordinator,
                                       const std::string& certificates) {
  AttackedJob job{.coordinator_port = PortOf(coordinator),
                  .coordinator = coordinator,
                  .certificates = certificates};
  const auto tls = PeerCredentials::FromFolder(certificates);
  if (!tls.ok()) return tls.status();
  const CallerProof proof(*tls, "");
  const auto channel =
      DataChannel(coordinator, proof.ForChannel(PeerRole::kCoordinator));
  const absl::Time end = absl::Now() + absl::Seconds(60);
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_OBSERVER);
  request.set_instance("an attacker");
  std::string answer;
  v1::RegisterResponse place;
  while (absl::Now() < end) {
    if (place.ticket().empty() &&
        Call(channel, proof, "/tributary.v1.CoordinatorService/Register",
             request.SerializeAsString(), &answer)
            .ok()) {
      place.ParseFromString(answer);
      job.proof = proof.WithTicket(place.ticket());
      job.job_id = place.job_id();
    }
    if (!place.ticket().empty() &&
        Call(channel, job.proof, "/tributary.v1.CoordinatorService/GetPlan", "",
             &answer)
            .ok() &&
        job.plan.ParseFromString(answer) && job.plan.servers_size() > 0) {
      for (const std::string& server : job.plan.servers()) {
        job.server_ports.push_back(PortOf(server));
      }
      return job;
    }
    Pause(20);
  }
  return absl::UnavailableError("the job has no plan");
}

}  // namespace tributary::testing
