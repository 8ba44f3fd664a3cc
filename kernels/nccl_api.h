// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "kernels/ops.h"

namespace tributary {

// The ID by which the ranks of a communicator find each other (ncclUniqueId).
using NcclId = std::array<char, 128>;

// The functions of NCCL and of CUDA's streams and events that collectives use,
// as the libraries declare them. None of them waits for another rank. They are
// an interface so that NcclComm builds and is tested without either library.
class NcclApi {
 public:
  // kInProgress: neither done nor failed; State or Query tells how it ended.
  // kFailed: LastError tells why.
  enum class Code { kDone, kInProgress, kFailed };
  // ncclComm_t, cudaStream_t, cudaEvent_t.
  using Comm = void*;
  using Stream = void*;
  using Event = void*;

  virtual ~NcclApi() = default;

  // Equal for two processes exactly when they use the same device.
  virtual std::string device_id() const = 0;

  virtual Code NewId(NcclId* id) = 0;
  // Starts to connect. Sets `comm` unless it fails.
  virtual Code Connect(int size, const NcclId& id, int rank, Comm* comm) = 0;
  // The state of the communicator's calls, including asynchronous errors.
  virtual Code State(Comm comm) = 0;
  virtual Code Finalize(Comm comm) = 0;
  // Both free the communicator. Abort also stops its work on the device,
  // whichever ranks that work waits for.
  virtual void Destroy(Comm comm) = 0;
  virtual void Abort(Comm comm) = 0;
  virtual std::string LastError(Comm comm) = 0;  // `comm` may be null

  // NCCL runs the calls between these two as one, which starts at EndGroup.
  virtual Code BeginGroup() = 0;
  virtual Code EndGroup() = 0;
  // The reductions sum. All calls work in place. n: elements of the array; for
  // ReduceScatter and AllGather, elements per rank.
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
  // Makes later work on `stream` wait for all work that the device's Ops has
  // enqueued so far.
  virtual Code FollowOps(Stream stream) = 0;
  virtual Code NewEvent(Event* event) = 0;
  virtual void FreeEvent(Event event) = 0;
  // Record marks the end of the work enqueued on the stream so far; Query tells
  // whether that work is done.
  virtual Code Record(Event event, Stream stream) = 0;
  virtual Code Query(Event event) = 0;
};

// Opens NCCL on the device of `ops`, which must outlive the result. Returns
// nullptr with the reason when `ops` is the CPU's, when the library is absent
// or too old, or in a build without NCCL. The library is loaded at the first
// call and never linked.
std::unique_ptr<NcclApi> OpenNccl(Ops* ops, std::string* why_not);

}  // namespace tributary
