// SPDX-License-Identifier: Apache-2.0
#include "kernels/nccl_comm.h"

#include <chrono>
#include <thread>
#include <utility>

#include "common/base/check.h"

namespace tributary {
namespace {

using Code = NcclApi::Code;

// Polls without a pause for the first few hundred microseconds, so that a short
// call ends on time: a sleeping thread wakes up later than it asked for.
constexpr int kLooksWithoutPause = 200;
constexpr std::chrono::microseconds kPause(20);

// True when the ranges of all ranks have the same length, so that one NCCL call
// does the work.
bool Even(const std::vector<int64_t>& bounds) {
  for (size_t r = 1; r + 1 < bounds.size(); ++r) {
    if (bounds[r + 1] - bounds[r] != bounds[1] - bounds[0]) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<NcclComm> NcclComm::Connect(Options options,
                                            NcclOutcome* outcome) {
  std::unique_ptr<NcclComm> comm(new NcclComm(std::move(options)));
  *outcome = comm->Open();
  return outcome->ok() ? std::move(comm) : nullptr;
}

NcclOutcome NcclComm::Open() {
  NcclApi& api = *options_.api;
  if (api.NewStream(&stream_) == Code::kFailed ||
      api.NewEvent(&done_) == Code::kFailed ||
      api.Connect(options_.size, options_.id, options_.rank, &comm_) ==
          Code::kFailed) {
    return Break(NcclOutcome::Code::kFailed, api.LastError(comm_));
  }
  return AwaitFor(options_.connect_micros, [&] { return api.State(comm_); });
}

NcclComm::~NcclComm() {
  Abort();
  if (done_ != nullptr) options_.api->FreeEvent(done_);
  if (stream_ != nullptr) options_.api->FreeStream(stream_);
}

void NcclComm::Abort() {
  if (comm_ == nullptr) return;
  options_.api->Abort(std::exchange(comm_, nullptr));
  if (broken_.ok()) broken_ = {NcclOutcome::Code::kGivenUp, "aborted"};
}

NcclOutcome NcclComm::Break(NcclOutcome::Code code, const std::string& why) {
  broken_ = {code, why};
  Abort();
  return broken_;
}

NcclOutcome NcclComm::AwaitFor(int64_t micros,
                               const std::function<Code()>& look) {
  const int64_t begin = options_.clock->NowMicros();
  int looks = 0;
  while (true) {
    // Checked first: a call that is done succeeds, even past its deadline.
    const Code code = look();
    if (code == Code::kDone) return NcclOutcome();
    if (code == Code::kFailed || options_.api->State(comm_) == Code::kFailed) {
      return Break(NcclOutcome::Code::kFailed, options_.api->LastError(comm_));
    }
    if (options_.give_up && options_.give_up()) {
      return Break(NcclOutcome::Code::kGivenUp, "given up");
    }
    if (options_.clock->NowMicros() - begin >= micros) {
      return Break(NcclOutcome::Code::kLate, "not done in time");
    }
    if (options_.pause) {
      options_.pause();
    } else if (looks < kLooksWithoutPause) {
      ++looks;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
}

NcclOutcome NcclComm::AwaitEvent(NcclApi::Event done) {
  if (comm_ == nullptr) return broken_;
  return Await([&] { return options_.api->Query(done); });
}

NcclOutcome NcclComm::Begin(const Enqueue& enqueue, NcclApi::Event done) {
  if (comm_ == nullptr) return broken_;
  NcclApi& api = *options_.api;
  Code code = api.FollowOps(stream_);
  if (code != Code::kFailed) code = api.BeginGroup();
  if (code != Code::kFailed) {
    const Code asked = enqueue();
    code = api.EndGroup();  // always ends the group, even after a failed call
    if (asked == Code::kFailed) code = asked;
  }
  if (code == Code::kFailed) {
    return Break(NcclOutcome::Code::kFailed, api.LastError(comm_));
  }
  // NCCL has enqueued the calls on the stream only when it reports kDone, so
  // the event is recorded after that.
  NcclOutcome outcome = Await([&] { return api.State(comm_); });
  if (!outcome.ok()) return outcome;
  if (api.Record(done, stream_) == Code::kFailed) {
    return Break(NcclOutcome::Code::kFailed, api.LastError(comm_));
  }
  return outcome;
}

NcclOutcome NcclComm::Run(const Enqueue& enqueue) {
  const NcclOutcome begun = Begin(enqueue, done_);
  return begun.ok() ? AwaitEvent(done_) : begun;
}

NcclOutcome NcclComm::AllReduce(float* data, int64_t n) {
  return Run([&] { return options_.api->AllReduce(data, n, comm_, stream_); });
}

NcclOutcome NcclComm::ReduceScatter(float* data,
                                    const std::vector<int64_t>& bounds) {
  return Run([&] {
    NcclApi& api = *options_.api;
    if (Even(bounds)) {
      return api.ReduceScatter(data, bounds[1], rank(), comm_, stream_);
    }
    Code code = Code::kDone;
    for (int root = 0; root < size() && code != Code::kFailed; ++root) {
      const int64_t n = bounds[root + 1] - bounds[root];
      if (n == 0) continue;
      code = api.Reduce(data + bounds[root], n, root, comm_, stream_);
    }
    return code;
  });
}

NcclOutcome NcclComm::AllGather(float* data,
                                const std::vector<int64_t>& bounds) {
  return Run([&] {
    NcclApi& api = *options_.api;
    if (Even(bounds)) {
      return api.AllGather(data, bounds[1], rank(), comm_, stream_);
    }
    Code code = Code::kDone;
    for (int root = 0; root < size() && code != Code::kFailed; ++root) {
      const int64_t n = bounds[root + 1] - bounds[root];
      if (n == 0) continue;
      code = api.Broadcast(data + bounds[root], n, root, comm_, stream_);
    }
    return code;
  });
}

NcclOutcome NcclComm::Broadcast(float* data, int64_t n, int root) {
  return Run(
      [&] { return options_.api->Broadcast(data, n, root, comm_, stream_); });
}

NcclComm::Transfer NcclComm::BeginSend(const float* data, int64_t n, int to) {
  Transfer transfer(this);
  options_.api->NewEvent(&transfer.done_);
  transfer.begun_ =
      Begin([&] { return options_.api->Send(data, n, to, comm_, stream_); },
            transfer.done_);
  return transfer;
}

NcclComm::Transfer NcclComm::BeginReceive(float* data, int64_t n, int from) {
  Transfer transfer(this);
  options_.api->NewEvent(&transfer.done_);
  transfer.begun_ = Begin(
      [&] { return options_.api->Receive(data, n, from, comm_, stream_); },
      transfer.done_);
  return transfer;
}

NcclOutcome NcclComm::Finish(Transfer* transfer) {
  if (!transfer->begun_.ok()) return transfer->begun_;
  return AwaitEvent(transfer->done_);
}

NcclComm::Transfer::Transfer(Transfer&& other) noexcept
    : comm_(other.comm_),
      done_(std::exchange(other.done_, nullptr)),
      begun_(std::move(other.begun_)) {}

NcclComm::Transfer::~Transfer() {
  if (done_ == nullptr) return;
  NcclApi& api = *comm_->options_.api;
  if (begun_.ok() && api.Query(done_) == Code::kInProgress) comm_->Abort();
  api.FreeEvent(done_);
}

NcclOutcome NcclComm::BeginClose() {
  if (comm_ == nullptr) return broken_;
  closing_ = true;
  if (options_.api->Finalize(comm_) == Code::kFailed) {
    return Break(NcclOutcome::Code::kFailed, options_.api->LastError(comm_));
  }
  return NcclOutcome();
}

NcclOutcome NcclComm::Close() {
  if (!closing_) BeginClose();
  if (comm_ == nullptr) return broken_;
  NcclApi& api = *options_.api;
  NcclOutcome outcome =
      AwaitFor(options_.close_micros, [&] { return api.State(comm_); });
  if (!outcome.ok()) return outcome;
  api.Destroy(std::exchange(comm_, nullptr));
  broken_ = {NcclOutcome::Code::kGivenUp, "closed"};
  return outcome;
}

}  // namespace tributary
