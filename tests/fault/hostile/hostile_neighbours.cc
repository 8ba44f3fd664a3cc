// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile/hostile_neighbours.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/host/memory/shared_arena.h"
#include "common/host/memory/unix_socket.h"
#include "tests/testing/http/http_get.h"

namespace tributary::testing {
namespace {

constexpr char kRequest[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr uid_t kNobody = 65534;

// The inode numbers of the sockets that a process has open.
std::set<std::string> SocketsOf(pid_t pid) {
  std::set<std::string> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", pid, "/fd"), error)) {
    const std::string target =
        std::filesystem::read_symlink(entry.path(), error).string();
    if (absl::StartsWith(target, "socket:[")) {
      numbers.insert(target.substr(8, target.size() - 9));
    }
  }
  return numbers;
}

std::vector<std::vector<std::string>> WordsIn(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

// Ports of loopback at which these sockets listen (proc(5), /proc/net/tcp).
std::set<int> ListenedPorts(const std::set<std::string>& sockets) {
  std::set<int> ports;
  for (const std::vector<std::string>& words : WordsIn("/proc/net/tcp")) {
    if (words.size() < 10 || words[3] != "0A") continue;
    int port = 0;
    const std::string hex = words[1].substr(words[1].find(':') + 1);
    if (sockets.count(words[9]) > 0 && absl::SimpleHexAtoi(hex, &port)) {
      ports.insert(port);
    }
  }
  return ports;
}

template <typename Peer>
bool IsGone(const std::unique_ptr<Peer>& peer) {
  return peer == nullptr || peer->IsOver();
}

}  // namespace

void LookAround(pid_t pid, const std::set<int>& known, Neighbourhood* found) {
  const std::set<std::string> sockets = SocketsOf(pid);
  for (const int port : ListenedPorts(sockets)) {
    if (known.count(port) > 0) continue;
    const bool has_pages = HttpGet(port, "/metrics").code == 200;
    (has_pages ? found->pages : found->health_checks).push_back(port);
  }
  std::set<std::string> names;  // also of accepted connections
  for (const std::vector<std::string>& words : WordsIn("/proc/net/unix")) {
    if (words.size() == 8 && sockets.count(words[6]) > 0 &&
        absl::StartsWith(words[7], "@tributary-")) {
      names.insert(words[7]);
    }
  }
  found->sockets.insert(found->sockets.end(), names.begin(), names.end());
}

HostileNeighbours::HostileNeighbours(const AttackedJob& job,
                                     Neighbourhood places, int idle)
    : job_(job), places_(std::move(places)) {
  const auto begin = [this](const char* name,
                            void (HostileNeighbours::*body)(Count)) {
    attacks_.Begin(name, [this, body](Count count) { (this->*body)(count); });
  };
  attacks_.Begin("idle readers",
                 [this, idle](Count count) { StayConnected(idle, count); });
  begin("slow readers", &HostileNeighbours::AskSlowly);
  begin("unread pages", &HostileNeighbours::ReadNothing);
  begin("nonsense to pages", &HostileNeighbours::TalkNonsense);
  begin("bodies to pages", &HostileNeighbours::SendBodies);
  begin("foreign names", &HostileNeighbours::AskUnderForeignNames);
  begin("silent sockets", &HostileNeighbours::StaySilent);
  begin("false hellos", &HostileNeighbours::SayFalseHellos);
  if (geteuid() == 0) {
    begin("another user", &HostileNeighbours::ConnectAsAnotherUser);
  }
}

void HostileNeighbours::StayConnected(int connections, Count count) {
  std::vector<std::unique_ptr<Stranger>> readers(connections *
                                                 places_.pages.size());
  while (!attacks_.over()) {
    for (size_t i = 0; i < readers.size() && !attacks_.over(); ++i) {
      if (!IsGone(readers[i])) continue;
      readers[i] =
          std::make_unique<Stranger>(places_.pages[i % places_.pages.size()]);
      ++*count;
    }
    Pause(100);
  }
}

void HostileNeighbours::AskSlowly(Count count) {
  std::vector<std::unique_ptr<Stranger>> readers(20 * places_.pages.size());
  while (!attacks_.over()) {
    for (size_t i = 0; i < readers.size() && !attacks_.over(); ++i) {
      if (IsGone(readers[i])) {
        readers[i] =
            std::make_unique<Stranger>(places_.pages[i % places_.pages.size()]);
        readers[i]->Send("GET /");
        ++*count;
      }
      readers[i]->Send("a");
    }
    Pause(100);
  }
}

void HostileNeighbours::ReadNothing(Count count) {
  std::vector<std::unique_ptr<Stranger>> readers(4 * places_.pages.size());
  while (!attacks_.over()) {
    for (size_t i = 0; i < readers.size() && !attacks_.over(); ++i) {
      if (IsGone(readers[i])) {
        readers[i] =
            std::make_unique<Stranger>(places_.pages[i % places_.pages.size()]);
      }
      *count += readers[i]->Send(kRequest);
    }
    Pause(20);
  }
}

void HostileNeighbours::TalkNonsense(Count count) {
  std::mt19937 random(5);
  for (; !attacks_.over(); ++*count) {
    Stranger reader(places_.pages[*count % places_.pages.size()]);
    reader.Send(*count % 2 == 0
                    ? RandomBytes(random, 4096)
                    : absl::StrCat("GET / HTTP/1.1\r\nX: ",
                                   std::string(20'000, 'a'), "\r\n\r\n"));
    Pause(10);
  }
}

// Sends bodies with an announced length of a gigabyte.
void HostileNeighbours::SendBodies(Count count) {
  const std::string piece(64 << 10, 'x');
  while (!attacks_.over()) {
    Stranger reader(places_.pages[*count % places_.pages.size()]);
    reader.Send(
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Length: 1000000000\r\n\r\n");
    while (!attacks_.over() && reader.Send(piece)) Pause(1);
    ++*count;
    Pause(10);
  }
}

void HostileNeighbours::AskUnderForeignNames(Count count) {
  for (size_t i = 0; !attacks_.over(); ++i) {
    const std::string answer =
        HttpRaw(places_.pages[i % places_.pages.size()],
                absl::StrCat("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n"
                             "Connection: close\r\n\r\n"));
    *count += absl::StartsWith(answer, "HTTP/1.1 421 ");
    let_through_ += absl::StartsWith(answer, "HTTP/1.1 200 ");
    Pause(20);
  }
}

void HostileNeighbours::StaySilent(Count count) {
  std::vector<UniqueFd> silent(100 * places_.sockets.size());
  while (!attacks_.over()) {
    for (size_t i = 0; i < silent.size() && !attacks_.over(); ++i) {
      if (silent[i].ok() &&
          absl::IsDeadlineExceeded(
              ReceiveUnix(silent[i], absl::ZeroDuration()).status())) {
        continue;
      }
      auto next = ConnectUnix(places_.sockets[i % places_.sockets.size()]);
      silent[i] = next.ok() ? *std::move(next) : UniqueFd();
      *count += silent[i].ok();
    }
    Pause(50);
  }
}

void HostileNeighbours::SayFalseHellos(Count count) {
  std::mt19937 random(6);
  const auto arena = SharedArena::Create(4096).value();
  for (size_t i = 0; !attacks_.over(); ++i) {
    Pause(5);
    const auto socket =
        ConnectUnix(places_.sockets[i % places_.sockets.size()]);
    if (!socket.ok()) continue;
    v1::SharedMemoryHello hello;
    hello.mutable_address()->set_job_id(job_.job_id);
    hello.mutable_address()->set_plan_epoch(job_.plan.epoch());
    hello.mutable_address()->set_shard(i % places_.sockets.size());
    hello.set_token(random());
    hello.set_rank(random() % 3);
    hello.set_ticket(random() % 2 == 0 ? job_.proof.ticket()
                                       : Forge(job_.proof.ticket(), random));
    const auto memory = arena->Share();
    const std::string bytes = random() % 4 == 0 ? RandomBytes(random, 512)
                                                : hello.SerializeAsString();
    if (!memory.ok() ||
        !SendUnix(*socket, bytes, memory->get(), absl::Seconds(1)).ok()) {
      continue;
    }
    const auto answer = ReceiveUnix(*socket, absl::Seconds(1));
    v1::SharedMemoryWelcome welcome;
    const bool welcomed = answer.ok() &&
                          welcome.ParseFromString(answer->bytes) &&
                          welcome.connection() != 0;
    let_through_ += welcomed;
    *count += !welcomed;
  }
}

void HostileNeighbours::ConnectAsAnotherUser(Count count) {
  // Changes the user of this thread only; the C library's function cannot do
  // that.
  if (syscall(SYS_setresuid, -1, kNobody, -1) != 0) return;
  for (size_t i = 0; !attacks_.over(); ++i) {
    const auto socket =
        ConnectUnix(places_.sockets[i % places_.sockets.size()]);
    *count +=
        socket.ok() &&
        absl::IsUnavailable(ReceiveUnix(*socket, absl::Seconds(1)).status());
    Pause(1);
  }
}

}  // namespace tributary::testing
