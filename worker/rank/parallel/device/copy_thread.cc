// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/device/copy_thread.h"

#include <utility>

namespace tributary {

CopyThread::CopyThread() : thread_([this] { Run(); }) {}

CopyThread::~CopyThread() {
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  thread_.join();
}

void CopyThread::Add(Copy copy) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back(std::move(copy));
  ++left_;
}

absl::Status CopyThread::Wait() {
  const auto ended = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mu_) { return left_ == 0; };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&ended));
  return status_;
}

void CopyThread::Run() {
  const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || !waiting_.empty();
  };
  while (true) {
    Copy copy;
    bool failed = false;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&wake));
      if (closing_) return;
      copy = std::move(waiting_.front());
      waiting_.pop_front();
      failed = !status_.ok();
    }
    const absl::Status status = failed ? absl::OkStatus() : copy();
    absl::MutexLock lock(&mu_);
    status_.Update(status);
    --left_;
  }
}

}  // namespace tributary
