// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile/hostile_peers.h"

#include <random>
#include <utility>

#include "common/wire/channel.h"
#include "tests/integration/malformed/malformed.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::testing {
namespace {

constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";
constexpr char kPush[] = "/tributary.v1.ParameterService/PushPull";
constexpr char kClock[] = "/tributary.v1.ParameterService/ReadClock";
constexpr char kHeartbeat[] = "/tributary.v1.CoordinatorService/Heartbeat";
constexpr char kPlan[] = "/tributary.v1.CoordinatorService/GetPlan";
constexpr size_t kLargeBytes = 60 << 20;  // of a message, announced

}  // namespace

HostilePeers::HostilePeers(AttackedJob job, int idle)
    : job_(std::move(job)),
      bomb_(Http2Peer::Message(CompressedZeros(size_t{256} << 20), true)) {
  const auto begin = [this](const char* name,
                            void (HostilePeers::*body)(std::atomic<int64_t>*)) {
    attacks_.Begin(name, [this, body](std::atomic<int64_t>* count) {
      (this->*body)(count);
    });
  };
  attacks_.Begin("idle strangers", [this, idle](std::atomic<int64_t>* count) {
    StayConnected(idle, count);
  });
  attacks_.Begin("idle peers", [this, idle](std::atomic<int64_t>* count) {
    StayConnectedWithCertificate(idle, count);
  });
  begin("nonsense", &HostilePeers::TalkNonsense);
  begin("slow handshakes", &HostilePeers::ShakeHandsSlowly);
  begin("nonsense frames", &HostilePeers::SendNonsenseFrames);
  begin("pushes without a ticket", &HostilePeers::PushWithoutTicket);
  begin("wrongly signed", &HostilePeers::SendWronglySigned);
  begin("slow messages", &HostilePeers::SendSlowly);
  begin("endless messages", &HostilePeers::SendWithoutEnd);
  begin("endless calls", &HostilePeers::CallWithoutEnd);
  begin("bombs", &HostilePeers::SendBombs);
  begin("unread answers", &HostilePeers::LeaveAnswersUnread);
  begin("held calls", &HostilePeers::HoldCalls);
  begin("malformed", &HostilePeers::SendMalformed);
}

HostilePeers::~HostilePeers() { attacks_.End(); }

std::vector<int> HostilePeers::AllPorts() const {
  std::vector<int> ports = job_.server_ports;
  ports.push_back(job_.coordinator_port);
  return ports;
}

// Opens connections again that a process closes.
void HostilePeers::StayConnected(int connections, std::atomic<int64_t>* count) {
  const std::vector<int> ports = AllPorts();
  std::vector<std::unique_ptr<Stranger>> strangers(connections);
  while (!attacks_.over()) {
    for (int i = 0; i < connections && !attacks_.over(); ++i) {
      if (strangers[i] != nullptr && !strangers[i]->IsOver()) continue;
      strangers[i] = std::make_unique<Stranger>(ports[i % ports.size()]);
      ++*count;
    }
    Pause(100);
  }
}

void HostilePeers::StayConnectedWithCertificate(int connections,
                                                std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  const std::vector<int> ports = AllPorts();
  std::vector<std::unique_ptr<Http2Peer>> peers(connections);
  while (!attacks_.over()) {
    for (int i = 0; i < connections && !attacks_.over(); ++i) {
      if (peers[i] != nullptr && !peers[i]->IsClosed()) continue;
      peers[i] =
          Http2Peer::Connect(ports[i % ports.size()], INT32_MAX, context.get());
      *count += peers[i] != nullptr;
    }
    Pause(100);
  }
}

void HostilePeers::TalkNonsense(std::atomic<int64_t>* count) {
  std::mt19937 random(1);
  const std::vector<int> ports = AllPorts();
  for (; !attacks_.over(); ++*count) {
    Stranger stranger(ports[*count % ports.size()]);
    stranger.Send(*count % 3 == 0 ? "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"
                                  : RandomBytes(random, 4096));
    Pause(10);
  }
}

