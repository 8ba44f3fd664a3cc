// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/calls/outgoing_calls.h"
#include "tests/simulation/job/context.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// A request as it arrives at a server.
struct DataCall {
  const char* method;
  std::optional<uint32_t> rank;  // of the caller; none for a server
  grpc::ByteBuffer request;  // perhaps with a bit that has flipped on the way
  grpc::ByteBuffer sent;
};

// A process that takes such requests.
class DataServer : public Process {
 public:
  using Process::Process;
  virtual void Take(const DataCall& call, Reply<grpc::ByteBuffer> reply) = 0;
};

// Tags that wait until they are handled.
class TagQueue {
 public:
  // on_tag: called after each new tag; or null.
  explicit TagQueue(std::function<void()> on_tag = nullptr)
      : on_tag_(std::move(on_tag)) {}

  void Add(CompletionTag* tag) {
    tags_.push_back(tag);
    if (on_tag_) on_tag_();
  }
  bool empty() const { return tags_.empty(); }
  // Handles the oldest one.
  void Handle() {
    CompletionTag* const tag = tags_.front();
    tags_.pop_front();
    tag->Proceed(/*ok=*/true);
  }

 private:
  const std::function<void()> on_tag_;
  std::deque<CompletionTag*> tags_;
};

// The calls of a simulated process to the servers of a plan, over the simulated
// network. Requests and answers are the product's bytes; one of their bits may
// flip.
class SimulatedCalls final : public CallQueue {
 public:
  // rank: that of the caller; none if the caller is a server.
  SimulatedCalls(Context* context, Process* process,
                 std::optional<uint32_t> rank, const v1::Plan& plan,
                 std::shared_ptr<TagQueue> tags);

  std::unique_ptr<Call> Start(int server, const char* method,
                              const grpc::ByteBuffer& request,
                              absl::Duration timeout,
                              CompletionTag* tag) override;
  std::unique_ptr<Alarm> SetAlarm(absl::Duration pause,
                                  CompletionTag* tag) override;
  Next HandleNext(absl::Duration timeout) override;
  void Shutdown() override {}
  absl::StatusOr<grpc::ByteBuffer> CallAndWait(int server, const char* method,
                                               const grpc::ByteBuffer& request,
                                               absl::Duration timeout) override;

  // True when every call has been made and waits for its answer.
  bool waits() const;

 private:
  // An alarm or a call that has not ended.
  struct Pending;
  using PendingPtr = std::shared_ptr<Pending>;
  class PendingCall;
  class PendingAlarm;

  PendingPtr Add(bool is_alarm, CompletionTag* tag);
  void Send(int server, const char* method, const grpc::ByteBuffer& request,
            absl::Duration timeout, const PendingPtr& call);
  // A copy of the message, of which one bit may have flipped.
  grpc::ByteBuffer Carry(const grpc::ByteBuffer& message, const char* fault);

  Context* const context_;
  Process* const process_;
  const std::optional<uint32_t> rank_;
  const std::vector<std::string> servers_;
  const std::shared_ptr<TagQueue> tags_;
  // Shared with events of the world, which may happen after this object's end.
  const std::shared_ptr<std::list<PendingPtr>> pending_;
};

}  // namespace tributary::simulation
