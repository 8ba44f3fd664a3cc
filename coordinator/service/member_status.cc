#include "coordinator/service/member_status.h"

namespace tributary {

v1::MemberStatus MemberStatusOf(const Place& place, int64_t step,
                                int64_t now_micros) {
  v1::MemberStatus status;
  status.set_role(place.role);
  status.set_index(place.index);
  status.set_alive(place.alive);
  if (place.incarnation == 0) return status;
  status.set_host(place.holder.host());
  status.set_pid(place.holder.pid());
  status.set_address(place.holder.address());
  status.set_step(step);
  status.set_seconds_since_heartbeat(
      static_cast<double>(now_micros - place.last_heartbeat_micros) / 1e6);
  status.set_waiting_for(place.latest.waiting_for());
  status.set_device(place.latest.device());
  status.set_peak_memory_bytes(place.latest.peak_memory_bytes());
  status.set_bytes_sent(place.latest.bytes_sent());
  status.set_bytes_received(place.latest.bytes_received());
  status.set_optimizer_seconds(place.latest.optimizer_seconds());
  status.set_finished(place.finished);
  status.set_holders(place.holders);
  status.set_losses(place.losses);
  status.set_metrics_address(place.holder.metrics_address());
  *status.mutable_waiting_for_ranks() = place.latest.waiting_for_ranks();
  return status;
}

}  // namespace tributary
