// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/ops.h"
#include "kernels/product_precision.h"

namespace tributary {

enum class DeviceChoice { kAuto, kCpu, kCuda };

// Creates the Ops of the chosen device. kAuto takes CUDA if it can be used,
// else the CPU, and then `why` holds the reason that CUDA was not used. kCuda
// returns nullptr if CUDA cannot be used, with the reason in `why`. In all
// other cases `why` is empty. index: the CUDA device, modulo the number of
// devices, so that the workers of one machine spread over its devices by rank.
std::unique_ptr<Ops> CreateOps(
    DeviceChoice choice, std::string* why, int64_t index = 0,
    ProductPrecision precision = ProductPrecision::kFloat32);

// Sets CUDA's environment variables that the user has not set. By default CUDA
// has eight hardware queues per device, in which the streams of several groups
// would wait for each other; this asks for 32. Call it at the start of main,
// while no other thread reads the environment.
void SetDeviceEnvironment();

// The reference implementation. With kFloat32 it is CreateCpuOps() of ops.h.
std::unique_ptr<Ops> CreateCpuOps(ProductPrecision precision);

// Returns the Ops of a CUDA device, or nullptr with the reason: no driver, no
// device, no cuBLAS, or a build without CUDA.
std::unique_ptr<Ops> CreateCudaOps(
    std::string* why_not, int64_t index = 0,
    ProductPrecision precision = ProductPrecision::kFloat32);

// Names everything besides the inputs that the bits of results depend on: the
// device, its driver and its libraries. Ops with equal text compute equal bits.
std::string ArithmeticOf(const Ops& ops);

// Creates another Ops on the same device for use by another thread. Both work
// concurrently. Its products are float32. nullptr with the reason when the
// device has no room.
std::unique_ptr<Ops> CreateOpsBeside(const Ops& ops, std::string* why_not);

// A point in the work of one Ops that another Ops of the same device can wait
// for, without blocking the host. Does nothing on the CPU, where a call's work
// is done when it returns. The Ops' Synchronize reports faults.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Call each from the thread that uses its Ops. Await waits for the last
  // Record before it.
  virtual void Record(Ops& ops) = 0;
  virtual void Await(Ops& ops) = 0;
};
// nullptr with the reason when the device has no room.
std::unique_ptr<DeviceEvent> CreateDeviceEvent(Ops& ops, std::string* why_not);

}  // namespace tributary
