// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fault/hostile/attack_threads.h"
#include "tests/fault/hostile/attacker.h"

namespace tributary::testing {

// Attacks all ports of a job, with one thread for each kind of attack, until
// the destructor.
class HostilePeers {
 public:
  // `idle`: how many silent connections are kept open without a certificate,
  // and as many with one.
  HostilePeers(AttackedJob job, int idle);
  ~HostilePeers();

  // See AttackThreads::Counts.
  std::map<std::string, int64_t> Counts() const { return attacks_.Counts(); }
  // Number of wrongly signed calls that were not refused.
  int64_t let_through() const { return let_through_; }

 private:
  // Attacks of strangers, who have no certificate.
  void StayConnected(int connections, std::atomic<int64_t>* count);
  void TalkNonsense(std::atomic<int64_t>* count);
  void ShakeHandsSlowly(std::atomic<int64_t>* count);
  // Attacks with the certificate.
  void StayConnectedWithCertificate(int connections,
                                    std::atomic<int64_t>* count);
  void SendNonsenseFrames(std::atomic<int64_t>* count);
  void PushWithoutTicket(std::atomic<int64_t>* count);
  void SendWronglySigned(std::atomic<int64_t>* count);
  // Attacks with the certificate and the ticket.
  void SendSlowly(std::atomic<int64_t>* count);
  void SendWithoutEnd(std::atomic<int64_t>* count);
  void CallWithoutEnd(std::atomic<int64_t>* count);
  void SendBombs(std::atomic<int64_t>* count);
  void LeaveAnswersUnread(std::atomic<int64_t>* count);
  void HoldCalls(std::atomic<int64_t>* count);
  void SendMalformed(std::atomic<int64_t>* count);

  std::vector<int> AllPorts() const;

  const AttackedJob job_;
  // Made before the attacks begin, because compressing it beside them took more
  // than a minute on a busy machine.
  const std::string bomb_;
  std::atomic<int64_t> let_through_{0};
  AttackThreads attacks_;  // the last, because its threads use the rest
};

}  // namespace tributary::testing
