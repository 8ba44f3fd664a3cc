// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "common/wire/deadline.h"

namespace tributary {

// An operation on a completion queue: the queue returns it when the operation
// ends.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Proceed(bool ok) = 0;
};

// Runs a function on the thread that polls a queue, soon. Deletes itself.
class PostedWork final : public CompletionTag {
 public:
  static void Post(grpc::CompletionQueue* queue, std::function<void()> work) {
    new PostedWork(queue, std::move(work));
  }
  void Proceed(bool /*ok*/) override {
    work_();
    delete this;
  }

 private:
  PostedWork(grpc::CompletionQueue* queue, std::function<void()> work)
      : work_(std::move(work)) {
    alarm_.Set(queue, DeadlineAfter(absl::ZeroDuration()),
               static_cast<CompletionTag*>(this));
  }

  const std::function<void()> work_;
  grpc::Alarm alarm_;
};

}  // namespace tributary
