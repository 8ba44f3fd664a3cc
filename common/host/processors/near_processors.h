// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// Restricts the calling thread, and the threads that it starts from now on, to
// those of its processors that are near a PCI device, so that memory which
// these threads touch first lies at the device's socket: copies from the other
// socket's memory are slower. Returns these processors as Linux lists them
// ("0-31,64-95"), or "" if nothing changes: all of the thread's processors are
// near, none is, or `folder` does not know. pci_id: "0000:3b:00.0", in any
// case. folder: sysfs (Linux, Documentation/ABI/testing/sysfs-bus-pci,
// local_cpulist).
std::string StayNear(const std::string& pci_id,
                     const std::string& folder = "/sys");

}  // namespace tributary
