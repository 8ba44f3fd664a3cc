// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/faults/tcp_proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "tests/testing/paths.h"

namespace tributary::testing {
namespace {

constexpr bool kDirections[] = {false, true};

int64_t NowMs() { return Clock::Real().NowMicros() / 1000; }

int ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return -1;
  strcpy(address.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, 256) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

std::unique_ptr<TcpProxy> TcpProxy::Start(const Options& options) {
  std::unique_ptr<TcpProxy> proxy(new TcpProxy());
  proxy->options_ = options;
  proxy->random_.seed(options.seed);
  for (const std::string& text : options.rules) {
    absl::StatusOr<ProxyRule> rule = ProxyRule::Parse(text);
    if (!rule.ok()) {
      fprintf(stderr, "%s\n", rule.status().ToString().c_str());
      return nullptr;
    }
    auto state = std::make_unique<RuleState>();
    state->rule = *rule;
    state->next = rule->after;
    state->left = rule->times;
    proxy->rules_.push_back(std::move(state));
  }
  proxy->control_ = ListenAt(options.control);
  if (proxy->control_ < 0 || pipe2(proxy->wake_, O_CLOEXEC) != 0) {
    fprintf(stderr, "cannot listen on %s: %s\n", options.control.c_str(),
            strerror(errno));
    return nullptr;
  }
  proxy->thread_ = std::thread([&proxy = *proxy] { proxy.Run(); });
  return proxy;
}

TcpProxy::~TcpProxy() {
  if (thread_.joinable()) {
    [[maybe_unused]] const ssize_t n = write(wake_[1], "x", 1);
    thread_.join();
  }
  for (const auto& [fd, door] : doors_) close(fd);
  for (int fd : replay_ends_) close(fd);
  for (int fd : {control_, wake_[0], wake_[1]}) {
    if (fd >= 0) close(fd);
  }
  unlink(options_.control.c_str());
}

std::vector<std::string> TcpProxy::Environment() const {
  return {"TRIBUTARY_PROXY=" + options_.control,
          "LD_PRELOAD=" + Program("libredirect_connections.so")};
}

void TcpProxy::Run() {
  struct Watched {
    ProxyConnection* connection;
    bool back;
  };
  while (true) {
    EndHolds();
    const bool holds =
        std::any_of(rules_.begin(), rules_.end(),
                    [](const auto& state) { return state->resets; });
    connections_.remove_if([](const ProxyConnection& c) { return c.dead(); });
    const int64_t now = NowMs();
    std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {control_, POLLIN, 0}};
    for (const auto& [fd, door] : doors_) fds.push_back({fd, POLLIN, 0});
    const size_t first = fds.size();
    std::vector<Watched> watched;
    bool waits = false;
    for (ProxyConnection& connection : connections_) {
      for (bool back : kDirections) {
        if (connection.WantsToRead(back)) {
          fds.push_back({connection.source(back), POLLIN, 0});
          watched.push_back({&connection, back});
        }
        waits |= connection.NextRelease(back) >= 0;
        if (connection.WantsToWrite(back, now) && !Held(connection, back)) {
          fds.push_back({connection.sink(back), POLLOUT, 0});
          watched.push_back({&connection, back});
        }
      }
    }
    if (poll(fds.data(), fds.size(), waits || holds ? 5 : 1000) < 0) continue;
    if (fds[0].revents != 0) return;
    for (size_t i = first; i < fds.size(); ++i) {
      const auto [connection, back] = watched[i - first];
      if (fds[i].revents == 0 || connection->dead()) continue;
      if (fds[i].events == POLLOUT) {
        connection->Write(back, NowMs());
      } else {
        Read(*connection, back);
      }
    }
    for (ProxyConnection& connection : connections_) {
      for (bool back : kDirections) connection.PassOnEnd(back);
    }
    // Accept and AnswerControl change the containers that were iterated above.
    std::vector<std::pair<int, Door>> knocked;
    for (size_t i = 2; i < first; ++i) {
      if (fds[i].revents != 0) {
        knocked.emplace_back(fds[i].fd, doors_[fds[i].fd]);
      }
    }
    for (const auto& [fd, door] : knocked) Accept(fd, door);
    if (fds[1].revents != 0) AnswerControl();
  }
}

void TcpProxy::AnswerControl() {
  const int fd = accept4(control_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  char line[512] = {};
  size_t got = 0;
  while (got < sizeof(line) - 1 && memchr(line, '\n', got) == nullptr) {
    const ssize_t n = read(fd, line + got, sizeof(line) - 1 - got);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  const std::string answer = Answer(line);
  send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  close(fd);
}

// Handles "listen NAME PORT", or "connect NAME HOST PORT", which is answered
// with a port.
std::string TcpProxy::Answer(const std::string& line) {
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (words.size() == 3 && words[0] == "listen") {
    name_of_port_[words[2]] = words[1];
    return "0";
  }
  if (words.size() == 4 && words[0] == "connect") {
    return absl::StrCat(DoorFor(words[1], words[2] + " " + words[3]));
  }
  return "0";
}

int TcpProxy::DoorFor(const std::string& from, const std::string& target) {
  for (const auto& [fd, door] : doors_) {
    if (door.from == from && door.target == target) return door.port;
  }
  Door door{.from = from, .target = target};
  const int fd = ListenSomewhere(&door.port);
  if (fd < 0) return 0;
  doors_[fd] = door;
  return door.port;
}

void TcpProxy::Accept(int listener, const Door& door) {
  const int accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return;
  const std::string port = door.target.substr(door.target.find(' ') + 1);
  const auto name = name_of_port_.find(port);
  const int connected = ConnectTo(door.target);
  connections_.emplace_back(
      door.from, name == name_of_port_.end() ? "nobody" : name->second,
      door.target, accepted, connected);
  ++num_connections_;
  if (connected < 0) connections_.back().Reset();  // as if refused
}

void TcpProxy::Read(ProxyConnection& connection, bool back) {
  char buffer[16384];
  const ssize_t n = read(connection.source(back), buffer, sizeof(buffer));
  if (connection.silent()) {
    const bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (ended) connection.pipe(back).ended = true;
    return;
  }
  if (n < 0 && errno != EAGAIN && errno != EINTR) return connection.Reset();
  if (n < 0) return;
  if (n == 0) {
    connection.pipe(back).ended = true;
    return;
  }
  std::string bytes(buffer, static_cast<size_t>(n));
  int64_t delay_ms = 0;
  for (const auto& state : rules_) {
    if (!state->rule.Matches(connection.from, connection.to, back)) continue;
    Apply(*state, connection, back, bytes, &delay_ms);
  }
  if (connection.silent()) return;  // from these bytes on
  const auto& pieces = connection.pipe(back).pieces;
  const int64_t before = pieces.empty() ? 0 : pieces.back().release_ms;
  for (uint8_t byte : std::string_view(buffer, static_cast<size_t>(n))) {
    connection.pipe(back).tensors.Next(byte);
  }
  connection.Take(back, std::move(bytes), std::max(before, NowMs() + delay_ms));
}

void TcpProxy::Apply(RuleState& state, ProxyConnection& connection, bool back,
                     std::string& bytes, int64_t* delay_ms) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t begin = state.seen;
  state.seen += size;
  if (state.rule.kind == ProxyRule::Kind::kDelay) {
    if (begin < state.rule.after || state.fired >= state.rule.times) return;
    *delay_ms +=
        std::uniform_int_distribution<int64_t>(0, state.rule.ms)(random_);
    ++state.fired;
    return;
  }
  Http2Tensors tensors = connection.pipe(back).tensors;
  const bool flips = state.rule.kind == ProxyRule::Kind::kFlip;
  for (int64_t i = 0; i < size; ++i) {
    const bool tensor = flips && tensors.Next(static_cast<uint8_t>(bytes[i]));
    if (state.left == 0 || begin + i < state.next || (flips && !tensor)) {
      continue;
    }
    Fire(state, connection, static_cast<size_t>(i), bytes);
    --state.left;
    state.next = begin + i + state.rule.every;
  }
}

void TcpProxy::Fire(RuleState& state, ProxyConnection& connection, size_t at,
                    std::string& bytes) {
  switch (state.rule.kind) {
    case ProxyRule::Kind::kReset:
      connection.Reset();
      break;
    case ProxyRule::Kind::kSilence:
      for (ProxyConnection& open : connections_) {
        if (state.rule.Matches(open.from, open.to, false) ||
            state.rule.Matches(open.from, open.to, true)) {
          open.Silence();
        }
      }
      break;
    case ProxyRule::Kind::kFlip:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
      break;
    case ProxyRule::Kind::kReplay:
      Replay(connection);
      state.held_until_ms = NowMs() + state.rule.ms;
      break;
    case ProxyRule::Kind::kStall:
    case ProxyRule::Kind::kDrop:
      state.held_until_ms = NowMs() + state.rule.ms;
      state.resets = state.rule.kind == ProxyRule::Kind::kDrop;
      break;
    case ProxyRule::Kind::kDelay:
      break;
  }
  ++state.fired;
  if (options_.on_fired) options_.on_fired(state.rule, connection);
}

// Sends the bytes that the connection has sent so far again on another
// connection, whose answers are discarded.
void TcpProxy::Replay(const ProxyConnection& connection) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  replay_ends_.push_back(ends[1]);
  connections_.emplace_back("replay", connection.to, connection.target, ends[0],
                            ConnectTo(connection.target));
  connections_.back().Take(false, connection.pipe(false).so_far, NowMs());
}

bool TcpProxy::Held(const ProxyConnection& connection, bool back) const {
  const int64_t now = NowMs();
  return std::any_of(rules_.begin(), rules_.end(), [&](const auto& state) {
    return now < state->held_until_ms &&
           state->rule.Matches(connection.from, connection.to, back);
  });
}

// A drop rule resets the connection when its hold ends.
void TcpProxy::EndHolds() {
  for (const auto& state : rules_) {
    if (!state->resets || NowMs() < state->held_until_ms) continue;
    state->resets = false;
    for (ProxyConnection& connection : connections_) {
      if (state->rule.Matches(connection.from, connection.to, false) ||
          state->rule.Matches(connection.from, connection.to, true)) {
        connection.Reset();
      }
    }
  }
}

}  // namespace tributary::testing
