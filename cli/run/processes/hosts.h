// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/run/processes/slurm.h"
#include "common/command_line/command_line.h"

namespace tributary {

// The coordinator's address unless the user gives another one.
inline constexpr char kListenHere[] = "127.0.0.1:0";

// The hosts that a command line names for the processes of a run.
struct HostOptions {
  std::string listen = kListenHere;       // HOST:PORT of the coordinator
  std::vector<std::string> worker_hosts;  // empty: all on this machine
  std::vector<std::string> server_hosts;  // empty: the workers' hosts
  // BatchMode: never ask for a password, because no user is there to type it.
  std::string launch =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 {host} {command}";
  SlurmOptions slurm;  // for a launch by Slurm, with its nodes as hosts
  bool insecure_groups = false;  // of workers (AddInsecureGroupsFlag)
};

// --listen: the address at which members and `tributary status` reach the
// coordinator.
void AddListenOption(CommandLine& command, std::string* listen);
void AddHostOptions(CommandLine& command, HostOptions* options);
// Adds --insecure, for a command that starts the processes of a run.
void AddInsecureFlag(CommandLine& command, bool* insecure);

// A machine on which processes are started.
class Host {
 public:
  Host() = default;  // this machine, reached at its loopback address
  // `launcher`: the words of --launch; the first is a program's path.
  // `address`: where the host is reached; empty: at its name.
  Host(std::string name, std::vector<std::string> launcher,
       std::string address = "")
      : name_(std::move(name)),
        launcher_(std::move(launcher)),
        address_(address.empty() ? name_ : std::move(address)) {}

  const std::string& name() const { return name_; }
  // HOST:PORT, with brackets around an IPv6 address: "[fd00::2]:7071".
  std::string At(int port) const;
  // The command to execute on this machine so that `program`, a path and
  // arguments, runs on the host.
  std::vector<std::string> Command(std::vector<std::string> program) const;

 private:
  std::string name_ = "127.0.0.1";
  std::vector<std::string> launcher_;  // empty: not needed
  std::string address_ = name_;
};

// The hosts of a run. Servers and workers are distributed over their hosts in
// turn: of n hosts, worker i runs on host i mod n.
class Hosts {
 public:
  Hosts() = default;  // all on this machine

  // InvalidArgument: an invalid host name, an invalid launcher, or an address
  // of the coordinator that the hosts cannot reach. NotFound: there is no such
  // launcher. FailedPrecondition: Slurm does not tell the nodes of an
  // allocation.
  static absl::StatusOr<Hosts> Create(const HostOptions& options);

  // True when hosts were given, so that launchers start the processes.
  bool given() const { return !workers_.empty(); }
  // The coordinator's HOST:PORT: as given to Create or, in an allocation of
  // Slurm, at this node's address.
  const std::string& listen() const { return listen_; }
  bool insecure_groups() const { return insecure_groups_; }
  Host Server(int index) const { return InTurn(servers_, index); }
  Host Worker(int index) const { return InTurn(workers_, index); }
  // The number of workers before this one on its host: the index of its device.
  int LocalRank(int worker) const;
  // A host other than worker 0's, or worker 0's if there is no other.
  Host FarFromFirstWorker() const;

 private:
  static Host InTurn(const std::vector<Host>& hosts, int index);
  // The nodes of an allocation, with Slurm's own launcher.
  static absl::StatusOr<Hosts> OfSlurm(const HostOptions& options);

  std::string listen_ = kListenHere;
  bool insecure_groups_ = false;
  std::vector<Host> workers_;
  std::vector<Host> servers_;
};

// Splits text into words as a shell does: at blanks, with quotes and
// backslashes. InvalidArgument: a quote does not end, or nothing follows a
// backslash.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text);

// Joins words into text that a shell splits into the same words.
std::string JoinForShell(const std::vector<std::string>& words);

}  // namespace tributary