void HostilePeers::ShakeHandsSlowly(std::atomic<int64_t>* count) {
  // The beginning of a ClientHello of 16 kB (RFC 8446, section 5.1).
  const std::string hello("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11);
  const std::vector<int> ports = AllPorts();
  constexpr int kPeers = 30;
  std::vector<std::unique_ptr<Stranger>> peers(kPeers);
  for (size_t at = 0; !attacks_.over(); ++at) {
    for (int i = 0; i < kPeers; ++i) {
      if (peers[i] == nullptr || peers[i]->IsOver()) {
        peers[i] = std::make_unique<Stranger>(ports[i % ports.size()]);
        peers[i]->Send(hello);
        ++*count;
      }
      peers[i]->Send("x");
    }
    Pause(100);
  }
}

void HostilePeers::SendNonsenseFrames(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  std::mt19937 random(2);
  const std::vector<int> ports = AllPorts();
  for (size_t i = 0; !attacks_.over(); ++i) {
    Pause(50);
    const auto peer =
        Http2Peer::Connect(ports[i % ports.size()], INT32_MAX, context.get());
    *count += peer != nullptr && peer->SendRaw(RandomBytes(random, 4096));
  }
}

// Sends as fast as the server receives; counts MiB.
void HostilePeers::PushWithoutTicket(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  const std::string piece(1 << 20, 'x');
  const std::string head =
      Http2Peer::Message(std::string(kLargeBytes, '\0')).substr(0, 5);
  for (size_t i = 0; !attacks_.over(); ++i) {
    const auto peer =
        Http2Peer::Connect(job_.server_ports[i % job_.server_ports.size()],
                           INT32_MAX, context.get());
    if (peer == nullptr) continue;
    for (int calls = 0; calls < 20 && !attacks_.over(); ++calls) {
      const uint32_t call = peer->Begin(kPush);
      if (!peer->Send(call, head, false)) break;
      // The server ends the call at once, but not the connection.
      while (!attacks_.over() && peer->Send(call, piece, false)) ++*count;
    }
    Pause(20);
  }
}

void HostilePeers::SendWronglySigned(std::atomic<int64_t>* count) {
  std::mt19937 random(3);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& server : job_.plan.servers()) {
    channels.push_back(
        DataChannel(server, job_.proof.ForChannel(PeerRole::kServer)));
  }
  channels.push_back(DataChannel(
      job_.coordinator, job_.proof.ForChannel(PeerRole::kCoordinator)));
  const std::string pull = PullOf(job_, 0).SerializeAsString();
  while (!attacks_.over()) {
    const size_t to = random() % channels.size();
    const bool at_server = to + 1 < channels.size();
    const char* const methods[] = {kPull, kPush, kClock};
    const std::string method = at_server      ? methods[random() % 3]
                               : random() % 2 ? kHeartbeat
                                              : kPlan;
    const grpc::Status status = Call(
        channels[to], job_.proof.WithTicket(Forge(job_.proof.ticket(), random)),
        method, at_server ? pull : "");
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      continue;  // unknown: the job is ending, or the machine busy
    }
    ++*count;
    const bool refused =
        status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
        status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    let_through_ += !refused;
    Pause(5);
  }
}

void HostilePeers::SendSlowly(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  constexpr int kPeers = 30;
  struct Slow {
    std::unique_ptr<Http2Peer> peer;
    uint32_t call = 0;
  };
  std::vector<Slow> slow(kPeers);
  const std::string head =
      Http2Peer::Message(std::string(kLargeBytes, '\0')).substr(0, 5);
  while (!attacks_.over()) {
    for (int i = 0; i < kPeers && !attacks_.over(); ++i) {
      Slow& one = slow[i];
      if (one.peer != nullptr &&
          one.peer->Send(one.call, std::string(64, 'x'), false)) {
        continue;
      }
      one.peer =
          Http2Peer::Connect(job_.server_ports[i % job_.server_ports.size()],
                             INT32_MAX, context.get());
      if (one.peer == nullptr) continue;
      one.call = one.peer->Begin(kPull, TicketHeader(job_.proof.ticket()));
      one.peer->Send(one.call, head, false);
      ++*count;
    }
    Pause(100);
  }
}

// Sends messages without an end, one after the other, until the connection
// ends; counts MiB.
void HostilePeers::SendWithoutEnd(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  const std::string begin =
      Http2Peer::Message(std::string(kLargeBytes, '\0')).substr(0, 1 << 20);
  for (size_t i = 0; !attacks_.over(); ++i) {
    const auto peer =
        Http2Peer::Connect(job_.server_ports[i % job_.server_ports.size()],
                           INT32_MAX, context.get());
    if (peer == nullptr) continue;
    peer->SetTimeout(1);  // the server may be gone
    while (!attacks_.over() &&
           peer->Send(peer->Begin(kPull, TicketHeader(job_.proof.ticket())),
                      begin, false)) {
      ++*count;
    }
    Pause(20);
  }
}

