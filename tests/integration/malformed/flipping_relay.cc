// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/malformed/flipping_relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/status_matchers.h"

namespace tributary::testing {
namespace {

constexpr char kPushPull[] = "/tributary.v1.ParameterService/PushPull";
constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";
constexpr char kReadClock[] = "/tributary.v1.ParameterService/ReadClock";

constexpr int kGradientFlips = 5;  // of each gradient in shared memory

// The number of bytes of a message before its payload, which comes last.
template <typename Message>
size_t HeaderBytes(const Message& message, const std::string& bytes) {
  if constexpr (requires { message.payload(); }) {
    return bytes.size() - message.payload().size();
  }
  return bytes.size();
}

// Finds this process's own mapping of a shared memory in which bytes with this
// checksum lie at `offset`; null: there is none. Only the memory's owner can
// write to it, and here the owner is in the same process.
char* FindWritable(uint64_t offset, size_t bytes, uint32_t crc32c) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("rw-s") == std::string::npos ||
        line.find("memfd:tributary") == std::string::npos) {
      continue;
    }
    std::istringstream fields(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    fields >> std::hex >> begin >> dash >> end;
    char* const data = reinterpret_cast<char*>(begin) + offset;
    if (offset + bytes <= end - begin && Crc32c(data, bytes) == crc32c) {
      return data;
    }
  }
  return nullptr;
}

}  // namespace

FlippingRelay::FlippingRelay(Cluster* cluster, char* gradients,
                             std::string wire, BitFlips* flips)
    : cluster_(cluster),
      gradients_(gradients),
      wire_(std::move(wire)),
      partition_(MakePartitionPlan(cluster->plan()).value()),
      server_(testing::ReadyChannel(cluster->plan().servers(0))),
      flips_(flips),
      relay_([this](const std::string& method, const std::string& message) {
        return Handle(method, message);
      }) {}

std::string FlippingRelay::NameOf(
    const google::protobuf::Message& message) const {
  return absl::StrCat(message.GetDescriptor()->name(), ", ", wire_);
}

absl::StatusOr<std::string> FlippingRelay::Handle(const std::string& method,
                                                  const std::string& message) {
  absl::MutexLock lock(&mu_);
  if (method == kPushPull) {
    return Pass<v1::PushPullRequest, v1::PushPullResponse>(
        method, message, {.attempts = 2, .requests = 8, .answers = 3});
  }
  if (method == kPull) {
    return Pass<v1::PullRequest, v1::PullResponse>(
        method, message, {.attempts = 1, .requests = 8, .answers = 3});
  }
  if (method == kReadClock) {
    return Pass<v1::ClockRequest, v1::ClockResponse>(
        method, message, {.attempts = 8, .requests = 8, .answers = 40});
  }
  return Pass<v1::InitializeRequest, v1::InitializeResponse>(
      method, message, {.attempts = 1, .requests = 8, .answers = 0});
}

template <typename Request, typename Response>
absl::StatusOr<std::string> FlippingRelay::Pass(const std::string& method,
                                                const std::string& message,
                                                const Extent& extent) {
  Request request;
  EXPECT_TRUE(request.ParseFromString(message)) << method;
  const uint32_t block = request.address().block();
  Calls& calls = calls_[{method, block}];
  const int attempt = calls.attempts++;
  flips_->Begin(
      absl::StrCat(wire_, " ", round_, " ", method, " ", block, " ", attempt));
  if (calls.memory != nullptr) {
    calls.memory_was.copy(calls.memory, calls.memory_was.size());
    calls.memory = nullptr;
  }
  if (attempt < extent.attempts) {
    DamageRequest(method, request, message, extent.requests);
  }
  auto answer = server_.Send(method, message);
  TRIBUTARY_EXPECT_OK(answer);
  if (!answer.ok() || accepted_) return answer;
  bool in_memory = false;
  if constexpr (std::is_same_v<Request, v1::PushPullRequest>) {
    if (request.ranges_size() > 0) {
      DamageGradient(request, message);
      answer = server_.Send(method, message);
      TRIBUTARY_EXPECT_OK(answer);
      if (!answer.ok()) return answer;
    }
    in_memory = block % 2 == 0;
  }
  if (attempt >= extent.answers) return answer;
  return DamagedAnswer<Response>(*answer, in_memory, block, &calls);
}

template <typename Request>
void FlippingRelay::DamageRequest(const std::string& method,
                                  const Request& request,
                                  const std::string& message, int count) {
  const std::string name = NameOf(request);
  const std::string state = StateOf(request.address());
  const std::string counters = Counters();
  for (int i = 0; i < count && !accepted_; ++i) {
    const std::string damaged =
        flips_->Damaged(message, HeaderBytes(request, message));
    if (SameMessage(request, damaged)) {
      flips_->CountSame(name);
      continue;
    }
    const auto answer = server_.Send(method, damaged);
    accepted_ = !absl::IsDataLoss(answer.status()) || Counters() != counters;
    if (accepted_) {
      ADD_FAILURE() << name << ": a damaged request has the answer "
                    << answer.status() << " and makes " << counters << " "
                    << Counters() << ": " << request.ShortDebugString();
    } else {
      flips_->CountRefused(name);
    }
  }
  EXPECT_TRUE(StateOf(request.address()) == state)
      << name << ": the server has other weights or clocks";
}

