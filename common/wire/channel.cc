#include "common/wire/channel.h"

#include <grpcpp/grpcpp.h>
#include <malloc.h>

#include "common/host/steady_waits.h"

namespace tributary {

namespace {

// A server asks a silent client less often than the clients ask it.
constexpr KeepAlive kServersKeepAlive = {absl::Seconds(20), absl::Seconds(20)};
// More pings than one in this time are unfriendly, and end the connection.
constexpr int kShortestPingMs = 100;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

grpc::ChannelArguments CommonArguments(const KeepAlive& keep_alive) {
  UseSteadyWaits();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC 1.51 limits the size of a message before it is expanded, not after.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                   1 << GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(keep_alive.silence));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(keep_alive.timeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
  return arguments;
}

std::shared_ptr<grpc::Channel> DataChannel(const std::string& address,
                                           const KeepAlive& keep_alive) {
  grpc::ChannelArguments arguments = CommonArguments(keep_alive);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Its own connection, not one shared with every channel of the process.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

void LimitConnections(grpc::ServerBuilder* builder) {
  UseSteadyWaits();
  // Else a second server would share the port and take half of the callers.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 600'000);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  for (grpc_compression_algorithm algorithm :
       {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              Millis(kServersKeepAlive.silence));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              Millis(kServersKeepAlive.timeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kShortestPingMs);
  // A step that waits for the norm of the whole gradient holds a call for each
  // of a plan's blocks (PartitionPlan::kMaxBlocks).
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, (1 << 16) + 64);
}

void KeepLargeBuffers() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace tributary
