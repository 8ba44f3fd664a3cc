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

// A call that is not complete at the first poll, followed by a kernel: polling
// must not leave an error for the kernel. Returns an error, or an empty string.
std::string CheckKernelAfterCall(Ops& ops, NcclApi* api) {
  int looks = 0;  // polls before completion
  std::string error;
  const std::unique_ptr<NcclComm> comm =
      ConnectOneRank(api, &error, [&looks] { ++looks; });
  if (comm == nullptr) return error;
  constexpr int64_t kMany = int64_t{1} << 24;  // tens of microseconds to copy
  Floats in(ops, std::vector<float>(kMany, 1.0f));
  Floats out(ops, std::vector<float>(kMany, 0.0f));
  looks = 0;
  const NcclOutcome outcome = comm->AllToAll(in.data(), out.data(), kMany);
  if (!outcome.ok()) return outcome.message;
  if (looks == 0) return "the copy was done at the first look";
  ops.Fill(kFloats, 2, in.data());
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
  // With one rank every operation keeps or copies its input. Work that Ops has
  // queued on its own stream comes first, without a wait.
  const auto check = [&](const char* name,
                         const std::function<NcclOutcome(float*, float*)>& run,
                         bool copies) {
    Floats in(ops, std::vector<float>(kFloats, 0.0f));
    Floats out(ops, std::vector<float>(kFloats, 0.0f));
    Floats source(ops, numbers);
    const float* parts[] = {source.data()};
    const float one = 1;
    ops.WeightedSum(kFloats, 1, parts, &one, in.data());
    const NcclOutcome outcome = run(in.data(), out.data());
    std::string wrong = outcome.ok() ? "" : outcome.message;
    if (outcome.ok() && (copies ? out : in).Download() != expected) {
      wrong = "other numbers";
    }
    checks.push_back({name, wrong});
  };
  check(
      "nccl all-reduce",
      [&](float* in, float*) { return comm->AllReduce(in, kFloats); }, false);
  check(
      "nccl reduce-scatter",
      [&](float* in, float*) {
        return comm->ReduceScatter(in, {0, kFloats});
      },
      false);
  check(
      "nccl all-gather",
      [&](float* in, float*) {
        return comm->AllGather(in, {0, kFloats});
      },
      false);
  check(
      "nccl broadcast",
      [&](float* in, float*) { return comm->Broadcast(in, kFloats, 0); },
      false);
  check(
      "nccl all-to-all (send, recv)",
      [&](float* in, float* out) { return comm->AllToAll(in, out, kFloats); },
      true);
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

void AddNccl(Ops& ops, const SpeedArrays& a, double ceiling,
             std::vector<Speed>* speeds) {
  std::string why;
  const std::unique_ptr<NcclApi> api = OpenNccl(&ops, &why);
  if (api == nullptr) return;
  const std::unique_ptr<NcclComm> comm = ConnectOneRank(api.get(), &why);
  if (comm == nullptr) return;
  bool ok = true;
  const double copy = SecondsPerCall(ops, [&] {
    ok = comm->AllToAll(a[0], a[1], SpeedArrays::kFloats).ok() && ok;
  });
  // With one rank, in place, no data moves: this measures the call itself.
  const double call =
      SecondsPerCall(ops, [&] { ok = comm->AllReduce(a[0], 1024).ok() && ok; });
  if (!ok) return;
  const double bytes = 2.0 * SpeedArrays::kFloats * sizeof(float);
  speeds->push_back(
      {"nccl all-to-all, 1 rank", "GB/s", bytes / copy / 1e9, ceiling});
  speeds->push_back({"nccl all-reduce, 1 rank, a call", "us", call * 1e6, 0});
}

}  // namespace tributary::testing
