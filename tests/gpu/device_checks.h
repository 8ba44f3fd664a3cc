#pragma once

#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// Checks of the device by itself, without a CPU to compare with.
struct DeviceCheck {
  std::string name;
  std::string error;  // empty: as it shall be
};

// Two Ops on one device and the event between them; arrays of more than 2^31
// elements; what a device says after a fault. The device is as before after it.
std::vector<DeviceCheck> CheckDevice(Ops& ops);

// A fault of which a device does not recover: an address that is none. Whatever
// the process asks of the device after it fails.
std::vector<DeviceCheck> CheckLastingFault(Ops& ops);

}  // namespace tributary::testing
