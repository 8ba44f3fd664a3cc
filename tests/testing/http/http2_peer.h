// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // and SSL_CTX

namespace tributary::testing {

// One end of an HTTP/2 connection, frame by frame (RFC 9113), for behaviour
// that no gRPC library has, such as reading nothing. It reads only on request,
// or when the server's windows are too small for the data to send.
class Http2Peer {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Connects to a loopback port. The server may send 2 GiB before it has to
  // wait for this end, but at most `window` bytes of each answer. Null when no
  // process listens. With `tls`, encrypts the connection by that context, and
  // also returns null when the handshake fails.
  static std::unique_ptr<Http2Peer> Connect(int port,
                                            uint32_t window = INT32_MAX,
                                            ssl_ctx_st* tls = nullptr);
  // Accepts the next connection to a listening socket, as the server.
  static std::unique_ptr<Http2Peer> Accept(int listener);
  ~Http2Peer();

  // Opens a stream for a gRPC call and sends its headers.
  uint32_t Begin(const std::string& path, const Headers& more = {});
  // Reads until the other end has sent a complete call; returns its stream, or
  // 0 when the connection is closed.
  uint32_t WaitForCall();
  // Answers a call with these headers.
  bool Answer(uint32_t stream, const Headers& headers);
  // Sends bytes of a stream; `end` marks the last ones. False when the
  // connection is closed.
  bool Send(uint32_t stream, absl::string_view bytes, bool end);
  // Reads until the server has ended the stream or the connection. Returns the
  // bytes of all header frames of the stream and of a RST_STREAM or GOAWAY
  // frame.
  std::string ReadToEnd(uint32_t stream);

  // Sends these bytes as they are, which need not be a frame.
  bool SendRaw(absl::string_view bytes);
  // Whether the server has closed the connection; reads and drops bytes that
  // have arrived, without waiting. With TLS nothing can be read afterwards.
  bool IsClosed() const;
  // Limits every wait of this end for the other; then the call fails.
  void SetTimeout(int seconds);

  // A message with gRPC's length prefix.
  static std::string Message(absl::string_view bytes, bool compressed = false);

 private:
  explicit Http2Peer(int fd) : fd_(fd) {}

  bool SendHello(uint32_t window);

  bool SendFrame(int type, int flags, uint32_t stream, absl::string_view bytes);
  ssize_t SendPlain(absl::string_view bytes) const;
  bool ReadFrame();
  bool ReadAll(char* out, size_t n) const;

  const int fd_;
  int timeout_millis_ = -1;  // -1: waits for ever
  ssl_st* ssl_ = nullptr;    // null: clear text
  uint32_t next_stream_ = 1;
  // The server's receive windows: of the connection, of a new stream, of each
  // stream.
  int64_t window_ = 65535;
  int64_t initial_window_ = 65535;
  std::map<uint32_t, int64_t> windows_;
  uint32_t max_frame_ = 16384;
  std::map<uint32_t, std::string> headers_;
  std::map<uint32_t, bool> ended_;
  bool farewell_ = false;
};

}  // namespace tributary::testing
