// SPDX-License-Identifier: Apache-2.0
#include "common/wire/side_thread.h"

#include <utility>

#include "common/wire/completion_tag.h"

namespace tributary {

SideThread::SideThread(std::vector<std::string> services,
                       std::shared_ptr<const CallGuard> guard, bool reflection)
    : calls_(std::move(services), std::move(guard), reflection) {}

void SideThread::Add(grpc::ServerBuilder* builder) {
  builder->RegisterAsyncGenericService(calls_.service());
  queue_ = builder->AddCompletionQueue();
}

void SideThread::Start() {
  calls_.Start(queue_.get());
  thread_ = std::thread([this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      static_cast<CompletionTag*>(tag)->Proceed(ok);
    }
  });
}

void SideThread::GoHome() {
  if (thread_.joinable() && !stopped_) {
    PostedWork::Post(queue_.get(), [this] { calls_.GoHome(); });
  }
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
  PostedWork::Post(queue_.get(), [this] {
    calls_.Drain();
    queue_->Shutdown();
  });
  thread_.join();
}

}  // namespace tributary
