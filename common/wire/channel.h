#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

namespace tributary {

// Largest message either side takes: the largest block and its header.
inline constexpr int kMaxMessageBytes = (64 << 20) + (64 << 10);

// A channel for tensor traffic to host:port: no proxy, quick to reconnect.
std::shared_ptr<grpc::Channel> DataChannel(const std::string& address);

// What holds for the connections of every server: one that never says anything
// sensible, or nothing for minutes, is closed; a call's metadata has no room
// for more than a few names.
void LimitConnections(grpc::ServerBuilder* builder);

// glibc returns large buffers to the system on every free, and half of the CPU
// time of a large transfer is page faults; this keeps them (docs/decisions).
void KeepLargeBuffers();

}  // namespace tributary
