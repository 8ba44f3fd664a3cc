// SPDX-License-Identifier: Apache-2.0
#include "common/wire/port/peer_connections.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/printable.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr int64_t kLogPauseMicros = 1'000'000;
// TLS and HTTP/2 add less than a 64th of a message, and 2048 bytes for the
// headers of a call.
constexpr int64_t kShareOfMessage = 64;
constexpr int64_t kOfCall = 2048;

std::string HostPart(absl::string_view address) {
  return std::string(address.substr(0, address.rfind(':')));
}

}  // namespace

std::string PlainAddress(absl::string_view peer) {
  std::string plain;
  for (size_t i = 0; i < peer.size(); ++i) {
    const absl::string_view code = peer.substr(i, 3);
    const bool open = absl::EqualsIgnoreCase(code, "%5B");
    const bool close = absl::EqualsIgnoreCase(code, "%5D");
    const bool percent = code == "%25";
    plain.push_back(open ? '[' : close ? ']' : percent ? '%' : peer[i]);
    if (open || close || percent) i += 2;
  }
  return plain;
}

PeerConnections::PeerConnections(const Clock* clock) : clock_(clock) {}

void PeerConnections::SetLimits(const Limits& limits) {
  absl::MutexLock lock(&mu_);
  limits_ = limits;
}

PeerConnections::Limits PeerConnections::limits() const {
  absl::MutexLock lock(&mu_);
  return limits_;
}

void PeerConnections::Open(const std::string& address,
                           std::unique_ptr<Socket> socket) {
  absl::MutexLock lock(&mu_);
  // An earlier connection of this address is over: a port has one owner.
  if (const auto old = all_.find(address); old != all_.end()) Forget(old);
  Sweep();
  Connection& connection = all_[address];
  connection.socket = std::move(socket);
  connection.host = HostPart(address);
  connection.number = opened_++;
  nobodys_[connection.host][connection.number] = address;
  ++num_nobodys_;
  MakeRoom(address);
}

void PeerConnections::Forget(All::iterator connection) {
  LeaveNobodys(connection->second);
  all_.erase(connection);
}

void PeerConnections::LeaveNobodys(const Connection& connection) {
  const auto host = nobodys_.find(connection.host);
  if (host == nobodys_.end() || host->second.erase(connection.number) == 0) {
    return;
  }
  --num_nobodys_;
  if (host->second.empty()) nobodys_.erase(host);
}

void PeerConnections::Sweep() {
  constexpr int kMost = 16;
  for (int i = 0; i < kMost && !closing_.empty(); ++i) {
    const auto first = all_.find(closing_.front());
    if (first != all_.end() && first->second.closing) {
      if (Measure(&first->second)) return;  // not over yet
      Forget(first);
    }
    closing_.pop_front();
  }
}

void PeerConnections::Close(const std::string& address, absl::string_view why) {
  Connection* const connection = &all_.at(address);
  connection->closing = true;
  closing_.push_back(address);
  LeaveNobodys(*connection);
  connection->socket->Shut();
  ++closed_;
  const int64_t now = clock_->NowMicros();
  if (now - told_micros_ < kLogPauseMicros) return;
  const uint64_t others = closed_ - told_ - 1;
  told_micros_ = now;
  told_ = closed_;
  spdlog::warn(
      "closed a connection of {} at {}: {}{}",
      connection->member.empty() ? "nobody known" : connection->member,
      Printable(connection->host), std::string(why),
      others > 0 ? absl::StrCat(" (and ", others, " connections before)") : "");
}

std::string PeerConnections::NobodysOldest() const {
  const auto host = std::max_element(nobodys_.begin(), nobodys_.end(),
                                     [](const auto& a, const auto& b) {
                                       return a.second.size() < b.second.size();
                                     });
  return host == nobodys_.end() ? "" : host->second.begin()->second;
}

void PeerConnections::MakeRoom(const std::string& newest) {
  const bool full = all_.size() > limits_.connections;
  if (!full && num_nobodys_ <= limits_.nobodys) return;
  // If no connection is nobody's, the newest one is closed.
  const std::string victim = NobodysOldest();
  Close(victim.empty() ? newest : victim,
        absl::StrCat(all_.size(), " connections, ", num_nobodys_,
                     " of them without a member's ticket"));
}

