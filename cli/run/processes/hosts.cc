// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/run/processes/find_program.h"
#include "common/host/address.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kHost[] = "{host}";
constexpr char kCommand[] = "{command}";

bool IsIpv6(const std::string& name) {
  in6_addr address;
  return inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

// Removes the brackets around an IPv6 address.
std::string WithoutBrackets(absl::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return std::string(host);
}

// Allows only characters of names and addresses: a launcher gets the name as an
// argument, so it must not look like an option.
absl::StatusOr<std::string> ReadHost(const char* option,
                                     const std::string& text) {
  std::string name = WithoutBrackets(text);
  const auto belongs = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(".-_", c);
  };
  const bool is_name = !name.empty() && absl::ascii_isalnum(name[0]) &&
                       std::all_of(name.begin(), name.end(), belongs);
  if (is_name || IsIpv6(name)) return name;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": wanted names or addresses of hosts, without a ",
                   "port, joined by commas; got \"", text, "\""));
}

absl::StatusOr<std::vector<std::string>> ReadHosts(
    const char* option, const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    TRIBUTARY_ASSIGN_OR_RETURN(names.emplace_back(), ReadHost(option, text));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ReadLauncher(const std::string& text) {
  absl::StatusOr<std::vector<std::string>> words = SplitWords(text);
  if (!words.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--launch: ", words.status().message()));
  }
  const auto names_host = [](const std::string& word) {
    return absl::StrContains(word, kHost);
  };
  if (std::none_of(words->begin(), words->end(), names_host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--launch: wanted ", kHost, " where the host's name belongs, as in ",
        "\"ssh {host} {command}\"; got \"", text, "\""));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(words->front(), FindInPath(words->front()));
  return words;
}

// Rejects loopback and wildcard addresses, which other hosts cannot reach.
absl::Status CheckReachable(absl::string_view listen) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  const absl::string_view host = LookupHostOf(listen);
  for (const char* own : {"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"}) {
    if (host != own) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: wanted an address of this machine at which the hosts reach ",
        "the coordinator, as in --listen 10.0.0.1:0; got ", listen));
  }
  return absl::OkStatus();
}

// Reads words that may contain quoted parts.
class WordReader {
 public:
  explicit WordReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<std::string>> ReadAll() {
    std::vector<std::string> words;
    while (SkipBlanks()) {
      TRIBUTARY_ASSIGN_OR_RETURN(words.emplace_back(), Read());
    }
    return words;
  }

 private:
  bool SkipBlanks() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
    return at_ < text_.size();
  }

  absl::StatusOr<std::string> Read() {
    std::string word;
    char quote = 0;  // the open quote; 0: none
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote == 0 && absl::ascii_isspace(c)) break;
      if (c == '\\' && quote != '\'') {
        if (++at_ == text_.size()) return Unfinished("nothing follows \\");
        // Within quotes a backslash is an ordinary character before most
        // characters.
        if (quote != 0 && !absl::StrContains("\"\\", text_[at_])) word += c;
        word += text_[at_];
      } else if (c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else {
        word += c;
      }
    }
    if (quote != 0)
      return Unfinished(
          absl::StrCat("a ", std::string(1, quote), " does not end"));
    return word;
  }

  absl::Status Unfinished(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " in \"", text_, "\""));
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace

void AddListenOption(CommandLine& command, std::string* listen) {
  command
      .AddOption("--listen", listen,
                 "HOST:PORT of the coordinator, for tributary status and for\n"
                 "hosts; port 0 takes a free one. With --launch slurm the\n"
                 "default is this node's address")
      .ShowDefault();
}

void AddInsecureFlag(CommandLine& command, bool* insecure) {
  command.AddFlag(
      "--insecure", insecure,
      "without TLS: whoever reaches the ports can read and change the\n"
      "job; default: certificates of this run alone");
}

void AddHostOptions(CommandLine& command, HostOptions* options) {
  Option workers = command.AddOption(
      "--worker-hosts", &options->worker_hosts,
      "run workers there, on each host in turn; an address is\n"
      "what the others reach it at. Wants --listen");
  workers.TypeName("HOST,...").Separator(',').OnePerFlag();
  command
      .AddOption("--server-hosts", &options->server_hosts,
                 "run servers there; default: the workers' hosts")
      .TypeName("HOST,...")
      .Separator(',')
      .OnePerFlag()
      .Needs(workers);
  command
      .AddOption("--launch", &options->launch,
                 "what starts a program on a host. {command} is the program\n"
                 "and its arguments as one word for a shell; without it they\n"
                 "follow as words, as in \"ip netns exec {host}\".\n"
                 "\"slurm\" starts them with srun on the nodes of this\n"
                 "allocation; options of srun may follow")
      .TypeName("WORDS")
      .ShowDefault()
      .Needs(workers,
             [](const std::string& launch) { return !IsSlurmLaunch(launch); });
  // Slurm's variables are options, because only options are read from outside.
  command.AddOption("--slurm-nodes", &options->slurm.node_list)
      .FromEnvironment("SLURM_JOB_NODELIST")
      .Hidden();
  command.AddOption("--slurm-this-node", &options->slurm.this_node)
      .FromEnvironment("SLURMD_NODENAME")
      .Hidden();
}

