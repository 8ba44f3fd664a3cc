// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kernels/nccl_api.h"

namespace tributary {

// How a call ended.
struct NcclOutcome {
  enum class Code {
    kDone,
    kFailed,   // NCCL or the device reported an error
    kLate,     // not done within the timeout
    kGivenUp,  // Options::give_up returned true
  };
  Code code = Code::kDone;
  std::string message;

  bool ok() const { return code == Code::kDone; }
};

// An NCCL communicator on a stream of its own. No call waits forever: each
// polls until it is done, NCCL reports an error, give_up asks to stop, or the
// timeout passes. In the last three cases the communicator is aborted, so that
// none of its work stays on the device, and every later call returns the
// outcome of the first failed one. Arrays are float32 in device memory. A call
// starts after all work that the Ops has enqueued before. Not thread-safe.
class NcclComm {
 public:
  struct Options {
    NcclApi* api = nullptr;  // must outlive the communicator
    int rank = 0;
    int size = 1;
    NcclId id = {};
    int64_t timeout_micros = 120'000'000;  // for each call
    int64_t connect_micros = 120'000'000;
    int64_t close_micros = 120'000'000;
    // Called at every poll; true ends the call.
    std::function<bool()> give_up;
    const Clock* clock = &Clock::Real();
    // Called between two polls. By default the thread yields, and later sleeps
    // for some microseconds.
    std::function<void()> pause;
  };

  // Every rank must connect. On failure returns nullptr and sets `outcome`.
  static std::unique_ptr<NcclComm> Connect(Options options,
                                           NcclOutcome* outcome);
  // Aborts unless the communicator is closed.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // As in Communicator (worker/rank/collective), without weights.
  NcclOutcome AllReduce(float* data, int64_t n);
  NcclOutcome ReduceScatter(float* data, const std::vector<int64_t>& bounds);
  NcclOutcome AllGather(float* data, const std::vector<int64_t>& bounds);
  NcclOutcome Broadcast(float* data, int64_t n, int root);

  // A message in flight. Sender and receiver must name each other and the same
  // n.
  class Transfer {
   public:
    Transfer(Transfer&& other) noexcept;
    Transfer& operator=(Transfer&& other) = delete;
    ~Transfer();  // aborts the communicator if the device still uses memory

   private:
    friend class NcclComm;
    explicit Transfer(NcclComm* comm) : comm_(comm) {}
    NcclComm* comm_;
    NcclApi::Event done_ = nullptr;
    NcclOutcome begun_;
  };
  Transfer BeginSend(const float* data, int64_t n, int to);
  Transfer BeginReceive(float* data, int64_t n, int from);
  NcclOutcome Finish(Transfer* transfer);

  // Close closes the communicator once every rank has called it, or aborts it
  // after close_micros. Only the destructor may be called afterwards. A rank
  // with several communicators calls BeginClose on all of them first, since
  // ranks that close them in different orders would otherwise deadlock.
  NcclOutcome BeginClose();
  NcclOutcome Close();
  void Abort();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }

 private:
  using Code = NcclApi::Code;
  using Enqueue = std::function<Code()>;

  explicit NcclComm(Options options) : options_(std::move(options)) {}
  NcclOutcome Open();
  // Enqueues one call and waits for it.
  NcclOutcome Run(const Enqueue& enqueue);
  // Enqueues a group of calls and records `done` behind them.
  NcclOutcome Begin(const Enqueue& enqueue, NcclApi::Event done);
  // Polls until `look` returns kDone.
  NcclOutcome Await(const std::function<Code()>& look) {
    return AwaitFor(options_.timeout_micros, look);
  }
  NcclOutcome AwaitFor(int64_t micros, const std::function<Code()>& look);
  NcclOutcome AwaitEvent(NcclApi::Event done);
  NcclOutcome Break(NcclOutcome::Code code, const std::string& why);

  const Options options_;
  NcclApi::Comm comm_ = nullptr;
  NcclApi::Stream stream_ = nullptr;
  NcclApi::Event done_ = nullptr;
  NcclOutcome broken_;  // the outcome of the first failed call
  bool closing_ = false;
};

}  // namespace tributary
