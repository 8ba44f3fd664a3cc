// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/plan/partition_plan.h"
#include "tests/integration/malformed/bit_flips.h"
#include "tests/testing/cluster.h"
#include "tests/testing/relay/message_relay.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary::testing {

// Stands between the only worker of a cluster and its only server, and flips
// bits of what they send each other and of the memory that they share. The
// server must refuse each damaged request and stay as it was; the worker must
// repeat a call after each damaged answer. Thread-safe.
class FlippingRelay {
 public:
  // With this incarnation, a number has ten bytes.
  static constexpr uint64_t kIncarnation = 0xfedcba9876543210;

  // gradients: the beginning of the memory that the worker shares; null: none.
  // The counts of `flips` get names that end with `wire`. All arguments outlive
  // the relay.
  FlippingRelay(Cluster* cluster, char* gradients, std::string wire,
                BitFlips* flips);

  const std::string& address() const { return relay_.address(); }

  // Call it when all calls of a round (a step, a pull) have ended; `clients`:
  // the number of clients that made these calls. Fails the test unless each
  // damaged answer of the round was followed by one more call.
  void EndRound(int clients) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // How much of a call is damaged.
  struct Extent {
    int attempts;  // the first attempts, with damaged requests
    int requests;  // damaged copies of each of these requests
    int answers;   // attempts that get a damaged answer
  };
  // The calls of a round for one block.
  struct Calls {
    int attempts = 0;
    std::vector<std::string> damaged;  // the names of the damaged answers
    // Memory of the server that was damaged for the last answer.
    char* memory = nullptr;
    std::string memory_was;
  };

  absl::StatusOr<std::string> Handle(const std::string& method,
                                     const std::string& message)
      ABSL_LOCKS_EXCLUDED(mu_);
  template <typename Request, typename Response>
  absl::StatusOr<std::string> Pass(const std::string& method,
                                   const std::string& message,
                                   const Extent& extent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Sends the server `count` damaged copies of a request.
  template <typename Request>
  void DamageRequest(const std::string& method, const Request& request,
                     const std::string& message, int count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Repeats a push after changing its gradient in the worker's memory.
  void DamageGradient(const v1::PushPullRequest& request,
                      const std::string& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Damages an answer or, if in_memory, the weights that it names in the
  // server's memory. Returns the answer to send.
  template <typename Response>
  std::string DamagedAnswer(const std::string& answer, bool in_memory,
                            uint32_t block, Calls* calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The server's state of a block: its weights, the rank's clock.
  std::string StateOf(const v1::BlockAddress& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The server's counts, apart from refused messages.
  std::string Counters() const;
  std::string NameOf(const google::protobuf::Message& message) const;

  Cluster* const cluster_;
  char* const gradients_;
  const std::string wire_;
  const PartitionPlan partition_;

  absl::Mutex mu_;
  MessageSender server_ ABSL_GUARDED_BY(mu_);
  BitFlips* const flips_ ABSL_PT_GUARDED_BY(mu_);
  bool accepted_ ABSL_GUARDED_BY(mu_) = false;  // some damage; the test failed
  int round_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::pair<std::string, uint32_t>, Calls> calls_
      ABSL_GUARDED_BY(mu_);  // by method and block

  MessageRelay relay_;  // its thread ends before the rest
};

}  // namespace tributary::testing
