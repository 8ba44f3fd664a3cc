// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/option.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

constexpr char kRefusesEmpty[] = "refuses empty";

// Makes its own error messages: a ValidationError would name the option twice.
void CheckNumber(CLI::Option* option, const CLI::Range& range,
                 const std::string& wanted) {
  const auto check = [option, range, wanted](const std::string& value) {
    double number = 0;  // nan is in every range
    const bool is_number = absl::SimpleAtod(value, &number);
    if (range(value).empty() && !(is_number && std::isnan(number))) return "";
    throw CLI::ConversionError(absl::StrCat(option->get_name(), " wants ",
                                            wanted, ", got \"", value, "\""));
  };
  option->check(check, range.get_description());
}

}  // namespace

Option& Option::Required() {
  option_->required();
  return *this;
}

Option& Option::Hidden() {
  option_->group("");
  return *this;
}

Option& Option::TypeName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Option& Option::FromEnvironment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Option& Option::Count(int values) {
  option_->expected(values);
  return *this;
}

Option& Option::Separator(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::OnePerFlag() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::MayBeEmpty() {
  option_->get_validator(kRefusesEmpty)->active(false);
  return *this;
}

void Option::RefuseEmpty() {
  option_->check(
      [option = option_](const std::string& value) {
        if (!value.empty()) return "";
        throw CLI::ConversionError(absl::StrCat(
            option->get_name(), " wants a value, got an empty one"));
      },
      /*Validator_description=*/"", kRefusesEmpty);
}

Option& Option::Range(int first, int last) {
  CheckNumber(option_, CLI::Range(first, last),
              absl::StrCat("a number from ", first, " to ", last));
  return *this;
}

Option& Option::Range(double first, double last) {
  CheckNumber(option_, CLI::Range(first, last),
              absl::StrCat("a number from ", first, " to ", last));
  return *this;
}

Option& Option::Positive() {
  CheckNumber(option_, CLI::PositiveNumber, "a number above 0");
  return *this;
}

Option& Option::NonNegative() {
  CheckNumber(option_, CLI::NonNegativeNumber, "a number of at least 0");
  return *this;
}

Option& Option::ExistingFolder() {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

Option& Option::OneOf(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::TypeOneOf(const std::vector<std::string>& values) {
  option_->type_name(absl::StrJoin(values, "|"))
      ->check(CLI::IsMember(values).description(""));
  return *this;
}

Option& Option::Needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::Needs(const Option& other,
                      std::function<bool(const std::string& value)> wants) {
  option_->check([self = option_, needed = other.option_,
                  wants = std::move(wants)](const std::string& value) {
    if (!wants(value) || needed->count() > 0) return "";
    throw CLI::RequiresError(self->get_name(), needed->get_name());
  });
  return *this;
}

}  // namespace tributary
