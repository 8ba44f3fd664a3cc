// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/wire/identity/caller_proof.h"
#include "tests/testing/http/http2_peer.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::testing {

// The facts that an attacker knows about a running job. The attacker has stolen
// a worker's certificate and has registered with it as an observer.
struct AttackedJob {
  int coordinator_port = 0;
  std::vector<int> server_ports;
  std::string coordinator;  // address
  v1::Plan plan;
  std::string certificates;  // a worker's folder
  CallerProof proof;         // with the ticket
  uint64_t job_id = 0;
};

// Registers as an observer of the job at this coordinator and asks for its plan
// until there is one. Unavailable: there was none after 60 s.
absl::StatusOr<AttackedJob> Infiltrate(const std::string& coordinator,
                                       const std::string& certificates);

// A connection to a loopback port that sends nothing by itself.
class Stranger {
 public:
  explicit Stranger(int port);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Never waits: if the other end does not take all bytes at once, the
  // connection counts as ended.
  bool Send(absl::string_view bytes);
  bool IsOver() const;

 private:
  const int fd_;
  bool connected_ = false;
};

// OpenSSL's settings of a client that has the certificate of a folder and
// trusts any server.
class TlsContext {
 public:
  explicit TlsContext(const std::string& folder);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* get() const { return tls_; }

 private:
  ssl_ctx_st* const tls_;
};

void Pause(int milliseconds);

// Calls a method with this request, for at most 10 s. `answer` may be null.
grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                  const CallerProof& proof, const std::string& method,
                  const std::string& request, std::string* answer = nullptr);
// A request for the weights of the plan's first block; it waits until they have
// this version.
v1::PullRequest PullOf(const AttackedJob& job, int64_t version);
// A ticket as an HTTP/2 header.
Http2Peer::Headers TicketHeader(const std::string& ticket);
std::string RandomBytes(std::mt19937& random, size_t most);
// A ticket that nobody signed: a real one with another place, or with changed
// bits.
std::string Forge(const std::string& ticket, std::mt19937& random);

}  // namespace tributary::testing
