// SPDX-License-Identifier: Apache-2.0
// All workers of a job in one process, for bench/server_load/server_load.py.
// They register with the coordinator, push gradients of a constant to the job's
// only server and compute nothing. Prints the seconds of each step.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/command_line/parse_command_line.h"
#include "common/plan/plan_codec.h"
#include "common/wire/channel.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/deadline.h"
#include "common/wire/header_checksum.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/tensor_frame.h"
#include "tests/testing/http/http2_peer.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"
#include "tributary/v1/parameter_service.grpc.pb.h"
#include "worker/rank/client/parameter_client.h"

namespace tributary::bench {
namespace {

constexpr char kPush[] = "/tributary.v1.ParameterService/PushPull";
constexpr float kGradient = 1e-6f;

struct Arguments {
  std::string coordinator;
  int workers = 64;
  int megabytes = 64;
  int steps = 2;
  std::string order = "rank";
  bool announce = false;
  bool silent = false;
};

void Must(const grpc::Status& status, const std::string& what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(),
               status.error_message().c_str());
  std::exit(1);
}

double SecondsNow() {
  return 1e-6 * static_cast<double>(Clock::Real().NowMicros());
}

// A call of a worker that reads its answers.
struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

class Workers {
 public:
  explicit Workers(const Arguments& arguments)
      : arguments_(arguments), gradient_(kMaxMessageBytes / 4, kGradient) {}