// Sends headers of calls without any message, until the connection ends.
void HostilePeers::CallWithoutEnd(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  const std::vector<int> ports = AllPorts();
  for (size_t i = 0; !attacks_.over(); ++i) {
    const size_t to = i % ports.size();
    const auto peer = Http2Peer::Connect(ports[to], INT32_MAX, context.get());
    if (peer == nullptr) continue;
    peer->SetTimeout(1);
    const char* const method = to + 1 < ports.size() ? kPull : kPlan;
    while (!attacks_.over() && !peer->IsClosed()) {
      for (int calls = 0; calls < 100; ++calls) {
        peer->Begin(method, TicketHeader(job_.proof.ticket()));
        ++*count;
      }
      Pause(1);
    }
    Pause(20);
  }
}

void HostilePeers::SendBombs(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  Http2Peer::Headers headers = TicketHeader(job_.proof.ticket());
  headers.emplace_back("grpc-encoding", "gzip");
  const std::vector<int> ports = AllPorts();
  for (size_t i = 0; !attacks_.over(); ++i) {
    Pause(50);
    const size_t to = i % ports.size();
    const auto peer = Http2Peer::Connect(ports[to], INT32_MAX, context.get());
    if (peer == nullptr) continue;
    const uint32_t call =
        peer->Begin(to + 1 < ports.size() ? kPull : kPlan, headers);
    peer->Send(call, bomb_, true);
    peer->ReadToEnd(call);
    ++*count;
  }
}

void HostilePeers::LeaveAnswersUnread(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  std::vector<std::unique_ptr<Http2Peer>> peers(8);
  const std::string pull =
      Http2Peer::Message(PullOf(job_, 0).SerializeAsString());
  while (!attacks_.over()) {
    for (size_t i = 0; i < peers.size() && !attacks_.over(); ++i) {
      auto& peer = peers[i];
      if (peer == nullptr || peer->IsClosed()) {
        peer =
            Http2Peer::Connect(job_.server_ports[i % job_.server_ports.size()],
                               /*window=*/0, context.get());
      }
      if (peer == nullptr) continue;
      const uint32_t call =
          peer->Begin(kPull, TicketHeader(job_.proof.ticket()));
      if (!peer->Send(call, pull, true)) {
        peer = nullptr;
        continue;
      }
      ++*count;
    }
    Pause(50);
  }
}

void HostilePeers::HoldCalls(std::atomic<int64_t>* count) {
  const TlsContext context(job_.certificates);
  const std::string pull =
      Http2Peer::Message(PullOf(job_, INT64_MAX / 2).SerializeAsString());
  while (!attacks_.over()) {
    std::vector<std::unique_ptr<Http2Peer>> peers;
    for (int i = 0; i < 8 && !attacks_.over(); ++i) {
      auto peer =
          Http2Peer::Connect(job_.server_ports[i % job_.server_ports.size()],
                             INT32_MAX, context.get());
      for (int held = 0; held < 60 && peer != nullptr; ++held) {
        const uint32_t call =
            peer->Begin(kPull, TicketHeader(job_.proof.ticket()));
        if (!peer->Send(call, pull, true)) break;
        ++*count;
      }
      peers.push_back(std::move(peer));
    }
    for (int i = 0; i < 50 && !attacks_.over(); ++i) Pause(100);
  }
}

void HostilePeers::SendMalformed(std::atomic<int64_t>* count) {
  std::mt19937 random(4);
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_role(v1::ROLE_WORKER);
  heartbeat.set_job_id(job_.job_id);
  heartbeat.set_plan_epoch(job_.plan.epoch());
  CoordinatorMessages messages(heartbeat, /*seed=*/4);
  std::vector<std::shared_ptr<grpc::Channel>> servers;
  for (const std::string& server : job_.plan.servers()) {
    servers.push_back(
        DataChannel(server, job_.proof.ForChannel(PeerRole::kServer)));
  }
  const auto coordinator = DataChannel(
      job_.coordinator, job_.proof.ForChannel(PeerRole::kCoordinator));
  while (!attacks_.over()) {
    grpc::Status status;
    if (random() % 2 == 0) {
      const Malformed message = messages.Next();
      status = Call(coordinator, job_.proof, message.method, message.bytes);
    } else {
      status = Call(servers[random() % servers.size()], job_.proof, kPull,
                    Spoil(PullOf(job_, 0).SerializeAsString(), random));
    }
    *count += !status.ok();
    Pause(5);
  }
}

}  // namespace tributary::testing
