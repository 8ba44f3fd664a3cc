#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "kernels/ops.h"

namespace tributary {

// By which the ranks of a communicator find each other: NCCL's ncclUniqueId.
using NcclId = std::array<char, 128>;

// The functions of NCCL, and of CUDA's streams and events, that a group of
// devices uses, each as its library has it: none waits for another rank. They
// stand behind an interface so that what is made of them (NcclComm) needs
// neither library to be built or tested.
class NcclApi {
 public:
  // kInProgress: neither done nor failed; State, or Query, says what became of
  // it. kFailed: LastError says why.
  enum class Code { kDone, kInProgress, kFailed };
  // ncclComm_t, cudaStream_t, cudaEvent_t.
  using Comm = void*;
  using Stream = void*;
  using Event = void*;

  virtual ~NcclApi() = default;

  // The same for two processes that use one device, and for no others.
  virtual std::string device_id() const = 0;

  virtual Code NewId(NcclId* id) = 0;
  // Begins to connect; sets `comm` unless it fails.
  virtual Code Connect(int size, const NcclId& id, int rank, Comm* comm) = 0;
  // Of what has been asked of the communicator, and what it has met since.
  virtual Code State(Comm comm) = 0;
  virtual Code Finalize(Comm comm) = 0;
  // The communicator is gone after either. Abort ends what is under way on the
  // device, whoever it waits for.
  virtual void Destroy(Comm comm) = 0;
  virtual void Abort(Comm comm) = 0;
  virtual std::string LastError(Comm comm) = 0;  // null: of no communicator

  // Calls between these two are one, and begin with the second.
  virtual Code BeginGroup() = 0;
  virtual Code EndGroup() = 0;
  // Sums; data stays where it is. n: elements of the array, of ReduceScatter
  // and AllGather those of one rank.
  virtual Code AllReduce(float* data, size_t n, Comm comm, Stream stream) = 0;
  virtual Code Reduce(float* data, size_t n, int root, Comm comm,
                      Stream stream) = 0;
  virtual Code ReduceScatter(float* data, size_t n, int rank, Comm comm,
                             Stream stream) = 0;
  virtual Code AllGather(float* data, size_t n, int rank, Comm comm,
                         Stream stream) = 0;
  virtual Code Broadcast(float* data, size_t n, int root, Comm comm,
                         Stream stream) = 0;
  virtual Code Send(const float* data, size_t n, int to, Comm comm,
                    Stream stream) = 0;
  virtual Code Receive(float* data, size_t n, int from, Comm comm,
                       Stream stream) = 0;

  virtual Code NewStream(Stream* stream) = 0;
  virtual void FreeStream(Stream stream) = 0;
  // What the device's Ops has been asked so far comes before what `stream` is
  // asked from now on.
  virtual Code FollowOps(Stream stream) = 0;
  virtual Code NewEvent(Event* event) = 0;
  virtual void FreeEvent(Event event) = 0;
  // Marks what the stream has been asked so far; then whether it is done.
  virtual Code Record(Event event, Stream stream) = 0;
  virtual Code Query(Event event) = 0;
};

// NCCL on the device of `ops`, which outlives it; or nullptr and the reason: no
// device, no library, one that is too old, built without it. The library is
// opened when it is first asked for and never linked.
std::unique_ptr<NcclApi> OpenNccl(Ops* ops, std::string* why_not);

}  // namespace tributary
