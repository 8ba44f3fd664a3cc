// SPDX-License-Identifier: Apache-2.0
#include "cli/run/metrics_ports.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int kLastPort = 65535;

}  // namespace

absl::StatusOr<MetricsPorts> MetricsPorts::Create(
    const std::string& listen, const v1::ClusterSpec& cluster) {
  MetricsPorts ports;
  if (listen.empty()) return ports;
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  ports.host_ = std::string(HostOf(listen));
  (void)absl::SimpleAtoi(listen.substr(ports.host_.size() + 1), &ports.port_);
  ports.num_servers_ = cluster.servers();
  const int last = ports.port_ + cluster.servers() + cluster.workers();
  if (ports.port_ > 0 && last > kLastPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen ", listen, " wants the ports up to ",
                     last, ", and ", kLastPort, " is the last"));
  }
  return ports;
}

std::string MetricsPorts::Address(int place, const Host* host) const {
  if (host_.empty()) return "";
  const int port = port_ == 0 ? 0 : port_ + place;
  return host != nullptr ? host->At(port) : absl::StrCat(host_, ":", port);
}

}  // namespace tributary
