// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/predict/run_worker.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"

namespace tributary {
namespace {

constexpr char kEvaluateDescription[] =
    "Evaluates the model of a run: metrics and confusion matrix.";
constexpr char kEvaluateFooter[] =
    "Without an INPUT it evaluates the test set of the run's job.yaml. An "
    "input\n"
    "has the format of the training data, with labels: in the CSV file's own\n"
    "column, or for IDX and NPY in a file of their own. The first lines name\n"
    "data and weights: best.safetensors if the run has kept those of its best\n"
    "evaluation, else weights.safetensors.\n\n"
    "Examples:\n"
    "  tributary evaluate run\n"
    "  tributary evaluate run --data validation\n"
    "  tributary evaluate run people.csv --json\n"
    "  tributary evaluate run images.npy --labels labels.npy\n\n"
    "Exit codes: 0 done, 1 the result cannot be written, 2 wrong command "
    "line,\n"
    "run directory or input; the line says which file and row.";

struct EvaluateOptions {
  std::string run;
  std::string input;
  std::string labels;
  std::string data = "test";
  std::string weights;
  std::string output;
  bool last = false;
  bool json = false;
};

int Evaluate(const EvaluateOptions& options) {
  if (options.input.empty() && !options.labels.empty()) {
    PrintError("--labels belongs to an INPUT (try tributary evaluate --help)");
    return kExitRefused;
  }
  if (options.last && !options.weights.empty()) {
    PrintError(
        "--last and --weights exclude each other "
        "(try tributary evaluate --help)");
    return kExitRefused;
  }
  std::vector<std::string> arguments = {"--evaluate", options.run, "--data",
                                        options.data};
  const auto add = [&arguments](const char* name, const std::string& value) {
    if (!value.empty()) arguments.push_back(absl::StrCat(name, "=", value));
  };
  add("--input", options.input);
  add("--labels", options.labels);
  add("--weights", options.weights);
  add("--output", options.output);
  if (options.last) arguments.push_back("--last");
  if (options.json) arguments.push_back("--json");
  return BecomeWorker(arguments);
}

}  // namespace

void AddEvaluateCommand(CommandLine& program) {
  auto options = std::make_shared<EvaluateOptions>();
  CommandLine command = program.AddCommand("evaluate", kEvaluateDescription);
  command.SetFooter(kEvaluateFooter);
  command.AddOption("RUN", &options->run, "a run directory").Required();
  command.AddOption("INPUT", &options->input, "a file of rows with labels");
  command.AddOption("--labels", &options->labels,
                    "the labels of an IDX or NPY file");
  command
      .AddOption("--data", &options->data,
                 "without an INPUT: the run's test, validation or train data")
      .ShowDefault()
      .OneOf({"test", "validation", "train"});
  command.AddOption("--weights", &options->weights,
                    "a safetensors file, as tributary export writes it,\n"
                    "instead of the run's weights");
  command.AddFlag("--last", &options->last,
                  "the weights of the last step, although the run has kept\n"
                  "those of its best evaluation");
  command.AddFlag("--json", &options->json, "print JSON");
  command.AddOption("--output", &options->output,
                    "write to this file; it appears when it is complete");
  command.SetAction([options] { return Evaluate(*options); });
}

}  // namespace tributary
