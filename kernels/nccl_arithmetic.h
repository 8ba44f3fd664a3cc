// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/ops.h"

namespace tributary {

// Names what the order of NCCL's additions depends on besides the ranks and
// their arrays: ", NCCL 2.27.3, NCCL_ALGO=Ring, links 000". See
// docs/decisions/nccl-adds-as-it-likes.md.
// version: NCCL's own number, 22703. settings: NAME=VALUE, of the environment
// and of NCCL's files. Only names that begin with NCCL_ count, except those
// that set logging, the machine's name or its network interface. Many settings
// are given by their number and a hash. links: the kind of connection between
// each two devices of the machine, or "".
std::string DescribeNccl(int version, std::vector<std::string> settings,
                         const std::string& links);

// The same text for this machine and the device of `ops`; "" on the host and
// where NCCL cannot be used.
std::string NcclArithmeticOf(const Ops& ops);

}  // namespace tributary
