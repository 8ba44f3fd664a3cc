// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/page_access.h"

#include "common/host/address.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<PageAccess> ReadPageAccess(const TelemetryOptions& telemetry,
                                          const Access& access) {
  PageAccess pages;
  pages.insecure = access.insecure() || telemetry.insecure_metrics;
  pages.token = access.page_token();
  pages.health_listen = telemetry.health_listen;
  pages.certificate_end = access.certificate_end();
  if (!telemetry.metrics_token_file.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(pages.token,
                               ReadToken(telemetry.metrics_token_file));
  }
  const std::string& listen = telemetry.metrics_listen;
  const bool open =
      !listen.empty() && CheckAddress(listen).ok() && !IsLoopback(listen);
  if (open && !telemetry.insecure_metrics) {
    pages.own = access.own();
    pages.renew = access.renew();
  }
  return pages;
}

}  // namespace tributary
