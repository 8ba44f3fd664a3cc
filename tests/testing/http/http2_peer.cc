// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/http/http2_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace tributary::testing {
namespace {

enum FrameType {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kFarewell = 7,
  kWindowUpdate = 8,
};
constexpr int kEndStream = 1;
constexpr int kAck = 1;
constexpr int kEndHeaders = 4;
constexpr char kHello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> 8 * i));
  }
  return text;
}
uint32_t Number(absl::string_view bytes) {
  uint32_t value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Appends a literal header without indexing and without Huffman coding (RFC
// 7541, section 6.2.2). Names and values must be shorter than 127 bytes.
void AppendHeader(std::string* block, const std::string& name,
                  const std::string& value) {
  block->push_back('\0');
  block->push_back(static_cast<char>(name.size()));
  block->append(name);
  block->push_back(static_cast<char>(value.size()));
  block->append(value);
}

}  // namespace

std::unique_ptr<Http2Peer> Http2Peer::Connect(int port, uint32_t window) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    close(fd);
    return nullptr;
  }
  std::unique_ptr<Http2Peer> peer(new Http2Peer(fd));
  if (send(fd, kHello, sizeof(kHello) - 1, MSG_NOSIGNAL) < 0) return nullptr;
  return peer->SendHello(window) ? std::move(peer) : nullptr;
}

std::unique_ptr<Http2Peer> Http2Peer::Accept(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return nullptr;
  std::unique_ptr<Http2Peer> peer(new Http2Peer(fd));
  char hello[sizeof(kHello) - 1];
  if (!peer->ReadAll(hello, sizeof(hello))) return nullptr;
  return peer->SendHello(INT32_MAX) ? std::move(peer) : nullptr;
}

bool Http2Peer::SendHello(uint32_t window) {
  // Sets SETTINGS_INITIAL_WINDOW_SIZE and enlarges the connection's window.
  return SendFrame(kSettings, 0, 0, BigEndian(4, 2) + BigEndian(window, 4)) &&
         SendFrame(kWindowUpdate, 0, 0, BigEndian(INT32_MAX - 65535, 4));
}

Http2Peer::~Http2Peer() { close(fd_); }

bool Http2Peer::SendFrame(int type, int flags, uint32_t stream,
                          absl::string_view bytes) {
  std::string frame = BigEndian(bytes.size(), 3) + BigEndian(type, 1) +
                      BigEndian(flags, 1) + BigEndian(stream, 4);
  frame.append(bytes.data(), bytes.size());
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t n =
        send(fd_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

uint32_t Http2Peer::Begin(const std::string& path, const Headers& more) {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  std::string block;
  AppendHeader(&block, ":method", "POST");
  AppendHeader(&block, ":scheme", "http");
  AppendHeader(&block, ":path", path);
  AppendHeader(&block, ":authority", "localhost");
  AppendHeader(&block, "te", "trailers");
  AppendHeader(&block, "content-type", "application/grpc");
  for (const auto& [name, value] : more) AppendHeader(&block, name, value);
  SendFrame(kHeaders, kEndHeaders, stream, block);
  windows_[stream] = initial_window_;
  return stream;
}

uint32_t Http2Peer::WaitForCall() {
  while (true) {
    for (const auto& [stream, ended] : ended_) {
      if (ended) return stream;
    }
    if (!ReadFrame()) return 0;
  }
}

bool Http2Peer::Answer(uint32_t stream, const Headers& headers) {
  std::string block;
  for (const auto& [name, value] : headers) AppendHeader(&block, name, value);
  windows_.emplace(stream, initial_window_);
  return SendFrame(kHeaders, kEndHeaders, stream, block);
}

bool Http2Peer::Send(uint32_t stream, absl::string_view bytes, bool end) {
  while (!bytes.empty()) {
    const int64_t window = std::min(window_, windows_[stream]);
    if (window <= 0) {
      if (!ReadFrame() || ended_[stream] || farewell_) return false;
      continue;
    }
    const size_t n = std::min<size_t>(
        {bytes.size(), static_cast<size_t>(window), max_frame_});
    const bool last = end && n == bytes.size();
    if (!SendFrame(kData, last ? kEndStream : 0, stream, bytes.substr(0, n))) {
      return false;
    }
    window_ -= static_cast<int64_t>(n);
    windows_[stream] -= static_cast<int64_t>(n);
    bytes.remove_prefix(n);
  }
  return true;
}

bool Http2Peer::ReadAll(char* out, size_t n) const {
  for (size_t got = 0; got < n;) {
    const ssize_t more = recv(fd_, out + got, n - got, 0);
    if (more <= 0) return false;
    got += static_cast<size_t>(more);
  }
  return true;
}

bool Http2Peer::ReadFrame() {
  char head[9];
  if (!ReadAll(head, sizeof(head))) return false;
  const absl::string_view bytes(head, sizeof(head));
  const int type = head[3], flags = head[4];
  const uint32_t stream = Number(bytes.substr(5)) & INT32_MAX;
  std::string body(Number(bytes.substr(0, 3)), '\0');
  if (!ReadAll(body.data(), body.size())) return false;
  switch (type) {
    case kSettings:
      if (flags & kAck) break;
      for (size_t at = 0; at + 6 <= body.size(); at += 6) {
        const uint32_t name = Number(absl::string_view(body).substr(at, 2));
        const uint32_t value =
            Number(absl::string_view(body).substr(at + 2, 4));
        if (name == 4) {
          for (auto& [id, window] : windows_) window += value - initial_window_;
          initial_window_ = value;
        }
        if (name == 5) max_frame_ = std::min<uint32_t>(value, 1 << 20);
      }
      return SendFrame(kSettings, kAck, 0, "");
    case kPing:
      return (flags & kAck) != 0 || SendFrame(kPing, kAck, 0, body);
    case kWindowUpdate:
      (stream == 0 ? window_ : windows_[stream]) += Number(body);
      break;
    case kHeaders:
    case kReset:
      headers_[stream] += body;
      break;
    case kFarewell:
      farewell_ = true;
      for (auto& [id, headers] : windows_) headers_[id] += body;
      break;
  }
  if (type == kReset || (type <= kHeaders && (flags & kEndStream) != 0)) {
    ended_[stream] = true;
  }
  return true;
}

std::string Http2Peer::ReadToEnd(uint32_t stream) {
  while (!ended_[stream] && ReadFrame()) {
  }
  return headers_[stream];
}

std::string Http2Peer::Message(absl::string_view bytes, bool compressed) {
  std::string message(1, compressed ? '\1' : '\0');
  message += BigEndian(bytes.size(), 4);
  message.append(bytes.data(), bytes.size());
  return message;
}

}  // namespace tributary::testing
