#pragma once

#include <memory>
#include <string>

#include "kernels/ops.h"
#include "kernels/product_precision.h"

namespace tributary {

enum class DeviceChoice { kAuto, kCpu, kCuda };

// The Ops of the wanted device. kAuto takes CUDA where it can be used and the
// CPU elsewhere; `why` then says why not CUDA and is empty otherwise. nullptr
// when the choice is kCuda and it cannot be used; `why` says why.
// index: which of several CUDA devices, modulo their number, so that the
// workers of a machine spread over its devices by rank.
std::unique_ptr<Ops> CreateOps(
    DeviceChoice choice, std::string* why, int64_t index = 0,
    ProductPrecision precision = ProductPrecision::kFloat32);

// What CUDA reads from the environment when it starts, where the user has not
// set it: more queues to a device than the default's eight, in which streams of
// several groups wait for each other. For the start of main: no other thread
// may read the environment meanwhile.
void SetDeviceEnvironment();

// The reference; float32 is ops.h's CreateCpuOps().
std::unique_ptr<Ops> CreateCpuOps(ProductPrecision precision);

// CUDA's Ops, or nullptr and the reason: no driver, no device, no cuBLAS, built
// without CUDA.
std::unique_ptr<Ops> CreateCudaOps(
    std::string* why_not, int64_t index = 0,
    ProductPrecision precision = ProductPrecision::kFloat32);

// What the bits of an Ops' results depend on beside its inputs: the device, its
// driver and its libraries. Equal text, equal bits.
std::string ArithmeticOf(const Ops& ops);

// Another Ops on the same device, whose work goes on beside this one's: for
// another thread. Its products are float32's. nullptr and the reason when there
// is no room.
std::unique_ptr<Ops> CreateOpsBeside(const Ops& ops, std::string* why_not);

// A point in the work of one Ops for which another of the same device waits,
// while the host goes on. On the host, where work is done when a call returns,
// it does nothing. Faults are told by the Ops' Synchronize.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Each from the thread of its Ops; Await sees the last Record before it.
  virtual void Record(Ops& ops) = 0;
  virtual void Await(Ops& ops) = 0;
};
// nullptr and the reason when there is no room.
std::unique_ptr<DeviceEvent> CreateDeviceEvent(Ops& ops, std::string* why_not);

}  // namespace tributary
