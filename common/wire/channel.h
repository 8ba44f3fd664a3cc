#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tributary {

// Largest message either side takes: the largest block and its header.
inline constexpr int kMaxMessageBytes = (64 << 20) + (64 << 10);

// When a connection counts as dead: without any byte from the other side for
// `silence` it is asked for one, and given up when none comes for `timeout`. A
// host that lost its power says nothing, and TCP alone would wait for a quarter
// of an hour.
struct KeepAlive {
  absl::Duration silence = absl::Seconds(5);
  absl::Duration timeout = absl::Seconds(5);
};

// What every channel of the product is made with: no proxy, no compressed
// messages (one byte of them may stand for a thousand), dead hosts are noticed.
grpc::ChannelArguments CommonArguments(const KeepAlive& keep_alive = {});

// A channel for tensor traffic to host:port, quick to reconnect. Whatever is on
// its way before the answer to a ping may fill a slow link for some seconds.
std::shared_ptr<grpc::Channel> DataChannel(const std::string& address,
                                           const KeepAlive& keep_alive = {
                                               .timeout = absl::Seconds(10)});

// What holds for the connections of every server: one that never says anything
// sensible, or nothing for minutes, is closed, and so is one whose other end is
// dead; a call's metadata has no room for more than a few names; compressed
// messages are refused.
void LimitConnections(grpc::ServerBuilder* builder);

// glibc returns large buffers to the system on every free, and half of the CPU
// time of a large transfer is page faults; this keeps them (docs/decisions).
void KeepLargeBuffers();

}  // namespace tributary
