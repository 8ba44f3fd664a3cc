// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/hostile/attack_threads.h"
#include "tests/fault/hostile/attacker.h"

namespace tributary::testing {

// Where the processes of a job can be reached, apart from their gRPC ports.
struct Neighbourhood {
  std::vector<int> pages;            // ports of --metrics-listen
  std::vector<int> health_checks;    // ports of --health-listen
  std::vector<std::string> sockets;  // of servers, for shared memory
};

// Adds the ports and sockets of this process, without the ports in `known`.
void LookAround(pid_t pid, const std::set<int>& known, Neighbourhood* found);

// Attacks the pages and the Unix sockets of a job, until the destructor, as
// anyone can who may connect to them. Some connections are made as another
// user, if this process may change its user.
class HostileNeighbours {
 public:
  // `idle`: how many silent connections to each page are kept open.
  HostileNeighbours(const AttackedJob& job, Neighbourhood places, int idle);
  ~HostileNeighbours() { attacks_.End(); }

  // See AttackThreads::Counts.
  std::map<std::string, int64_t> Counts() const { return attacks_.Counts(); }
  // How many pages were read under a foreign name, and how many false hellos
  // were accepted.
  int64_t let_through() const { return let_through_; }

 private:
  using Count = std::atomic<int64_t>*;

  void StayConnected(int connections, Count count);
  void AskSlowly(Count count);
  void ReadNothing(Count count);
  void TalkNonsense(Count count);
  void SendBodies(Count count);
  void AskUnderForeignNames(Count count);
  void StaySilent(Count count);
  void SayFalseHellos(Count count);
  void ConnectAsAnotherUser(Count count);

  const AttackedJob job_;
  const Neighbourhood places_;
  std::atomic<int64_t> let_through_{0};
  AttackThreads attacks_;  // the last, because its threads use the rest
};

}  // namespace tributary::testing