bool PeerConnections::Begin(const CallerAccount& caller) {
  constexpr double kGivenBackEachSecond = 0.1;
  absl::MutexLock lock(&mu_);
  Begun& begun = begun_[caller.name];
  const int64_t now = clock_->NowMicros();
  const auto most = static_cast<double>(limits_.arriving);
  begun.calls = std::max(
      0.0, begun.calls - most * kGivenBackEachSecond * 1e-6 *
                             static_cast<double>(now - begun.since_micros));
  begun.since_micros = now;
  if (begun.calls + 1 > most) return false;
  ++begun.calls;
  return true;
}

void PeerConnections::Arrived(absl::string_view address,
                              const CallerAccount& caller, size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (const auto begun = begun_.find(caller.name); begun != begun_.end()) {
    begun->second.calls = std::max(0.0, begun->second.calls - 1);
  }
  const auto found = all_.find(PlainAddress(address));
  if (found == all_.end() || found->second.closing) return;
  Connection& connection = found->second;
  Measure(&connection);
  const auto size = static_cast<int64_t>(bytes);
  connection.bytes = std::max<int64_t>(
      0, connection.bytes - size - size / kShareOfMessage - kOfCall);
  if (caller.is_member && connection.member.empty()) {
    BecomeMembers(found, caller.name);
  }
}

void PeerConnections::BecomeMembers(All::iterator connection,
                                    const std::string& member) {
  LeaveNobodys(connection->second);
  connection->second.member = member;
  All::iterator oldest = connection;
  size_t count = 0;
  for (auto i = all_.begin(); i != all_.end(); ++i) {
    if (i->second.closing || i->second.member != member) continue;
    ++count;
    if (i->second.number < oldest->second.number) oldest = i;
  }
  if (count > limits_.of_member) {
    Close(oldest->first, absl::StrCat("it has ", count, " of them"));
  }
}

bool PeerConnections::Measure(Connection* connection) {
  const int64_t received = connection->socket->Received();
  if (received < 0) return false;
  connection->bytes += received - connection->received;
  connection->received = received;
  return true;
}

std::vector<std::string> PeerConnections::Look() {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> changed;
  for (auto i = all_.begin(); i != all_.end();) {
    Connection& connection = i->second;
    if (!Measure(&connection)) {
      Forget(i++);
      continue;
    }
    if (!connection.closing &&
        (connection.received != connection.asked_at || connection.calls > 0)) {
      connection.asked_at = connection.received;
      changed.push_back(i->first);
    }
    ++i;
  }
  Enforce(&Connection::bytes, limits_.bytes, limits_.nobodys_bytes,
          "bytes of unfinished messages");
  Enforce(&Connection::calls, limits_.calls, limits_.nobodys_calls,
          "calls under way");
  return changed;
}

void PeerConnections::Enforce(Amount amount, int64_t most, int64_t nobodys_most,
                              absl::string_view what) {
  std::unordered_map<std::string, int64_t> of_members;
  int64_t nobodys = 0;
  std::vector<All::value_type*> open;
  for (auto& entry : all_) {
    const Connection& connection = entry.second;
    if (connection.closing || connection.*amount == 0) continue;
    (connection.member.empty() ? nobodys : of_members[connection.member]) +=
        connection.*amount;
    open.push_back(&entry);
  }
  std::sort(open.begin(), open.end(), [amount](const auto* a, const auto* b) {
    return a->second.*amount > b->second.*amount;  // the largest first
  });
  for (auto* entry : open) {
    const Connection& connection = entry->second;
    const bool is_nobodys = connection.member.empty();
    int64_t& sum = is_nobodys ? nobodys : of_members[connection.member];
    const int64_t own = is_nobodys ? connection.*amount : sum;
    const bool too_large = own > most;
    if (!too_large && !(is_nobodys && sum > nobodys_most)) continue;
    Close(entry->first,
          too_large ? absl::StrCat(own, " ", what, ", at most ", most)
                    : absl::StrCat(sum, " ", what, " of all such, at most ",
                                   nobodys_most));
    sum -= connection.*amount;
  }
}

void PeerConnections::SetCalls(absl::string_view address, int64_t calls) {
  absl::MutexLock lock(&mu_);
  const auto found = all_.find(PlainAddress(address));
  if (found != all_.end()) found->second.calls = calls;
}

PeerConnections::Totals PeerConnections::totals() const {
  absl::MutexLock lock(&mu_);
  Totals totals{
      .connections = all_.size(), .nobodys = num_nobodys_, .closed = closed_};
  for (const auto& [address, connection] : all_) {
    if (connection.closing) continue;
    totals.bytes += connection.bytes;
    totals.calls += connection.calls;
  }
  return totals;
}

}  // namespace tributary
