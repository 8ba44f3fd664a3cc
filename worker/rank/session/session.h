// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/data_course.h"
#include "common/base/limits.h"
#include "common/base/parameter_spec.h"
#include "common/telemetry/http_listener.h"
#include "common/wire/identity/access.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A rank of a job whose model, data and training loop belong to another program
// (JobSpec.program). The program computes gradients; the session exchanges them
// by the job's strategy, over servers or among the ranks, and writes the new
// weights into the program's memory. The session follows the job through losses
// of members and rollbacks. For one thread at a time, except Cancel.
class Session {
 public:
  struct Options {
    std::string coordinator;       // host:port
    std::optional<uint32_t> rank;  // the rank to take; unset: any
    absl::Duration join_timeout = absl::Seconds(60);
    // Fields of the job that the program sets, as given to --set
    // (SubmitJobRequest). Equal on every rank.
    std::vector<std::string> settings;
    std::string device = "cpu";  // shown by `tributary status`
    // host:port of the rank's metrics page; port 0: any free; empty: no page.
    std::string metrics_listen;
    // Names everything that changes the bits of the program's gradients, such
    // as versions of libraries, instruction set and number of threads.
    // Processes with equal text compute equal bits.
    std::string arithmetic;
    Access access;     // of this process
    PageAccess pages;  // of the metrics page
  };
  struct Declaration {
    ParameterSpecs parameters;    // in forward order; equal on every rank
    std::vector<float*> weights;  // of each parameter, in host memory
    int64_t total_steps = kOpenEnd;
    int64_t steps_per_epoch = 1;
    uint32_t data_checksum = 0;  // 0: unknown
    // Indexes of the parameters whose `weights` are not the memory with which
    // the program computes: it copies from there after each step. These weights
    // may change within a step.
    std::vector<int> reserved;
  };
  // How the job goes on.
  enum class Next {
    kStep,  // with the step after steps()
    // The job went back to a checkpoint, or this rank missed steps that the
    // others took without it: steps() and the weights have changed.
    kMoved,
    kEnd,  // no further step; call Finish
  };
  struct StepStart {
    uint64_t samples = 1;  // the weight of this rank's gradient; 0: none
    std::vector<double> learning_rates;  // as in PushPullRequest
  };
  struct StepResult {
    std::optional<double> loss;  // mean over the rank's samples
    double compute_seconds = 0;  // forward and backward
    double data_seconds = 0;     // waiting for a batch
  };
  struct Traffic {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
  };

  // Submits the settings and takes a place. Unavailable: no coordinator
  // answered in time. AlreadyExists: every place is taken. InvalidArgument: the
  // settings; the message names the field. FailedPrecondition: the job has
  // ended, or has a model of its own.
  static absl::StatusOr<std::unique_ptr<Session>> Join(Options options);
  virtual ~Session() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;               // the number of ranks
  virtual const v1::JobSpec& job() const = 0;  // resolved

  // Declares the parameters and waits until every member has joined. Then the
  // weights are those of the job: rank 0's, where training begins, or those
  // after the steps that this rank has finished. FailedPrecondition: another
  // rank has declared another model; the message says how it differs.
  virtual absl::Status Start(Declaration declaration) = 0;
  // Steps that this rank has finished.
  virtual int64_t steps() const = 0;
  // Says how the program takes its training rows from the next step on. The
  // beginning of `data` is ignored: the present course determines it.
  // Checkpoints hold the course, so that a resumed job finds its position also
  // with other ranks or batches. Before the first call epochs have the declared
  // steps. FailedPrecondition: the remaining rows of the current epoch cannot
  // be taken in this way, or another rank has declared another way.
  virtual absl::Status SetData(DataStretch data) = 0;
  // How the job has taken its training rows, as far as programs have said so;
  // empty when no program has.
  virtual const DataCourse& course() const = 0;

  // Where the program writes the parameter's mean gradient before it calls
  // GradientReady: host memory of the parameter's size, the same in every step.
  virtual float* gradient(int parameter) = 0;
  // How often other pages have replaced the gradients' memory at the same
  // addresses, which happens only in BeginStep, FinishStep and Finish. A
  // program that has pinned the memory for a device pins it anew before the
  // device writes again.
  virtual uint64_t gradient_moves() const = 0;

  // Between two steps: true when the program's memory equals the parameter's
  // weights in every bit.
  virtual bool IsUnchanged(int parameter) const = 0;

  // One step: BeginStep, GradientReady for every parameter in any order, and
  // FinishStep. From GradientReady until FinishStep returns, the parameter's
  // gradient must not change; then the weights change. The gradient of a
  // running average is its present value. A step has begun only when BeginStep
  // has returned kStep. The program must not change the weights.
  // InvalidArgument: the program has changed them, or the rates are too many,
  // too few, negative or not finite. Errors end the job for this rank.
  virtual absl::StatusOr<Next> BeginStep(const StepStart& start) = 0;
  virtual void GradientReady(int parameter) = 0;
  // The weights are those after the step, and steps() has risen, unless the
  // result is kMoved.
  virtual absl::StatusOr<Next> FinishStep(const StepResult& result) = 0;
  // True when the last step changed nothing, because a gradient was not finite
  // (training.nonfinite: skip).
  virtual bool skipped() const = 0;

  // With a delay (sync: {bsp: {delay: 1}}) the program's weights are those of
  // one step before. ShowNewest waits for the newest ones and publishes them,
  // HideNewest brings the late ones back. Call both between two steps. The next
  // FinishStep returns an error of theirs, too.
  virtual bool is_late() const = 0;
  virtual absl::Status ShowNewest() = 0;
  virtual absl::Status HideNewest() = 0;

  // Reports this rank's part of an evaluation of the present weights.
  virtual absl::Status ReportEvaluation(const v1::EvaluationPart& part) = 0;

  // The program takes no further step. Waits until the job has ended for every
  // rank. kMoved: the job went back to a checkpoint, and the program must
  // compute the steps after steps() again. FailedPrecondition: another rank has
  // begun a step that this one will not take; the job has failed.
  virtual absl::StatusOr<Next> Finish() = 0;
  // Makes the job fail with this message. The session is over.
  virtual void Fail(const std::string& why) = 0;

  // Ends the present wait with Cancelled. From any thread.
  virtual void Cancel(const std::string& why) = 0;
  virtual Traffic traffic() const = 0;
};

}  // namespace tributary
