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

constexpr char kPredictDescription[] =
    "Predicts the rows of a file with the model of a run.";
constexpr char kPredictFooter[] =
    "The input has the format of the training data: CSV, IDX, NPY or text,\n"
    "gzipped or plain. Columns of a CSV file are found by name; the label may "
    "be\n"
    "missing. The run directory's model.json says how rows become inputs. The\n"
    "weights are in best.safetensors if the run has kept those of its best\n"
    "evaluation, else in weights.safetensors. Batches are read and written "
    "one\n"
    "after the other, so a file of any length needs little memory.\n\n"
    "Examples:\n"
    "  tributary predict run people.csv\n"
    "  tributary predict run images.idx.gz --format json --output out.jsonl\n"
    "  tributary predict run --generate 200 --prompt 'ROMEO:'\n\n"
    "Exit codes: 0 done, 1 the predictions cannot be written, 2 wrong command\n"
    "line, run directory or input; the line says which file and row.";

struct PredictOptions {
  std::string run;
  std::string input;
  std::string output;
  std::string weights;
  std::string format = "csv";
  bool top = false;
  bool allow_unknown = false;
  bool last = false;
  int64_t generate = 0;
  std::string prompt;
  uint64_t seed = 1;
  double temperature = 1;
};

int RefusePrediction(absl::string_view why) {
  PrintError(absl::StrCat(why, " (try tributary predict --help)"));
  return kExitRefused;
}

int Predict(const PredictOptions& options) {
  const bool generate = options.generate > 0;
  if (generate != options.input.empty()) {
    return RefusePrediction(generate
                                ? "--generate takes a --prompt and no INPUT"
                                : "an INPUT is wanted, or --generate");
  }
  if (generate == options.prompt.empty()) {
    return RefusePrediction(generate ? "--generate wants a --prompt"
                                     : "--prompt is for --generate");
  }
  if (options.last && !options.weights.empty()) {
    return RefusePrediction("--last and --weights exclude each other");
  }
  std::vector<std::string> arguments = {"--predict", options.run};
  const auto add = [&arguments](const char* name, const std::string& value) {
    // Makes one word of name and value, because a value may begin with a dash.
    if (!value.empty()) arguments.push_back(absl::StrCat(name, "=", value));
  };
  add("--input", options.input);
  add("--output", options.output);
  add("--weights", options.weights);
  add("--prompt", options.prompt);
  if (options.format == "json") arguments.push_back("--json");
  if (options.last) arguments.push_back("--last");
  if (options.top) arguments.push_back("--top");
  if (options.allow_unknown) arguments.push_back("--allow-unknown");
  if (generate) {
    add("--generate", absl::StrCat(options.generate));
    add("--seed", absl::StrCat(options.seed));
    add("--temperature", absl::StrCat(options.temperature));
  }
  return BecomeWorker(arguments);
}

void AddGenerateOptions(CommandLine& command, PredictOptions* options) {
  command
      .AddOption("--generate", &options->generate,
                 "of a text model: continue the prompt by so many tokens")
      .Range(1, 1'000'000);
  command.AddOption("--prompt", &options->prompt, "the text to continue")
      .MayBeEmpty();
  command
      .AddOption("--seed", &options->seed,
                 "draws the tokens; the same seed gives the same text")
      .ShowDefault();
  command
      .AddOption("--temperature", &options->temperature,
                 "above 1 more varied, below 1 less; 0: always the most\n"
                 "probable token")
      .ShowDefault()
      .Range(0.0, 1000.0);
}

}  // namespace

void AddPredictCommand(CommandLine& program) {
  auto options = std::make_shared<PredictOptions>();
  CommandLine command = program.AddCommand("predict", kPredictDescription);
  command.SetFooter(kPredictFooter);
  command.AddOption("RUN", &options->run, "a run directory").Required();
  command.AddOption("INPUT", &options->input, "a file of rows");
  command.AddOption("--output", &options->output,
                    "write to this file; it appears when it is complete");
  command.AddOption("--format", &options->format, "csv, or json: JSON lines")
      .ShowDefault()
      .OneOf({"csv", "json"});
  command.AddFlag("--top", &options->top,
                  "of classes write only the most probable one");
  command.AddFlag("--allow-unknown", &options->allow_unknown,
                  "accept categories that the training data lack, as none of\n"
                  "those it has, instead of ending with an error");
  command.AddOption("--weights", &options->weights,
                    "a safetensors file, as tributary export writes it,\n"
                    "instead of the run's weights");
  command.AddFlag("--last", &options->last,
                  "the weights of the last step, although the run has kept\n"
                  "those of its best evaluation");
  AddGenerateOptions(command, options.get());
  command.SetAction([options] { return Predict(*options); });
}

}  // namespace tributary
