// SPDX-License-Identifier: Apache-2.0
#include "python/src/native/session_binding.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "python/src/native/raise.h"

namespace nb = nanobind;

namespace tributary {

std::unique_ptr<SessionBinding> SessionBinding::Join(Session::Options options) {
  auto joined = std::make_shared<absl::StatusOr<std::unique_ptr<Session>>>(
      absl::CancelledError("not joined"));
  RunOrAbandon([joined, options = std::move(options)] {
    *joined = Session::Join(options);
  });
  return std::make_unique<SessionBinding>(
      ValueOrRaise(std::move(*joined), "join"));
}

SessionBinding::SessionBinding(std::unique_ptr<Session> session)
    : process_(getpid()),
      session_(std::move(session)),
      waits_(std::make_unique<Waits>()) {}

SessionBinding::~SessionBinding() {
  if (getpid() != process_) {
    // The threads that the destructors would join exist in the parent only.
    (void)session_.release();
    (void)waits_.release();
    return;
  }
  nb::gil_scoped_release without_gil;
  session_.reset();
  waits_.reset();
}

void SessionBinding::CheckProcess(absl::string_view method) const {
  if (getpid() == process_) return;
  Raise(absl::FailedPreconditionError(absl::StrCat(
            "process ", getpid(), " was forked from process ", process_,
            " after it had connected, and a fork inherits no connection; "
            "connect in the process that trains, or start processes with "
            "the method \"spawn\"")),
        method);
}

void SessionBinding::CheckParameter(int parameter,
                                    absl::string_view method) const {
  const int declared = static_cast<int>(sizes_.size());
  if (parameter >= 0 && parameter < declared) return;
  Raise(absl::InvalidArgumentError(absl::StrCat(
            "wanted a parameter from 0 below ", declared, ", got ", parameter)),
        method);
}

void SessionBinding::Wait(absl::FunctionRef<void()> call) {
  waits_->Run(call, [this] { session_->Cancel("interrupted by a signal"); });
}

void SessionBinding::Start(std::vector<Parameter> parameters,
                           Session::Declaration declaration) {
  CheckProcess("start");
  weights_.clear();
  sizes_.clear();
  for (Parameter& parameter : parameters) {
    ParameterSpec spec{.name = parameter.name,
                       .shape = parameter.shape,
                       .running_momentum = parameter.running_momentum};
    if (static_cast<int64_t>(parameter.weight.size()) != spec.size()) {
      Raise(absl::InvalidArgumentError(absl::StrCat(
                "the memory of ", parameter.name, " has ",
                parameter.weight.size(), " values, wanted ", spec.size())),
            "start");
    }
    sizes_.push_back(spec.size());
    declaration.weights.push_back(parameter.weight.data());
    declaration.parameters.push_back(std::move(spec));
    weights_.push_back(std::move(parameter.weight));
  }
  for (const int i : declaration.reserved) CheckParameter(i, "start");
  absl::Status started;
  Wait([&] { started = session_->Start(std::move(declaration)); });
  RaiseUnlessOk(started, "start");
}

NumpyFloats SessionBinding::Gradient(int parameter) {
  CheckProcess("gradient");
  CheckParameter(parameter, "gradient");
  const size_t size = static_cast<size_t>(sizes_[parameter]);
  return NumpyFloats(session_->gradient(parameter), {size}, nb::find(this));
}

bool SessionBinding::IsUnchanged(int parameter) const {
  CheckProcess("is_unchanged");
  CheckParameter(parameter, "is_unchanged");
  nb::gil_scoped_release without_gil;
  return session_->IsUnchanged(parameter);
}

void SessionBinding::SetData(DataStretch data) {
  CheckProcess("set_data");
  if (data.rows < 1 || data.global_batch < 1 || data.accumulation < 1) {
    Raise(absl::InvalidArgumentError(absl::StrCat(
              "wanted rows, global batch and accumulation of at least 1, got ",
              data.rows, ", ", data.global_batch, " and ", data.accumulation)),
          "set_data");
  }
  absl::Status set;
  Wait([&] { set = session_->SetData(std::move(data)); });
  RaiseUnlessOk(set, "set_data");
}

std::optional<std::pair<int64_t, int64_t>> SessionBinding::Position() const {
  CheckProcess("position");
  if (session_->course().empty()) return std::nullopt;
  const DataPosition at = session_->course().After(session_->steps());
  return std::pair(at.epoch, at.row);
}

int64_t SessionBinding::StepsOf(int64_t epochs) const {
  CheckProcess("steps_of");
  const DataCourse& course = session_->course();
  return course.empty() ? 0 : course.StepsOf(epochs).value_or(kOpenEnd);
}

Session::Next SessionBinding::BeginStep(const Session::StepStart& start) {
  CheckProcess("begin_step");
  absl::StatusOr<Session::Next> next = Session::Next::kEnd;
  Wait([&] { next = session_->BeginStep(start); });
  return ValueOrRaise(std::move(next), "begin_step");
}

void SessionBinding::GradientReady(int parameter) {
  CheckProcess("gradient_ready");
  CheckParameter(parameter, "gradient_ready");
  nb::gil_scoped_release without_gil;
  session_->GradientReady(parameter);
}

Session::Next SessionBinding::FinishStep(const Session::StepResult& result) {
  CheckProcess("finish_step");
  absl::StatusOr<Session::Next> next = Session::Next::kEnd;
  Wait([&] { next = session_->FinishStep(result); });
  return ValueOrRaise(std::move(next), "finish_step");
}

void SessionBinding::ShowNewest(bool show) {
  CheckProcess("show_newest");
  absl::Status shown;
  Wait([&] { shown = show ? session_->ShowNewest() : session_->HideNewest(); });
  // The next step reports other errors, or continues from another position.
  if (absl::IsCancelled(shown)) RaiseUnlessOk(shown, "show_newest");
}

void SessionBinding::ReportEvaluation(const v1::EvaluationPart& part) {
  CheckProcess("report_evaluation");
  absl::Status reported;
  Wait([&] { reported = session_->ReportEvaluation(part); });
  RaiseUnlessOk(reported, "report_evaluation");
}

Session::Next SessionBinding::Finish() {
  CheckProcess("finish");
  absl::StatusOr<Session::Next> next = Session::Next::kEnd;
  Wait([&] { next = session_->Finish(); });
  return ValueOrRaise(std::move(next), "finish");
}

void SessionBinding::Fail(const std::string& why) {
  CheckProcess("fail");
  Wait([&] { session_->Fail(why); });
}

void SessionBinding::Cancel(const std::string& why) {
  CheckProcess("cancel");
  nb::gil_scoped_release without_gil;
  session_->Cancel(why);
}

}  // namespace tributary
