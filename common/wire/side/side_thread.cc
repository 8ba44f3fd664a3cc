// SPDX-License-Identifier: Apache-2.0
#include "common/wire/side/side_thread.h"

#include <utility>

#include "common/wire/calls/completion_tag.h"
#include "common/wire/deadline.h"

namespace tributary {

SideThread::SideThread(std::vector<std::string> services,
                       std::shared_ptr<const CallGuard> guard, bool reflection)
    : calls_(std::move(services), std::move(guard), reflection) {}

void SideThread::Add(grpc::ServerBuilder* builder) {
  builder->RegisterAsyncGenericService(calls_.service());
  queue_ = builder->AddCompletionQueue();
}

void SideThread::Start() {
  // Done here, not on the thread: gRPC may forget a call that is requested
  // while the server shuts down, and the queue would never be empty.
  calls_.Start(queue_.get());
  thread_ = std::thread([this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      if (tag == nullptr) {
        Obey();
      } else {
        static_cast<CompletionTag*>(tag)->Proceed(ok);
      }
    }
  });
}

void SideThread::Obey() {
  absl::MutexLock lock(&mu_);
  if (std::exchange(go_home_, false)) calls_.GoHome();
  if (!std::exchange(stop_, false)) return;
  calls_.Drain();
  queue_->Shutdown();
}

void SideThread::GoHome() {
  if (!thread_.joinable() || stopped_) return;
  absl::MutexLock lock(&mu_);
  go_home_ = true;
  home_alarm_.Set(queue_.get(), DeadlineAfter(absl::ZeroDuration()), nullptr);
}

void SideThread::Stop() {
  if (queue_ == nullptr || std::exchange(stopped_, true)) return;
  if (!thread_.joinable()) {
    queue_->Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_->Next(&tag, &ok);) {
    }
    return;
  }
  {
    // The thread, which the other alarm may wake, must not see `stop_` before
    // this alarm is set: an alarm on a queue that is shut down aborts.
    absl::MutexLock lock(&mu_);
    stop_ = true;
    stop_alarm_.Set(queue_.get(), DeadlineAfter(absl::ZeroDuration()), nullptr);
  }
  thread_.join();
}

}  // namespace tributary