std::string Host::At(int port) const {
  return IsIpv6(address_) ? absl::StrCat("[", address_, "]:", port)
                          : absl::StrCat(address_, ":", port);
}

std::vector<std::string> Host::Command(std::vector<std::string> program) const {
  const std::string joined = JoinForShell(program);
  std::vector<std::string> words;
  bool has_command = false;
  for (const std::string& word : launcher_) {
    has_command |= absl::StrContains(word, kCommand);
    words.push_back(
        absl::StrReplaceAll(word, {{kHost, name_}, {kCommand, joined}}));
  }
  if (!has_command) words.insert(words.end(), program.begin(), program.end());
  return words;
}

absl::StatusOr<Hosts> Hosts::Create(const HostOptions& options) {
  if (IsSlurmLaunch(options.launch)) return OfSlurm(options);
  Hosts hosts;
  hosts.insecure_groups_ = options.insecure_groups;
  hosts.listen_ = options.listen;
  if (options.worker_hosts.empty()) return hosts;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> workers,
                             ReadHosts("--worker-hosts", options.worker_hosts));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> servers,
                             ReadHosts("--server-hosts", options.server_hosts));
  TRIBUTARY_RETURN_IF_ERROR(CheckReachable(options.listen));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> launcher,
                             ReadLauncher(options.launch));
  for (const std::string& name : workers) {
    hosts.workers_.emplace_back(name, launcher);
  }
  for (const std::string& name : servers) {
    hosts.servers_.emplace_back(name, launcher);
  }
  if (hosts.servers_.empty()) hosts.servers_ = hosts.workers_;
  return hosts;
}

absl::StatusOr<Hosts> Hosts::OfSlurm(const HostOptions& options) {
  if (!options.worker_hosts.empty()) {
    return absl::InvalidArgumentError(
        "--launch slurm: the hosts are the nodes of the allocation, so "
        "--worker-hosts is not wanted");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<SlurmNode> nodes,
                             AskSlurmNodes(options.slurm));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> launcher,
                             ReadLauncher(SlurmLauncher(options.launch)));
  Hosts hosts;
  hosts.insecure_groups_ = options.insecure_groups;
  const Host* here = nullptr;
  hosts.workers_.reserve(nodes.size());
  for (const SlurmNode& node : nodes) {
    hosts.workers_.emplace_back(node.name, launcher, node.address);
    if (node.name == options.slurm.this_node) here = &hosts.workers_.back();
  }
  hosts.servers_ = hosts.workers_;
  if (options.listen == kListenHere && here != nullptr) {
    hosts.listen_ = here->At(0);
    return hosts;
  }
  hosts.listen_ = options.listen;
  TRIBUTARY_RETURN_IF_ERROR(CheckReachable(options.listen));
  return hosts;
}

int Hosts::LocalRank(int worker) const {
  const std::string name = Worker(worker).name();
  int before = 0;
  for (int i = 0; i < worker; ++i) {
    if (Worker(i).name() == name) ++before;
  }
  return before;
}

Host Hosts::FarFromFirstWorker() const {
  const Host first = Worker(0);
  for (const std::vector<Host>* hosts : {&workers_, &servers_}) {
    for (const Host& host : *hosts) {
      if (host.name() != first.name()) return host;
    }
  }
  return first;
}

Host Hosts::InTurn(const std::vector<Host>& hosts, int index) {
  if (hosts.empty()) return Host();
  return hosts[static_cast<size_t>(index) % hosts.size()];
}

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text) {
  return WordReader(text).ReadAll();
}

std::string JoinForShell(const std::vector<std::string>& words) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_@%+=:,./-", c);
  };
  std::string joined;
  for (const std::string& word : words) {
    if (!joined.empty()) joined += ' ';
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
      joined += word;
    } else {
      absl::StrAppend(&joined, "'", absl::StrReplaceAll(word, {{"'", "'\\''"}}),
                      "'");
    }
  }
  return joined;
}

}  // namespace tributary
