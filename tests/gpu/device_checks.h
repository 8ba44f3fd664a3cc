// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// A check of the device alone, without comparison with the CPU.
struct DeviceCheck {
  std::string name;
  std::string error;  // empty: passed
};

// Checks two Ops on one device and the event between them, copies from and to
// pinned memory, arrays of more than 2^31 elements, and error reports after a
// fault. The device still works afterwards.
std::vector<DeviceCheck> CheckDevice(Ops& ops);

// Checks a fault from which a device does not recover: an invalid address.
// Every later call of the process on the device fails.
std::vector<DeviceCheck> CheckLastingFault(Ops& ops);

}  // namespace tributary::testing