  // Takes all places of workers and waits for the plan.
  void Join() {
    const auto stub =
        v1::CoordinatorService::NewStub(DataChannel(arguments_.coordinator));
    for (int i = 0; i < arguments_.workers; ++i) {
      v1::RegisterRequest request;
      request.set_role(v1::ROLE_WORKER);
      request.set_instance(absl::StrCat("load-", i));
      request.set_host("load");
      request.set_wanted_index(static_cast<uint32_t>(i));
      v1::RegisterResponse place;
      grpc::ClientContext context;
      Must(stub->Register(&context, request, &place), "register");
      incarnations_.push_back(place.incarnation());
      proofs_.push_back(CallerProof().WithTicket(place.ticket()));
    }
    v1::DeclareModelRequest model;
    model.set_incarnation(incarnations_[0]);
    v1::ParameterSpec* const spec = model.add_parameters();
    spec->set_name("0.weight");
    spec->add_shape(elements());
    model.set_total_steps(1000);
    model.set_steps_per_epoch(1000);
    v1::DeclareModelResponse declared;
    grpc::ClientContext declaring;
    proofs_[0].AddTo(&declaring);
    Must(stub->DeclareModel(&declaring, model, &declared), "declare");
    v1::GetPlanRequest wanted;
    wanted.set_min_epoch(1);
    wanted.set_wait_ms(10'000);
    grpc::ClientContext getting;
    proofs_[0].AddTo(&getting);
    Must(stub->GetPlan(&getting, wanted, &plan_), "plan");
    partition_ = MakePartitionPlan(plan_).value();
  }

  void Connect() {
    const std::string& server = plan_.servers(0);
    const auto first =
        ParameterClient::Connect({.plan = plan_,
                                  .incarnation = incarnations_[0],
                                  .proof = proofs_[0],
                                  .transport = Transport::kGrpc});
    const std::vector<float> start(static_cast<size_t>(elements()), 0.5f);
    const std::vector<const float*> tensors = {start.data()};
    if (!(*first)->Initialize(tensors).ok()) std::exit(1);
    for (int rank = 0; rank < readers(); ++rank) {
      const std::shared_ptr<grpc::Channel> channel = DataChannel(server);
      if (!channel->WaitForConnected(DeadlineAfter(absl::Seconds(30)))) {
        std::fprintf(stderr, "cannot connect to the server\n");
        std::exit(1);
      }
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
    status_ = v1::ParameterService::NewStub(DataChannel(server));
    if (!arguments_.silent) return;
    int port = 0;
    if (!absl::SimpleAtoi(server.substr(server.rfind(':') + 1), &port)) {
      std::exit(1);
    }
    silent_ = testing::Http2Peer::Connect(port, /*window=*/0);
  }

  void Step(int64_t step) {
    std::vector<int> order(static_cast<size_t>(arguments_.workers));
    std::iota(order.begin(), order.end(), 0);
    if (arguments_.order == "reverse") std::reverse(order.begin(), order.end());
    if (arguments_.order == "random") {
      std::shuffle(order.begin(), order.end(),
                   std::mt19937(static_cast<uint32_t>(step)));
    }
    const uint64_t before = Counted();
    for (size_t i = 0; i < order.size(); ++i) {
      PushAll(order[i], step);
      if (arguments_.order == "burst") continue;
      while (Counted() < before + (i + 1) * blocks().size()) {
      }
    }
    for (; open_ > 0; --open_) {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      Must(call->status, absl::StrCat("push of step ", step));
    }
  }

 private:
  int64_t elements() const { return int64_t{arguments_.megabytes} << 18; }
  int readers() const {
    return arguments_.workers - (arguments_.silent ? 1 : 0);
  }
  const std::vector<Block>& blocks() const { return partition_->blocks(0); }

  v1::PushPullRequest Request(const Block& block, int rank,
                              int64_t step) const {
    v1::PushPullRequest request;
    request.mutable_address()->set_job_id(plan_.job_id());
    request.mutable_address()->set_plan_epoch(plan_.epoch());
    request.mutable_address()->set_block(static_cast<uint32_t>(block.index));
    request.set_rank(static_cast<uint32_t>(rank));
    request.set_incarnation(incarnations_[rank]);
    request.set_step(step);
    request.set_samples(1);
    if (arguments_.announce) request.set_total_samples(arguments_.workers);
    request.set_wait_ms(60'000);
    request.set_crc32c(
        Crc32c(gradient_.data(), static_cast<size_t>(block.bytes())));
    SignHeader(&request);
    return request;
  }

  void PushAll(int rank, int64_t step) {
    for (const Block& block : blocks()) {
      v1::PushPullRequest request = Request(block, rank, step);
      const auto bytes = static_cast<size_t>(block.bytes());
      if (rank >= readers()) {
        request.set_payload(gradient_.data(), bytes);
        const std::string message =
            testing::Http2Peer::Message(request.SerializeAsString());
        const testing::Http2Peer::Headers ticket = {
            {kTicketKey, absl::Base64Escape(proofs_[rank].ticket())}};
        if (!silent_->Send(silent_->Begin(kPush, ticket), message,
                           /*end=*/true)) {
          std::fprintf(stderr, "the server has closed the connection\n");
          std::exit(1);
        }
        continue;
      }
      auto* const call = new Call;
      proofs_[rank].AddTo(&call->context);
      call->reader = stubs_[rank]->PrepareUnaryCall(
          &call->context, kPush,
          EncodeFrame(request, {OwnedSlice(gradient_.data(), bytes, nullptr)}),
          &queue_);
      call->reader->StartCall();
      call->reader->Finish(&call->answer, &call->status, call);
      ++open_;
    }
  }

  // Returns the contributions that the server has counted. Also reads the
  // answers that have arrived: gRPC sends and receives only while a thread
  // waits here.
  uint64_t Counted() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.AsyncNext(&tag, &ok, DeadlineAfter(absl::Milliseconds(2))) ==
           grpc::CompletionQueue::GOT_EVENT) {
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      Must(call->status, "push");
      --open_;
    }
    v1::ServerStatusResponse status;
    grpc::ClientContext context;
    Must(status_->GetServerStatus(&context, {}, &status), "status");
    return status.contributions();
  }

  const Arguments arguments_;
  const std::vector<float> gradient_;
  std::vector<uint64_t> incarnations_;
  std::vector<CallerProof> proofs_;
  v1::Plan plan_;
  std::optional<PartitionPlan> partition_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;  // by rank
  std::unique_ptr<v1::ParameterService::Stub> status_;
  std::unique_ptr<testing::Http2Peer> silent_;  // the last rank
  grpc::CompletionQueue queue_;
  int open_ = 0;
};

int Main(int argc, char** argv) {
  Arguments arguments;
  CommandLine program(
      "All workers of a job, for bench/server_load/server_load.py",
      "server_load_workers");
  program.AddOption("--coordinator", &arguments.coordinator).Required();
  program.AddOption("--workers", &arguments.workers);
  program.AddOption("--megabytes", &arguments.megabytes, "weights");
  program.AddOption("--steps", &arguments.steps);
  program
      .AddOption("--order", &arguments.order,
                 "in which workers push; burst: all at once")
      .OneOf({"rank", "reverse", "random", "burst"});
  program.AddFlag("--announce", &arguments.announce,
                  "pushes announce the samples of all ranks");
  program.AddFlag("--silent", &arguments.silent,
                  "the last rank never reads an answer");
  if (const auto ended = ParseCommandLine(program, argc, argv)) {
    return *ended;
  }
  PrepareForTransfers();
  Workers workers(arguments);
  workers.Join();
  workers.Connect();
  for (int64_t step = 0; step < arguments.steps; ++step) {
    const double begin = SecondsNow();
    workers.Step(step);
    std::printf("%.2f\n", SecondsNow() - begin);
  }
  std::fflush(stdout);
  std::_Exit(0);  // without waiting for the silent connection
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) { return tributary::bench::Main(argc, argv); }
