// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/host/listen_socket.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/port/peer_connections.h"

namespace tributary {

// A port on which a gRPC server serves. It accepts the connections itself and
// hands them to gRPC, because gRPC 1.51 cannot count the connections of a peer
// or close one. The limits are those of the guard's PeerConnections.
//
//   auto port = PeerPort::Listen(address, guard);
//   (*port)->AddTo(&builder, 100);
//   server = builder.BuildAndStart();
//   (*port)->Start();
//   ...
//   (*port)->Stop();  // and then the server's Shutdown
class PeerPort {
 public:
  // Clients may connect from now on. InvalidArgument: not host:port.
  // Unavailable: the port is taken, or the host is not this machine's.
  // `listening`: takes over these sockets, which listen there already.
  static absl::StatusOr<std::unique_ptr<PeerPort>> Listen(
      const std::string& address, std::shared_ptr<const CallGuard> guard,
      const ListeningSockets& listening = nullptr);
  ~PeerPort() { Join(); }

  int port() const { return port_; }

  // Makes the server serve this port, with the guard's credentials and the
  // limits of LimitConnections. `calls`: most calls of a connection at once.
  void AddTo(grpc::ServerBuilder* builder, int calls);
  // Serves the clients, once the server has started.
  void Start();
  // Stops accepting clients. Connections go on within their limits, as long as
  // this object lives. Idempotent.
  void Stop();
  // The same, but the sockets keep listening, so that no other process can take
  // the port: clients that connect wait until the sockets are taken over.
  ListeningSockets Release();

 private:
  // Ends the thread.
  void Join();
  // Takes the sockets from the thread, which goes on looking at connections.
  std::vector<UniqueFd> TakeSockets();
  PeerPort(std::vector<UniqueFd> sockets,
           std::shared_ptr<const CallGuard> guard);

  void Run();
  void Accept(int listener);
  // Ends a connection for which this process has no file.
  void Refuse(int listener);

  std::vector<UniqueFd> sockets_;
  const std::shared_ptr<const CallGuard> guard_;
  const std::shared_ptr<PeerConnections> connections_;
  const int port_;
  const UniqueFd wake_;  // readable: stop
  UniqueFd spare_;       // closed to free a file when none is left
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread thread_;
};

// The most connections that this process may have at once. Each takes two of
// its files.
size_t MostConnections();

}  // namespace tributary
