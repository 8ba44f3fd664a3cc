// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/device_checks.h"

#include <cstdint>
#include <memory>

#include "kernels/device.h"
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

std::string Wanted(const char* what, double wanted, double got) {
  if (wanted == got) return "";
  return std::string(what) + ": wanted " + std::to_string(wanted) + ", got " +
         std::to_string(got);
}

// One Ops computes for so long that the other would finish first without the
// event; the other reads the result.
DeviceCheck CheckTwoStreams(Ops& ops) {
  DeviceCheck check{"two streams and an event", ""};
  const std::unique_ptr<Ops> beside = CreateOpsBeside(ops, &check.error);
  if (beside == nullptr) return check;
  const std::unique_ptr<DeviceEvent> done =
      CreateDeviceEvent(ops, &check.error);
  if (done == nullptr) return check;
  constexpr int64_t kSide = 2048, kFloats = kSide * kSide;
  Floats a(ops, std::vector<float>(kFloats, 1.0f));
  Floats product(ops, std::vector<float>(kFloats));
  Floats copy(*beside, std::vector<float>(kFloats));
  for (int round = 1; round <= 20 && check.error.empty(); ++round) {
    for (int i = 0; i < 4; ++i) {
      ops.Gemm(false, false, kSide, kSide, kSide, static_cast<float>(round),
               a.data(), a.data(), 0, product.data());
    }
    done->Record(ops);
    done->Await(*beside);
    beside->CopyMatrix(1, kFloats, product.data(), kFloats, copy.data(),
                       kFloats);
    float last = 0;
    beside->CopyOut(&last, copy.data() + kFloats - 1, sizeof(last));
    check.error = Wanted("read behind the event", kSide * round, last);
    // Before the next round overwrites the array that was read.
    if (!beside->Synchronize().ok()) check.error = "the second Ops failed";
  }
  return check;
}

// Copies that go directly, also where they begin or end within a page.
DeviceCheck CheckPinnedMemory(Ops& ops) {
  DeviceCheck check{"pinned memory", ""};
  constexpr int64_t kFloats = 300'001;
  Floats x(ops, Numbers(kFloats, 1)), y(ops, std::vector<float>(kFloats));
  const std::vector<double> wanted = x.Download();
  PinnedPages pages(ops, kFloats * sizeof(float));
  if (!pages.pinned()) check.error = "it was not pinned";
  constexpr int64_t kSkip = 3, kCopied = kFloats - kSkip;
  ops.CopyOut(pages.data() + kSkip, x.data() + kSkip, kCopied * sizeof(float));
  ops.CopyIn(y.data() + kSkip, pages.data() + kSkip, kCopied * sizeof(float));
  // The source may be overwritten as soon as CopyIn returns.
  for (int64_t i = 0; i < kFloats; ++i) pages.data()[i] = -5;
  const std::vector<double> got = y.Download();
  for (int64_t i = 0; i < kFloats && check.error.empty(); ++i) {
    check.error = Wanted("copied", i < kSkip ? 0 : wanted[i], got[i]);
  }
  return check;
}

// Element indices beyond 2^31, and byte offsets beyond 2^33.
DeviceCheck CheckLongArray(Ops& ops) {
  DeviceCheck check{"more than 2^31 elements", ""};
  constexpr int64_t kFloats = (int64_t{1} << 31) + 1027;
  auto* x = static_cast<float*>(ops.Allocate(kFloats * sizeof(float)));
  if (x == nullptr) {
    check.name += " (left out: no room)";
    return check;
  }
  ops.Fill(kFloats, -2.0f, x);
  ops.Activation(ActivationKind::kRelu, kFloats - 3, x, x);
  float last[4] = {};
  ops.CopyOut(last, x + kFloats - 4, sizeof(last));
  check.error = Wanted("the last but three", 0, last[0]) +
                Wanted("the last", -2, last[3]);
  std::vector<double> squares(kFloats / 1024 + 1);
  ops.GrainSquares(kFloats, 1024, x, squares.data());
  check.error += Wanted("the last squares", 12, squares.back());
  ops.Free(x);
  const DeviceStatus status = ops.Synchronize();
  check.error += status.message();
  return check;
}

DeviceCheck CheckNoRoom(Ops& ops) {
  DeviceCheck check{"no room is an answer", ""};
  void* const much = ops.Allocate(size_t{1} << 60);
  if (much != nullptr) check.error = "2^60 bytes were there";
  if (!ops.fault().ok()) check.error = "it counts as a fault";
  return check;
}

// No memory is available for the bfloat16 operands, so the product does
// nothing. The caller that wants to send its result must get the error.
DeviceCheck CheckFault() {
  DeviceCheck check{"a fault is kept until it is told", ""};
  const std::unique_ptr<Ops> ops =
      CreateCudaOps(&check.error, 0, ProductPrecision::kBfloat16);
  if (ops == nullptr) return check;
  Floats c(*ops, std::vector<float>(8, 7.0f));
  ops->Gemm(false, false, 1, 8, int64_t{1} << 50, 1, c.data(), c.data(), 0,
            c.data());
  float host = 0;
  ops->CopyOut(&host, c.data(), sizeof(host));
  if (ops->fault().ok()) check.error = "fault() says nothing after CopyOut";
  if (ops->Synchronize().ok()) check.error = "Synchronize says nothing";
  if (!ops->fault().ok() || !ops->Synchronize().ok()) {
    check.error = "it is told twice";
  }
  ops->Fill(8, 3.0f, c.data());
  ops->CopyOut(&host, c.data(), sizeof(host));
  check.error += Wanted("after it", 3, host);
  return check;
}

}  // namespace

std::vector<DeviceCheck> CheckDevice(Ops& ops) {
  return {CheckTwoStreams(ops), CheckPinnedMemory(ops), CheckLongArray(ops),
          CheckNoRoom(ops), CheckFault()};
}

std::vector<DeviceCheck> CheckLastingFault(Ops& ops) {
  DeviceCheck check{"CopyOut tells a lasting fault", ""};
  Floats x(ops, std::vector<float>(1024, 7.0f));
  // A kernel that writes to an invalid address; the error is known once it has
  // run.
  ops.Fill(1024, 1.0f, reinterpret_cast<float*>(uintptr_t{1} << 12));
  std::vector<float> host(1024, 5.0f);
  ops.CopyOut(host.data(), x.data(), host.size() * sizeof(float));
  if (ops.fault().ok()) check.error = "fault() says nothing after CopyOut";
  if (ops.Synchronize().ok()) check.error += "Synchronize says nothing";
  return {check};
}

}  // namespace tributary::testing
