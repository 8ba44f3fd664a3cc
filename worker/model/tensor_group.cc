#include "worker/model/tensor_group.h"

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "worker/collective/communicator.h"
#include "worker/model/device_array.h"

namespace tributary {

TensorGroup::TensorGroup(const Options& options) : options_(options) {
  TRIBUTARY_CHECK(options.ops != nullptr && options.communicator != nullptr);
}

int TensorGroup::rank() const { return options_.communicator->rank(); }
int TensorGroup::size() const { return options_.communicator->size(); }

bool TensorGroup::staged() const {
  return !options_.device_arrays && !options_.ops->is_host();
}

float* TensorGroup::Host(int64_t n) {
  if (static_cast<int64_t>(host_.size()) < n) host_.resize(n);
  return host_.data();
}

void TensorGroup::Record(const char* what, const absl::Status& status) {
  if (status.ok() || !status_.ok()) return;
  // Those who wait for this rank shall not wait in vain.
  options_.communicator->Abort(std::string(status.message()));
  status_ = absl::Status(
      status.code(), absl::StrCat("tensor-parallel rank ", rank(), " of ",
                                  size(), ", ", what, ": ", status.message()));
}

void TensorGroup::AllReduce(int64_t n, float* data) {
  if (!status_.ok() || n == 0) return;
  float* array = staged() ? Host(n) : data;
  if (staged()) options_.ops->CopyOut(array, data, n * sizeof(float));
  Record("summing", options_.communicator->AllReduce(array, n));
  if (staged()) options_.ops->CopyIn(data, array, n * sizeof(float));
}

void TensorGroup::AllGather(absl::Span<const int64_t> bounds, float* data) {
  const int64_t n = bounds.back();
  if (!status_.ok() || n == 0) return;
  float* array = staged() ? Host(n) : data;
  if (staged()) {
    const int64_t begin = bounds[rank()];
    const int64_t own = bounds[rank() + 1] - begin;
    options_.ops->CopyOut(array + begin, data + begin, own * sizeof(float));
  }
  Record("gathering", options_.communicator->AllGather(array, bounds));
  if (staged()) options_.ops->CopyIn(data, array, n * sizeof(float));
}

void TensorGroup::AllReduceOnHost(int64_t n, float* data) {
  if (!status_.ok() || n == 0) return;
  if (!options_.device_arrays) {
    return Record("summing", options_.communicator->AllReduce(data, n));
  }
  auto array = DeviceArray<float>::Allocate(options_.ops, n);
  if (!array.ok()) return Record("summing", array.status());
  options_.ops->CopyIn(array->data(), data, n * sizeof(float));
  AllReduce(n, array->data());
  options_.ops->CopyOut(data, array->data(), n * sizeof(float));
}

}  // namespace tributary
