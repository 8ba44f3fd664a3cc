#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kernels/nccl_api.h"

namespace tributary {

// What became of a call.
struct NcclOutcome {
  enum class Code {
    kDone,
    kFailed,   // NCCL says so, or the device
    kLate,     // not done within the timeout
    kGivenUp,  // Options::give_up
  };
  Code code = Code::kDone;
  std::string message;

  bool ok() const { return code == Code::kDone; }
};

// A communicator of NCCL on a stream of its own whose calls end: each looks
// again and again whether it is done, NCCL has met an error, it shall be given
// up or it takes too long. In all but the first case the communicator is
// aborted, so that nothing of it runs on the device any more, and every later
// call says what the first one did. Arrays are float32 in the device's memory;
// what its Ops has been asked before a call comes before it. For one thread.
class NcclComm {
 public:
  struct Options {
    NcclApi* api = nullptr;  // outlives it
    int rank = 0;
    int size = 1;
    NcclId id = {};
    int64_t timeout_micros = 120'000'000;  // of every call
    int64_t connect_micros = 120'000'000;
    int64_t close_micros = 120'000'000;
    // Asked at every look: true ends the call.
    std::function<bool()> give_up;
    const Clock* clock = &Clock::Real();
    // What the thread does between two looks; none: lets others run, then
    // sleeps for some microseconds.
    std::function<void()> pause;
  };

  // nullptr and what happened. Every rank connects.
  static std::unique_ptr<NcclComm> Connect(Options options,
                                           NcclOutcome* outcome);
  // Aborts, unless it is closed.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // As those of Communicator (worker/collective), without weights.
  NcclOutcome AllReduce(float* data, int64_t n);
  NcclOutcome ReduceScatter(float* data, const std::vector<int64_t>& bounds);
  NcclOutcome AllGather(float* data, const std::vector<int64_t>& bounds);
  NcclOutcome Broadcast(float* data, int64_t n, int root);
  NcclOutcome AllToAll(const float* in, float* out, int64_t n);

  // A message under way; both sides name the same n and each other.
  class Transfer {
   public:
    Transfer(Transfer&& other) noexcept;
    Transfer& operator=(Transfer&& other) = delete;
    ~Transfer();  // aborts the communicator while the device uses the memory

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

  // Gives the communicator back once every rank has come to this, or aborts it
  // after close_micros; then only the destructor may follow. Who has several
  // begins with all of them first, or waits in a circle with those who close
  // them in another order.
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
  // One call, enqueued and waited for.
  NcclOutcome Run(const Enqueue& enqueue);
  // Enqueues a group of calls; `done` marks their end.
  NcclOutcome Begin(const Enqueue& enqueue, NcclApi::Event done);
  // Looks until `look` says that it is done.
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
  NcclOutcome broken_;  // the first call that was not done
  bool closing_ = false;
};

}  // namespace tributary
