#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace tributary {

// Largest message either side takes: the largest block and its header.
inline constexpr int kMaxMessageBytes = (64 << 20) + (64 << 10);

// A channel for tensor traffic to host:port: no proxy, quick to reconnect.
std::shared_ptr<grpc::Channel> DataChannel(const std::string& address);

// glibc returns large buffers to the system on every free, and half of the CPU
// time of a large transfer is page faults; this keeps them (docs/decisions).
void KeepLargeBuffers();

}  // namespace tributary
