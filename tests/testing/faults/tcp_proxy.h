// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/faults/proxy_connection.h"
#include "tests/testing/faults/proxy_rule.h"

namespace tributary::testing {

// A proxy between the processes of a run that disturbs their connections
// according to rules. Programs started with Environment() connect through it;
// others are not affected. It has one thread. Rules count bytes, so a run meets
// its faults at the same places at any speed.
class TcpProxy {
 public:
  struct Options {
    std::string control;  // path of the control socket
    std::vector<std::string> rules;
    uint64_t seed = 1;
    // Called on the proxy's thread whenever a rule fires.
    std::function<void(const ProxyRule&, const ProxyConnection&)> on_fired;
  };

  // Null, with a message on stderr, when a rule is invalid or listening fails.
  static std::unique_ptr<TcpProxy> Start(const Options& options);
  ~TcpProxy();

  // NAME=VALUE for programs whose connections go through the proxy.
  std::vector<std::string> Environment() const;
  // How often the rule with this index in Options has fired.
  int64_t fired(size_t rule) const { return rules_[rule]->fired; }
  int64_t connections() const { return num_connections_; }

 private:
  struct RuleState {
    ProxyRule rule;
    int64_t seen = 0;  // bytes that have passed
    int64_t next = 0;  // byte count at which it fires next
    int64_t left = 0;  // remaining times
    int64_t held_until_ms = 0;
    bool resets = false;  // when the hold ends
    std::atomic<int64_t> fired{0};
  };
  // The port that a program connects to instead of its target.
  struct Door {
    std::string from;
    std::string target;  // "host port"
    int port = 0;
  };

  TcpProxy() = default;

  void Run();
  void AnswerControl();
  std::string Answer(const std::string& line);
  int DoorFor(const std::string& from, const std::string& target);
  void Accept(int listener, const Door& door);

  // Reads the available bytes of one direction of a connection.
  void Read(ProxyConnection& connection, bool back);
  void Apply(RuleState& state, ProxyConnection& connection, bool back,
             std::string& bytes, int64_t* delay_ms);
  void Fire(RuleState& state, ProxyConnection& connection, size_t at,
            std::string& bytes);
  void Replay(const ProxyConnection& connection);
  bool Held(const ProxyConnection& connection, bool back) const;
  void EndHolds();

  Options options_;
  int control_ = -1;
  int wake_[2] = {-1, -1};  // the destructor wakes the thread
  std::vector<std::unique_ptr<RuleState>> rules_;
  std::map<int, Door> doors_;  // by listening descriptor
  std::map<std::string, std::string> name_of_port_;
  std::list<ProxyConnection> connections_;
  std::vector<int> replay_ends_;  // their input is discarded
  std::mt19937_64 random_;
  std::atomic<int64_t> num_connections_{0};
  std::thread thread_;
};

}  // namespace tributary::testing
