// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/native/waits.h"
#include "worker/rank/session/session.h"

namespace tributary {

using HostFloats =
    nanobind::ndarray<float, nanobind::c_contig, nanobind::device::cpu>;
using NumpyFloats = nanobind::ndarray<nanobind::numpy, float>;

// A Session for Python: it raises exceptions, waits without the GIL and reacts
// to Ctrl-C. In a process that was forked from the one that joined, every call
// raises, since threads and connections are not inherited.
class SessionBinding {
 public:
  struct Parameter {
    std::string name;
    Shape shape;
    double running_momentum = 0;
    HostFloats weight;  // of the parameter's size; kept alive
  };

  static std::unique_ptr<SessionBinding> Join(Session::Options options);
  explicit SessionBinding(std::unique_ptr<Session> session);
  ~SessionBinding();

  int rank() const { return session_->rank(); }
  int world() const { return session_->world(); }
  uint64_t seed() const { return session_->job().seed(); }
  std::string name() const { return session_->job().name(); }
  int64_t steps() const { return session_->steps(); }
  bool skipped() const { return session_->skipped(); }
  bool is_late() const { return session_->is_late(); }
  uint64_t gradient_moves() const { return session_->gradient_moves(); }
  Session::Traffic traffic() const { return session_->traffic(); }

  // `declaration` has no parameters and no weights: Start adds them.
  void Start(std::vector<Parameter> parameters,
             Session::Declaration declaration);
  // The memory of Session::gradient, flat. Valid while this object lives.
  NumpyFloats Gradient(int parameter);
  void SetData(DataStretch data);
  // Returns the epoch of the next step and how many of its rows have been
  // taken; nullopt until SetData or a checkpoint gives the course.
  std::optional<std::pair<int64_t, int64_t>> Position() const;
  // As DataCourse::StepsOf, once the course is known; 0 before.
  int64_t StepsOf(int64_t epochs) const;
  Session::Next BeginStep(const Session::StepStart& start);
  bool IsUnchanged(int parameter) const;
  void GradientReady(int parameter);
  Session::Next FinishStep(const Session::StepResult& result);
  // Session::ShowNewest, or else HideNewest.
  void ShowNewest(bool show);
  void ReportEvaluation(const v1::EvaluationPart& part);
  Session::Next Finish();
  void Fail(const std::string& why);
  void Cancel(const std::string& why);

 private:
  // Raise in a forked process and for a parameter that was not declared.
  void CheckProcess(absl::string_view method) const;
  void CheckParameter(int parameter, absl::string_view method) const;
  // Runs `call`, which Ctrl-C cancels.
  void Wait(absl::FunctionRef<void()> call);

  const pid_t process_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Waits> waits_;
  std::vector<HostFloats> weights_;  // keeps the memory alive
  std::vector<int64_t> sizes_;       // of each parameter
};

void BindSession(nanobind::module_& module);

}  // namespace tributary
