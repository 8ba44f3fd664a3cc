// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <deque>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/wire/calls/completion_tag.h"
#include "common/wire/deadline.h"

namespace tributary {

// Runs functions soon on the thread that polls a queue, in the order of the
// calls of Post. Alarms alone would not keep this order. Thread-safe. It must
// live until the queue is empty.
class PostedWork {
 public:
  // The queue must not be shut down yet; the last function may shut it down.
  void Post(grpc::CompletionQueue* queue, std::function<void()> work) {
    // The lock keeps the function from running, at an earlier function's alarm,
    // before its own alarm is set: the function may shut the queue down, and
    // setting an alarm would then end the process.
    absl::MutexLock lock(&mu_);
    work_.push_back(std::move(work));
    new Wake(queue, this);
  }

 private:
  // Runs the oldest function. Deletes itself.
  class Wake final : public CompletionTag {
   public:
    Wake(grpc::CompletionQueue* queue, PostedWork* owner) : owner_(owner) {
      alarm_.Set(queue, DeadlineAfter(absl::ZeroDuration()),
                 static_cast<CompletionTag*>(this));
    }
    void Proceed(bool /*ok*/) override {
      owner_->RunOldest();
      delete this;
    }

   private:
    PostedWork* const owner_;
    grpc::Alarm alarm_;
  };

  void RunOldest() {
    std::function<void()> oldest;
    {
      absl::MutexLock lock(&mu_);
      oldest = std::move(work_.front());
      work_.pop_front();
    }
    oldest();
  }

  absl::Mutex mu_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
