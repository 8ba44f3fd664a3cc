// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/http/http2_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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

std::unique_ptr<Http2Peer> Http2Peer::Connect(int port, uint32_t window,
                                              ssl_ctx_st* tls) {
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
  if (tls != nullptr) {
    peer->SetTimeout(20);
    peer->ssl_ = SSL_new(tls);
    SSL_set_fd(peer->ssl_, fd);
    if (SSL_connect(peer->ssl_) != 1) return nullptr;
  }
  if (!peer->SendRaw({kHello, sizeof(kHello) - 1})) return nullptr;
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

Http2Peer::~Http2Peer() {
  SSL_free(ssl_);
  close(fd_);
}

// Waits for room as long as the other end is there: a socket that was closed
// with an empty queue takes nothing, and Linux resets it only after
// tcp_fin_timeout, 60 s.
ssize_t Http2Peer::SendPlain(absl::string_view bytes) const {
  while (true) {
    const ssize_t n =
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0 || errno != EAGAIN) return n;
    pollfd room = {.fd = fd_, .events = POLLOUT | POLLRDHUP, .revents = 0};
    if (poll(&room, 1, timeout_millis_) <= 0) return -1;
    if ((room.revents & POLLRDHUP) != 0) return -1;
  }
}

bool Http2Peer::SendRaw(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n =
        ssl_ == nullptr
            ? SendPlain(bytes)
            : SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool Http2Peer::IsClosed() const {
  char dropped[1024];
  ssize_t n = 0;
  while ((n = recv(fd_, dropped, sizeof(dropped), MSG_DONTWAIT)) > 0) {
  }
  return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void Http2Peer::SetTimeout(int seconds) {
  timeout_millis_ = 1000 * seconds;
  const timeval wait = {seconds, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

bool Http2Peer::SendFrame(int type, int flags, uint32_t stream,
                          absl::string_view bytes) {
  std::string frame = BigEndian(bytes.size(), 3) + BigEndian(type, 1) +
                      BigEndian(flags, 1) + BigEndian(stream, 4);
  frame.append(bytes.data(), bytes.size());
  return SendRaw(frame);
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
    const ssize_t more =
        ssl_ == nullptr ? recv(fd_, out + got, n - got, 0)
                        : SSL_read(ssl_, out + got, static_cast<int>(n - got));
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
