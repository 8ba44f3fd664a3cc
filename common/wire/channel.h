// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tributary {

// Largest message that either side accepts: the largest block and its header.
inline constexpr int kMaxMessageBytes = (64 << 20) + (64 << 10);

// When a connection counts as dead: after `silence` without a byte from the
// other side gRPC sends a ping, and after `timeout` without an answer it closes
// the connection. A host that loses power sends nothing, and TCP alone would
// wait for a quarter of an hour.
struct KeepAlive {
  absl::Duration silence = absl::Seconds(5);
  absl::Duration timeout = absl::Seconds(5);
};

// Servers ping a silent client less often than clients ping a server.
inline constexpr KeepAlive kServersKeepAlive = {absl::Seconds(20),
                                                absl::Seconds(20)};

// The arguments of every channel: no proxy, keep-alive pings, and no compressed
// messages, because one byte of these may expand to a thousand.
grpc::ChannelArguments CommonArguments(const KeepAlive& keep_alive = {});

// A channel for tensor traffic to host:port, which reconnects quickly. The
// default timeout is longer, since on a slow link the data ahead of a ping's
// answer may take some seconds. Null credentials: in clear text.
std::shared_ptr<grpc::Channel> DataChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = nullptr,
    const KeepAlive& keep_alive = {.timeout = absl::Seconds(10)});

// Sets the connection limits of every server. It closes connections that are
// dead, idle for minutes, or stuck in the handshake, bounds a call's metadata,
// and refuses compressed messages. `calls`: how many a connection may have
// under way; more wait at the client.
void LimitConnections(grpc::ServerBuilder* builder, int calls);

// For a process that transfers tensors; call it first. Makes glibc keep large
// buffers: by default it returns them to the system on every free, and page
// faults take half of the CPU time of a large transfer (docs/decisions). Unless
// this is a debug build, also stops the search for deadlocks that Debian's
// build of Abseil makes at every lock, including gRPC's.
void PrepareForTransfers();

}  // namespace tributary
