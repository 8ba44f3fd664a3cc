// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/tensor_group.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

TensorGroup::TensorGroup(const Options& options) : options_(options) {
  TRIBUTARY_CHECK(options.ops != nullptr && options.communicator != nullptr);
}

int TensorGroup::rank() const { return options_.communicator->rank(); }
int TensorGroup::size() const { return options_.communicator->size(); }

void TensorGroup::Record(const char* what, const absl::Status& status) {
  if (status.ok() || !status_.ok()) return;
  // Ends the waits of other ranks for this rank.
  options_.communicator->Abort(std::string(status.message()));
  status_ = absl::Status(
      status.code(), absl::StrCat("tensor-parallel rank ", rank(), " of ",
                                  size(), ", ", what, ": ", status.message()));
}

void TensorGroup::AllReduce(int64_t n, float* data) {
  if (!status_.ok() || n == 0) return;
  const int64_t begin = Now();
  Record("summing", options_.communicator->AllReduce(data, n));
  exchanges_.push_back({begin, Now()});
}

void TensorGroup::AllGather(absl::Span<const int64_t> bounds, float* data) {
  if (!status_.ok() || bounds.back() == 0) return;
  const int64_t begin = Now();
  Record("gathering", options_.communicator->AllGather(data, bounds));
  exchanges_.push_back({begin, Now()});
}

void TensorGroup::AllReduceOnHost(int64_t n, float* data) {
  if (options_.ops->is_host()) return AllReduce(n, data);
  if (!status_.ok() || n == 0) return;
  auto array = DeviceArray<float>::Allocate(options_.ops, n);
  if (!array.ok()) return Record("summing", array.status());
  options_.ops->CopyIn(array->data(), data, n * sizeof(float));
  AllReduce(n, array->data());
  options_.ops->CopyOut(data, array->data(), n * sizeof(float));
}

}  // namespace tributary
