// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/nccl_checks.h"

#include <functional>
#include <memory>
#include <utility>

#include "kernels/nccl_api.h"
#include "kernels/nccl_comm.h"
#include "tests/gpu/check_arrays.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr int64_t kFloats = 100'003;
constexpr int64_t kTimeoutMicros = 60'000'000;

std::unique_ptr<NcclComm> ConnectOneRank(NcclApi* api, std::string* error,
                                         std::function<void()> pause = {}) {
  NcclId id = {};
  if (api->NewId(&id) == NcclApi::Code::kFailed) {
    *error = api->LastError(nullptr);
    return nullptr;
  }
  NcclOutcome outcome;
  std::unique_ptr<NcclComm> comm =
      NcclComm::Connect({.api = api,
                         .rank = 0,
                         .size = 1,
                         .id = id,
                         .timeout_micros = kTimeoutMicros,
                         .connect_micros = kTimeoutMicros,
                         .close_micros = kTimeoutMicros,
                         .give_up = nullptr,
                         .clock = &Clock::Real(),
                         .pause = std::move(pause)},
                        &outcome);
  *error = outcome.message;
  return comm;
}

// A call that waits for earlier work on the device, so that it is not complete
// at the first poll, followed by a kernel: polling must not leave an error for
// the kernel. Returns an error, or an empty string.
std::string CheckKernelAfterCall(Ops& ops, NcclApi* api) {
  int looks = 0;  // polls before completion
  std::string error;
  const std::unique_ptr<NcclComm> comm =
      ConnectOneRank(api, &error, [&looks] { ++looks; });
  if (comm == nullptr) return error;
  constexpr int64_t kMany = int64_t{1} << 24;  // tens of microseconds to fill
  Floats array(ops, std::vector<float>(kMany, 1.0f));
  for (int i = 0; i < 50; ++i) ops.Fill(kMany, 1, array.data());
  looks = 0;
  const NcclOutcome outcome = comm->AllReduce(array.data(), kMany);
  if (!outcome.ok()) return outcome.message;
  if (looks == 0) return "the call was done at the first look";
  ops.Fill(kFloats, 2, array.data());
  return ops.Synchronize().message();
}

}  // namespace

std::vector<DeviceCheck> CheckNccl(Ops& ops, std::string* why_not) {
  std::vector<DeviceCheck> checks;
  const std::unique_ptr<NcclApi> api = OpenNccl(&ops, why_not);
  if (api == nullptr) return checks;
  std::string error;
  const std::unique_ptr<NcclComm> comm = ConnectOneRank(api.get(), &error);
  checks.push_back({"nccl connect", error});
  if (comm == nullptr) return checks;

  const std::vector<float> numbers = Numbers(kFloats, 1);
  const std::vector<double> expected(numbers.begin(), numbers.end());
  // With one rank every operation keeps its input. Work that Ops has queued on
  // its own stream comes first, without a wait.
  const auto check = [&](const char* name,
                         const std::function<NcclOutcome(float*)>& run) {
    Floats in(ops, std::vector<float>(kFloats, 0.0f));
    Floats source(ops, numbers);
    const float* parts[] = {source.data()};
    const float one = 1;
    ops.WeightedSum(kFloats, 1, parts, &one, in.data());
    const NcclOutcome outcome = run(in.data());
    std::string wrong = outcome.ok() ? "" : outcome.message;
    if (outcome.ok() && in.Download() != expected) wrong = "other numbers";
    checks.push_back({name, wrong});
  };
  check("nccl all-reduce",
        [&](float* in) { return comm->AllReduce(in, kFloats); });
  check("nccl reduce-scatter", [&](float* in) {
    return comm->ReduceScatter(in, {0, kFloats});
  });
  check("nccl all-gather", [&](float* in) {
    return comm->AllGather(in, {0, kFloats});
  });
  check("nccl broadcast",
        [&](float* in) { return comm->Broadcast(in, kFloats, 0); });
  checks.push_back({"nccl close", comm->Close().message});

  checks.push_back(
      {"nccl, then a kernel", CheckKernelAfterCall(ops, api.get())});

  // Aborting a communicator leaves a working device.
  std::string again;
  std::unique_ptr<NcclComm> other = ConnectOneRank(api.get(), &again);
  if (other != nullptr) other->Abort();
  other.reset();
  const DeviceStatus status = ops.Synchronize();
  checks.push_back({"nccl abort", again + status.message()});
  return checks;
}

void AddNccl(Ops& ops, const SpeedArrays& a, std::vector<Speed>* speeds) {
  std::string why;
  const std::unique_ptr<NcclApi> api = OpenNccl(&ops, &why);
  if (api == nullptr) return;
  const std::unique_ptr<NcclComm> comm = ConnectOneRank(api.get(), &why);
  if (comm == nullptr) return;
  bool ok = true;
  // With one rank, in place, no data moves: this measures the call itself.
  const double call =
      SecondsPerCall(ops, [&] { ok = comm->AllReduce(a[0], 1024).ok() && ok; });
  if (!ok) return;
  speeds->push_back({"nccl all-reduce, 1 rank, a call", "us", call * 1e6, 0});
}

}  // namespace tributary::testing
