// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/page_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/host/steady_waits.h"

namespace tributary {

int PortOf(const sockaddr& address) {
  // Both families have the port at the same place.
  sockaddr_in peer;
  std::memcpy(&peer, &address, sizeof(peer));
  return ntohs(peer.sin_port);
}

std::string PeerHost(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, &address, sizeof(ipv4));
    inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 ipv6;
    std::memcpy(&ipv6, &address, sizeof(ipv6));
    if (!IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
      std::memset(&ipv6.sin6_addr.s6_addr[8], 0, 8);
    }
    inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
  }
  return text;
}

bool PageConnections::Admit(uint64_t daemon) {
  absl::MutexLock lock(&mu_);
  const bool open = static_cast<int64_t>(daemon) > closed_;
  admitted_ += open;
  return open;
}

void PageConnections::Begin(int fd, const std::string& host, uint64_t daemon) {
  absl::MutexLock lock(&mu_);
  if (admitted_ > 0) --admitted_;
  all_[fd] = {.host = host,
              .since_micros = clock_->NowMicros(),
              .number = ++begun_,
              .daemon = daemon};
  if (static_cast<int64_t>(daemon) <= closed_) {
    all_[fd].shut = true;
    return shut_(fd);
  }
  const std::map<std::string, size_t> counts = Counts();
  size_t total = 0, most = 0;
  for (const auto& [unused, count] : counts) {
    total += count;
    most = std::max(most, count);
  }
  if (counts.at(host) > limits_.of_host) {
    ShutOldest(fd, [&](const std::string& other) { return other == host; });
  } else if (total > limits_.connections) {
    ShutOldest(
        fd, [&](const std::string& other) { return counts.at(other) == most; });
  }
}

std::map<std::string, size_t> PageConnections::Counts() const {
  std::map<std::string, size_t> counts;
  for (const auto& [unused, connection] : all_) {
    if (!connection.shut) ++counts[connection.host];
  }
  return counts;
}

void PageConnections::ShutOldest(
    int except, const std::function<bool(const std::string& host)>& chosen) {
  auto oldest = all_.end();
  for (auto i = all_.begin(); i != all_.end(); ++i) {
    const Connection& connection = i->second;
    if (connection.shut || i->first == except || !chosen(connection.host)) {
      continue;
    }
    if (oldest == all_.end() ||
        std::pair(connection.since_micros, connection.number) <
            std::pair(oldest->second.since_micros, oldest->second.number)) {
      oldest = i;
    }
  }
  if (oldest == all_.end()) return;
  oldest->second.shut = true;
  shut_(oldest->first);
}

void PageConnections::EnterPhase(int fd, bool answers) {
  absl::MutexLock lock(&mu_);
  const auto found = all_.find(fd);
  if (found == all_.end()) return;
  found->second.answers = answers;
  found->second.since_micros = clock_->NowMicros();
}

void PageConnections::End(int fd) {
  absl::MutexLock lock(&mu_);
  all_.erase(fd);
}

void PageConnections::ShutLate() {
  absl::MutexLock lock(&mu_);
  const int64_t now = clock_->NowMicros();
  for (auto& [fd, connection] : all_) {
    const int64_t most =
        connection.answers ? limits_.answer_micros : limits_.request_micros;
    if (connection.shut || now - connection.since_micros <= most) continue;
    connection.shut = true;
    shut_(fd);
  }
}

bool PageConnections::Close(uint64_t daemon, absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  closed_ = std::max(closed_, static_cast<int64_t>(daemon));
  for (auto& [fd, connection] : all_) {
    if (connection.shut || connection.daemon > daemon) continue;
    connection.shut = true;
    shut_(fd);
  }
  const auto over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return admitted_ == 0 &&
           std::none_of(all_.begin(), all_.end(), [&](const auto& entry) {
             return entry.second.daemon <= daemon;
           });
  };
  return AwaitFor(&mu_, absl::Condition(&over), limit);
}

size_t PageConnections::size() const {
  absl::MutexLock lock(&mu_);
  return static_cast<size_t>(
      std::count_if(all_.begin(), all_.end(),
                    [](const auto& entry) { return !entry.second.shut; }));
}

}  // namespace tributary
