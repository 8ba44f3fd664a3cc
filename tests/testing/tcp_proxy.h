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

#include "tests/testing/proxy_connection.h"
#include "tests/testing/proxy_rule.h"

namespace tributary::testing {

// Stands between the processes of a run and disturbs their connections by its
// rules. Programs that are started with Environment() come through it, all
// others do not notice it. One thread; the rules count bytes, so that a run
// meets its faults at the same places however fast it is.
class TcpProxy {
 public:
  struct Options {
    std::string control;  // path of the socket that programs ask
    std::vector<std::string> rules;
    uint64_t seed = 1;
    // Told on the proxy's thread, each time.
    std::function<void(const ProxyRule&, const ProxyConnection&)> on_fired;
  };

  // Null, with a sentence on stderr, when a rule is none or nothing listens.
  static std::unique_ptr<TcpProxy> Start(const Options& options);
  ~TcpProxy();

  // NAME=VALUE of the programs whose connections go through it.
  std::vector<std::string> Environment() const;
  // How often a rule's fault has happened, by its place in Options.
  int64_t fired(size_t rule) const { return rules_[rule]->fired; }
  int64_t connections() const { return num_connections_; }

 private:
  struct RuleState {
    ProxyRule rule;
    int64_t seen = 0;  // bytes that have passed
    int64_t next = 0;  // where it fires
    int64_t left = 0;  // times
    int64_t held_until_ms = 0;
    bool resets = false;  // once the hold is over
    std::atomic<int64_t> fired{0};
  };
  // Where a program that wants to reach a target connects instead.
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

  // Takes what a connection has to say in one direction.
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
  int wake_[2] = {-1, -1};  // the destructor's word to the thread
  std::vector<std::unique_ptr<RuleState>> rules_;
  std::map<int, Door> doors_;  // by listening descriptor
  std::map<std::string, std::string> name_of_port_;
  std::list<ProxyConnection> connections_;
  std::vector<int> replay_ends_;  // nobody reads them
  std::mt19937_64 random_;
  std::atomic<int64_t> num_connections_{0};
  std::thread thread_;
};

}  // namespace tributary::testing
