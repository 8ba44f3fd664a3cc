// SPDX-License-Identifier: Apache-2.0
// The limit of the other channels: TCP from one process to another and back.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/push_pull/channels.h"

namespace tributary::bench {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void NoDelay(int socket) {
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void WriteAll(int socket, const std::vector<char>& bytes, size_t chunk) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t more =
        send(socket, bytes.data() + sent, std::min(chunk, bytes.size() - sent),
             MSG_NOSIGNAL);
    if (more <= 0) Fail("send");
    sent += static_cast<size_t>(more);
  }
}

// False at the end of the stream.
bool ReadAll(int socket, std::vector<char>* bytes, size_t chunk) {
  for (size_t got = 0; got < bytes->size();) {
    const ssize_t more = recv(socket, bytes->data() + got,
                              std::min(chunk, bytes->size() - got), 0);
    if (more == 0) return false;
    if (more < 0) Fail("recv");
    got += static_cast<size_t>(more);
  }
  return true;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

class RawTcpChannel final : public Channel {
 public:
  std::string name() const override { return "raw TCP"; }

  void Serve(const Work& work, int server, Wire& wire) const override {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener, 64) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) !=
            0) {
      Fail("listen");
    }
    wire.Send(absl::StrCat(ntohs(address.sin_port)));
    wire.Receive();
    std::vector<std::thread> streams;
    std::thread accepter([&] {
      for (int w = server; w < work.workers; w += work.servers) {
        const int stream = accept(listener, nullptr, nullptr);
        if (stream < 0) Fail("accept");
        NoDelay(stream);
        streams.emplace_back([&work, stream] {
          std::vector<char> bytes(work.bytes, 1);
          while (ReadAll(stream, &bytes, work.chunk)) {
            WriteAll(stream, bytes, work.chunk);
          }
          close(stream);
        });
      }
    });
    ServeMeasured(wire);
    accepter.join();
    for (std::thread& stream : streams) stream.join();
    close(listener);
  }

  void Drive(const Work& work, int worker, Wire& wire) const override {
    const std::vector<std::string> ports = absl::StrSplit(wire.Receive(), ' ');
    int port = 0;
    if (!absl::SimpleAtoi(ports[worker % work.servers], &port)) Fail("port");
    const int stream = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port);
    if (connect(stream, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0) {
      Fail("connect");
    }
    NoDelay(stream);
    std::vector<char> gradients(work.bytes, 1);
    std::vector<char> weights(work.bytes, 1);
    DriveMeasured(work, wire, [&] {
      WriteAll(stream, gradients, work.chunk);
      if (!ReadAll(stream, &weights, work.chunk)) Fail("the server has gone");
    });
    close(stream);
  }
};

}  // namespace

const Channel& RawTcp() {
  static const RawTcpChannel channel;
  return channel;
}

}  // namespace tributary::bench
