// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_calls.h"

#include <algorithm>
#include <utility>

#include "common/host/steady_waits.h"
#include "tests/testing/relay/byte_buffers.h"

namespace tributary::simulation {

struct SimulatedCalls::Pending {
  bool is_alarm;
  CompletionTag* tag;  // null: CallAndWait waits for `answer`
  std::shared_ptr<TagQueue> tags;
  std::weak_ptr<std::list<PendingPtr>> among;
  bool ended = false;
  absl::StatusOr<grpc::ByteBuffer> answer = absl::UnknownError("none yet");

  // Only the first end counts.
  static void End(const PendingPtr& pending,
                  absl::StatusOr<grpc::ByteBuffer> answer) {
    if (std::exchange(pending->ended, true)) return;
    pending->answer = std::move(answer);
    if (const auto all = pending->among.lock()) all->remove(pending);
    if (pending->tag != nullptr) pending->tags->Add(pending->tag);
  }
  // Takes the answer out: events of the network may keep `pending` for long,
  // and the memory of an answer's weights must not stay with it.
  static absl::StatusOr<grpc::ByteBuffer> Take(Pending& pending) {
    return std::exchange(pending.answer, absl::UnknownError("taken"));
  }
};

class SimulatedCalls::PendingCall final : public Call {
 public:
  explicit PendingCall(PendingPtr pending) : pending_(std::move(pending)) {}
  void Cancel() override {
    Pending::End(pending_, absl::CancelledError("the call was cancelled"));
  }
  absl::StatusOr<grpc::ByteBuffer> TakeAnswer() override {
    return Pending::Take(*pending_);
  }

 private:
  const PendingPtr pending_;
};

class SimulatedCalls::PendingAlarm final : public Alarm {
 public:
  explicit PendingAlarm(PendingPtr pending) : pending_(std::move(pending)) {}
  void Cancel() override {
    Pending::End(pending_, absl::CancelledError("the alarm was cancelled"));
  }

 private:
  const PendingPtr pending_;
};

SimulatedCalls::SimulatedCalls(Context* context, Process* process,
                               std::optional<uint32_t> rank,
                               const v1::Plan& plan,
                               std::shared_ptr<TagQueue> tags)
    : context_(context),
      process_(process),
      rank_(rank),
      servers_(plan.servers().begin(), plan.servers().end()),
      tags_(std::move(tags)),
      pending_(std::make_shared<std::list<PendingPtr>>()) {}

SimulatedCalls::PendingPtr SimulatedCalls::Add(bool is_alarm,
                                               CompletionTag* tag) {
  pending_->push_back(
      std::make_shared<Pending>(Pending{is_alarm, tag, tags_, pending_}));
  return pending_->back();
}

grpc::ByteBuffer SimulatedCalls::Carry(const grpc::ByteBuffer& message,
                                       const char* fault) {
  if (message.Length() == 0 || !context_->network.Damages(fault)) {
    return message;
  }
  std::string bytes = testing::BytesOf(message);
  const uint64_t bit = context_->world.random().Next() % (8 * bytes.size());
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return testing::BufferOf(bytes);
}

void SimulatedCalls::Send(int server, const char* method,
                          const grpc::ByteBuffer& request,
                          absl::Duration timeout, const PendingPtr& call) {
  const DataCall data{method, rank_, Carry(request, "request damaged"),
                      request};
  context_->network.Call<grpc::ByteBuffer>(
      process_, servers_[server], method, World::Kind::kWork,
      absl::ToInt64Microseconds(timeout),
      [data](Process& process, Reply<grpc::ByteBuffer> reply) {
        static_cast<DataServer&>(process).Take(data, std::move(reply));
      },
      [this, call](absl::StatusOr<grpc::ByteBuffer> answer) {
        if (call->ended) return;  // `this` may be gone
        if (answer.ok()) answer = Carry(*answer, "answer damaged");
        Pending::End(call, std::move(answer));
      });
}

std::unique_ptr<OutgoingCalls::Call> SimulatedCalls::Start(
    int server, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout, CompletionTag* tag) {
  const PendingPtr call = Add(/*is_alarm=*/false, tag);
  Send(server, method, request, timeout, call);
  return std::make_unique<PendingCall>(call);
}

std::unique_ptr<OutgoingCalls::Alarm> SimulatedCalls::SetAlarm(
    absl::Duration pause, CompletionTag* tag) {
  const PendingPtr alarm = Add(/*is_alarm=*/true, tag);
  context_->world.After(absl::ToInt64Microseconds(pause), process_,
                        World::Kind::kWork,
                        [alarm] { Pending::End(alarm, grpc::ByteBuffer()); });
  return std::make_unique<PendingAlarm>(alarm);
}

CallQueue::Next SimulatedCalls::HandleNext(absl::Duration timeout) {
  absl::Mutex mu;
  const auto ready = [this] { return !tags_->empty(); };
  {
    const absl::MutexLock lock(&mu);
    AwaitFor(&mu, absl::Condition(&ready), timeout);
  }
  if (tags_->empty() && context_->fibers.killed()) {
    // The world has no more events for this thread, whose objects end now.
    const std::list<PendingPtr> left = *pending_;
    for (const PendingPtr& pending : left) {
      Pending::End(pending, absl::CancelledError("the process is gone"));
    }
  }
  if (tags_->empty()) return Next::kTimeout;
  tags_->Handle();
  return Next::kHandled;
}

absl::StatusOr<grpc::ByteBuffer> SimulatedCalls::CallAndWait(
    int server, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout) {
  const PendingPtr call = Add(/*is_alarm=*/false, /*tag=*/nullptr);
  Send(server, method, request, timeout, call);
  context_->fibers.Await([&call] { return call->ended; });
  if (!call->ended) return absl::CancelledError("the process is gone");
  return Pending::Take(*call);
}

bool SimulatedCalls::waits() const {
  return !pending_->empty() && tags_->empty() &&
         std::none_of(pending_->begin(), pending_->end(),
                      [](const PendingPtr& p) { return p->is_alarm; });
}

}  // namespace tributary::simulation
