// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tests/testing/faults/http2_tensors.h"

namespace tributary::testing {

// A connection through the proxy: two sockets, and the bytes in transit in each
// direction. It knows no rules; its owner decides when bytes may leave.
class ProxyConnection {
 public:
  static constexpr size_t kMostHeld = 1 << 20;
  static constexpr size_t kMostKept = 1 << 18;

  struct Pipe {
    explicit Pipe(bool client) : tensors(client) {}
    struct Piece {
      std::string bytes;
      int64_t release_ms;
    };
    std::deque<Piece> pieces;
    size_t held = 0;     // bytes in pieces
    size_t written = 0;  // of the first piece
    bool ended = false;  // its source has sent the end
    bool shut = false;   // the end has been passed on
    std::string so_far;  // the first bytes, at most kMostKept
    Http2Tensors tensors;
  };

  ProxyConnection(std::string from, std::string to, std::string target,
                  int accepted, int connected);
  ~ProxyConnection();
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  // The socket that direction `back` reads from, or writes to.
  int source(bool back) const { return fds_[back ? 1 : 0]; }
  int sink(bool back) const { return fds_[back ? 0 : 1]; }
  Pipe& pipe(bool back) { return pipes_[back ? 1 : 0]; }
  const Pipe& pipe(bool back) const { return pipes_[back ? 1 : 0]; }

  // Whether there is room for more bytes, and whether some may leave at
  // `now_ms`.
  bool WantsToRead(bool back) const;
  bool WantsToWrite(bool back, int64_t now_ms) const;
  // The time when the next piece may leave, or -1 if no piece is waiting.
  int64_t NextRelease(bool back) const;

  void Take(bool back, std::string bytes, int64_t release_ms);
  void Write(bool back, int64_t now_ms);
  // Passes on the end of the stream once all bytes have left.
  void PassOnEnd(bool back);
  // Resets the connection on both sides.
  void Reset();
  // Drops all later bytes. Neither side learns that the other has ended.
  void Silence();
  bool silent() const { return silent_; }
  bool dead() const { return dead_; }

  const std::string from;
  const std::string to;
  const std::string target;

 private:
  const int fds_[2];  // of the connecting side, of the listening side
  Pipe pipes_[2];
  bool dead_ = false;
  bool silent_ = false;
};

// Opens a non-blocking listener on 127.0.0.1; -1 when it fails.
int ListenSomewhere(int* port);
// Connects to "host port" with a non-blocking socket; -1 when no process
// listens.
int ConnectTo(const std::string& target);

}  // namespace tributary::testing