// Call it after the server has counted this gradient. The server reads the
// memory again, so changed bytes are another contribution.
void FlippingRelay::DamageGradient(const v1::PushPullRequest& request,
                                   const std::string& message) {
  const std::string name = absl::StrCat("Gradient, ", wire_);
  const std::string state = StateOf(request.address());
  const v1::SharedRange& range = request.ranges(0);
  char* const gradient = gradients_ + range.offset();
  const std::string was(gradient, range.bytes());
  for (int i = 0; i < kGradientFlips && !accepted_; ++i) {
    flips_->Damage(gradient, was.size());
    const absl::Status status = server_.Send(kPushPull, message).status();
    was.copy(gradient, was.size());
    // A flipped bit can make a number infinite.
    accepted_ = !absl::IsAborted(status) && !absl::IsInvalidArgument(status);
    if (accepted_) {
      ADD_FAILURE() << name << ": a damaged gradient is answered: " << status;
    } else {
      flips_->CountRefused(name);
    }
  }
  EXPECT_TRUE(StateOf(request.address()) == state)
      << name << ": the server has other weights or clocks";
}

template <typename Response>
std::string FlippingRelay::DamagedAnswer(const std::string& answer,
                                         bool in_memory, uint32_t block,
                                         Calls* calls) {
  Response response;
  EXPECT_TRUE(response.ParseFromString(answer));
  if constexpr (std::is_same_v<Response, v1::PushPullResponse>) {
    if (in_memory && response.has_shared_offset()) {
      const auto bytes =
          static_cast<size_t>(partition_.blocks(0)[block].bytes());
      calls->memory =
          FindWritable(response.shared_offset(), bytes, response.crc32c());
      EXPECT_NE(calls->memory, nullptr);
      if (calls->memory == nullptr) return answer;
      calls->memory_was.assign(calls->memory, bytes);
      flips_->Damage(calls->memory, bytes);
      calls->damaged.push_back(absl::StrCat("Weights, ", wire_));
      return answer;
    }
  }
  const size_t header_bytes = HeaderBytes(response, answer);
  if (header_bytes == 0) return answer;  // an empty message
  const std::string name = NameOf(response);
  std::string damaged = flips_->Damaged(answer, header_bytes);
  if (SameMessage(response, damaged)) {
    flips_->CountSame(name);
  } else {
    calls->damaged.push_back(name);
  }
  return damaged;
}

void FlippingRelay::EndRound(int clients) {
  absl::MutexLock lock(&mu_);
  for (const auto& [key, calls] : calls_) {
    const int repeated = calls.attempts - clients;
    // On a busy machine a call can also be repeated after a timeout.
    EXPECT_GE(repeated, static_cast<int>(calls.damaged.size()))
        << wire_ << ", " << key.first << ": repeated calls and damaged answers";
    EXPECT_EQ(calls.memory, nullptr) << wire_ << ": damaged weights were used";
    for (int i = 0; i < std::min<int>(repeated, calls.damaged.size()); ++i) {
      flips_->CountRefused(calls.damaged[i]);
    }
  }
  calls_.clear();
  ++round_;
}

std::string FlippingRelay::StateOf(const v1::BlockAddress& address) {
  v1::ClockRequest clock;
  *clock.mutable_address() = address;
  clock.set_incarnation(kIncarnation);
  SignHeader(&clock);
  const auto progress = server_.Send(kReadClock, clock.SerializeAsString());
  TRIBUTARY_EXPECT_OK(progress);
  v1::ClockResponse response;
  if (!progress.ok() || !response.ParseFromString(*progress) ||
      !response.initialized()) {
    return "not initialized";
  }
  v1::PullRequest pull;
  *pull.mutable_address() = address;
  pull.set_unrounded(true);
  SignHeader(&pull);
  const auto weights = server_.Send(kPull, pull.SerializeAsString());
  TRIBUTARY_EXPECT_OK(weights);
  return absl::StrCat(*progress, weights.value_or(""));
}

std::string FlippingRelay::Counters() const {
  const v1::ServerStatusResponse status = cluster_->server(0).GetStatus();
  return absl::StrCat("contributions ", status.contributions(), ", duplicates ",
                      status.duplicates(), ", conflicts ", status.conflicts(),
                      ", dropped ", status.dropped(), ", not finite ",
                      status.nonfinite(), ", versions ", status.min_version(),
                      " to ", status.max_version(), ", held bytes ",
                      status.held_bytes());
}

}  // namespace tributary::testing
