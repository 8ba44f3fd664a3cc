// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/put_weights.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {

void PutWeights::Begin(const ParameterSpecs& parameters) {
  weights_ = FinalWeights();
  weights_.parameters = parameters;
  weights_.tensors.resize(parameters.size());
  come_.assign(parameters.size(), 0);
  complete_ = 0;
}

std::vector<size_t> PutWeights::Missing() const {
  std::vector<size_t> missing;
  for (size_t p = 0; p < come_.size(); ++p) {
    if (come_[p] < weights_.parameters[p].size()) missing.push_back(p);
  }
  return missing;
}

absl::Status PutWeights::Put(const v1::PutWeightsRequest& request) {
  const std::string& payload = request.payload();
  if (request.parameter() >= weights_.parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", weights_.parameters.size(),
                     " parameters, got number ", request.parameter()));
  }
  const int64_t size = weights_.parameters[request.parameter()].size();
  const auto n = static_cast<int64_t>(payload.size() / sizeof(float));
  const auto begin = static_cast<int64_t>(request.offset());
  if (payload.empty() || payload.size() % sizeof(float) != 0 || begin < 0 ||
      begin > size || n > size - begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", request.parameter(), " has ", size, " elements, got ",
        payload.size(), " bytes from element ", request.offset(), " on"));
  }
  const uint32_t crc = Crc32c(payload.data(), payload.size());
  if (crc != request.crc32c()) {
    return absl::DataLossError(
        absl::StrCat("the checksum is ", absl::Hex(request.crc32c()),
                     ", the bytes have ", absl::Hex(crc)));
  }
  const bool first = absl::c_all_of(come_, [](int64_t n) { return n == 0; });
  if (first) {
    weights_.step = request.step();
  } else if (request.step() != weights_.step) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights of step ", weights_.step,
                     " are coming, got step ", request.step()));
  }
  const size_t p = request.parameter();
  if (begin + n <= come_[p]) return absl::OkStatus();  // a repetition
  if (begin != come_[p]) {
    return absl::OutOfRangeError(absl::StrCat("the next piece of parameter ", p,
                                              " is from element ", come_[p],
                                              " on, got element ", begin));
  }
  if (begin == 0) weights_.tensors[p].resize(size);
  std::memcpy(weights_.tensors[p].data() + begin, payload.data(),
              payload.size());
  come_[p] += n;
  if (come_[p] == size) ++complete_;
  return absl::OkStatus();
}

}  // namespace tributary
