#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace tributary {

// Where a command line wants its servers and workers.
struct HostOptions {
  std::vector<std::string> worker_hosts;  // empty: all on this machine
  std::vector<std::string> server_hosts;  // empty: where the workers are
  // BatchMode: nobody is there to type a password.
  std::string launch =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 {host} {command}";
};

// --listen, where servers, workers and `tributary status` find the coordinator.
void AddListenOption(CLI::App& app, std::string* listen);
void AddHostOptions(CLI::App& app, HostOptions* options);

// A machine that processes are started on.
class Host {
 public:
  Host() = default;  // this one, reached at its loopback
  // `launcher`: the words of --launch; the first is a program's path.
  Host(std::string name, std::vector<std::string> launcher)
      : name_(std::move(name)), launcher_(std::move(launcher)) {}

  const std::string& name() const { return name_; }
  // HOST:PORT as addresses are written, "[fd00::2]:7071".
  std::string At(int port) const;
  // What to execute here so that `program`, a path and arguments, runs there.
  std::vector<std::string> Command(std::vector<std::string> program) const;

 private:
  std::string name_ = "127.0.0.1";
  std::vector<std::string> launcher_;  // empty: none is wanted
};

// The hosts of a run. Servers and workers go over theirs in turn: worker i of n
// hosts on host i mod n.
class Hosts {
 public:
  Hosts() = default;  // all on this machine

  // `listen`: HOST:PORT of the coordinator, in this process. InvalidArgument: a
  // host that is none, a launcher that cannot be understood, or hosts that do
  // not reach `listen`. NotFound: no such launcher.
  static absl::StatusOr<Hosts> Create(const HostOptions& options,
                                      absl::string_view listen);

  // Other processes have a launcher between them and this one.
  bool given() const { return !workers_.empty(); }
  Host Server(int index) const { return InTurn(servers_, index); }
  Host Worker(int index) const { return InTurn(workers_, index); }
  // How many workers before this one its host has: the device it computes on.
  int LocalRank(int worker) const;
  // Another host than worker 0's; its own where there is no other.
  Host FarFromFirstWorker() const;

 private:
  static Host InTurn(const std::vector<Host>& hosts, int index);

  std::vector<Host> workers_;
  std::vector<Host> servers_;
};

// Words as a shell splits them: at blanks, but for quotes and backslashes.
// InvalidArgument: a quote does not end, or nothing follows a backslash.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text);

// The words as one that a shell splits into them again.
std::string JoinForShell(const std::vector<std::string>& words);

}  // namespace tributary
