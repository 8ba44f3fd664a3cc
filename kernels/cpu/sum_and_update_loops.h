// SPDX-License-Identifier: Apache-2.0
// The loops of sum_and_update.cc for one instruction set. That file includes
// this one several times, each time with
//   TRIBUTARY_VERSION     a namespace
//   TRIBUTARY_TARGET      the attribute of functions for the instruction set
//   TRIBUTARY_FOLD_BYTES  the size of a register for carry-less products, or 0
//   TRIBUTARY_MULTIPLY    these products

namespace TRIBUTARY_VERSION {

// Folds the chunks of a pass; keeps the ChunkFold's polynomial in registers.
class Folding {
 public:
  static constexpr bool kFolds = TRIBUTARY_FOLD_BYTES > 0;

#if TRIBUTARY_FOLD_BYTES == 0
  explicit Folding(const ChunkFold& /*fold*/) {}
  void Add(const float* /*chunk*/) {}
  void Store(ChunkFold* /*fold*/) const {}
#else
  TRIBUTARY_TARGET TRIBUTARY_INLINE explicit Folding(const ChunkFold& fold) {
    for (size_t i = 0; i < sizeof(Register) / 8; ++i) {
      factors_[i] = static_cast<int64_t>(fold.factors[i % 2]);
    }
    __builtin_memcpy(x_, fold.bytes, ChunkFold::kBytes);
  }
  TRIBUTARY_TARGET TRIBUTARY_INLINE void Add(const float* chunk) {
    for (int i = 0; i < kRegisters; ++i) {
      Register next;
      __builtin_memcpy(&next, chunk + i * kFloats, sizeof(next));
      x_[i] = TRIBUTARY_MULTIPLY(x_[i], factors_, 0x00) ^
              TRIBUTARY_MULTIPLY(x_[i], factors_, 0x11) ^ next;
    }
  }
  TRIBUTARY_TARGET TRIBUTARY_INLINE void Store(ChunkFold* fold) const {
    __builtin_memcpy(fold->bytes, x_, ChunkFold::kBytes);
  }

 private:
  typedef long long Register __attribute__((vector_size(TRIBUTARY_FOLD_BYTES)));
  static constexpr int kRegisters = ChunkFold::kBytes / sizeof(Register);
  static constexpr int kFloats = sizeof(Register) / sizeof(float);

  Register factors_, x_[kRegisters];
#endif
};

// The sum of elements [first, first + n); n is at most kChunk. Not inlined, so
// that the code is not repeated for every rule.
TRIBUTARY_TARGET __attribute__((noinline)) void SumOfChunk(
    const SumAndUpdate& call, int64_t first, int64_t n, float* out) {
  if (call.count == 0) {
    std::fill_n(out, kChunk, 0.0f);
  } else if (n == kChunk) {  // a constant, for which the loops are unrolled
    SumInOrder(first, kChunk, call.count, call.parts, call.weights, out);
  } else {
    SumInOrder(first, n, call.count, call.parts, call.weights, out);
  }
}

// Updates elements [first, first + n). kDirect: the number of parts when their
// sum stays in registers (1 or 2); 0 for any other number.
template <int kDirect, typename Rule, typename Indices>
TRIBUTARY_TARGET TRIBUTARY_INLINE void UpdateElements(
    Indices indices, const OptimizerStep& p, const SumAndUpdate& call,
    float* const* states, int64_t first, int64_t n) {
  const auto update = [&](auto gradient) TRIBUTARY_INLINE_LAMBDA {
    UpdateWeights<Rule>(indices, p, call, states, first, n, gradient);
  };
  if constexpr (kDirect == 0) {
    alignas(64) float sum[kChunk];
    SumOfChunk(call, first, n, sum);
    update([&](int64_t i) TRIBUTARY_INLINE_LAMBDA { return sum[i]; });
  } else {
    const UnalignedFloat* const a = call.parts[0] + first;
    const float x = call.weights[0];
    if constexpr (kDirect == 1) {
      update([=](int64_t i) TRIBUTARY_INLINE_LAMBDA { return x * a[i]; });
    } else {
      const UnalignedFloat* const b = call.parts[1] + first;
      const float y = call.weights[1];
      update([=](int64_t i) TRIBUTARY_INLINE_LAMBDA {
        const float sum = x * a[i];
        return sum + y * b[i];
      });
    }
  }
}

// The step is passed by value, so that stores to the arrays cannot alias it.
template <int kDirect, typename Rule, size_t... kState>
TRIBUTARY_TARGET int64_t Chunks(std::index_sequence<kState...> indices,
                                const OptimizerStep p,
                                const SumAndUpdate& call) {
  // Copies, which no store can change.
  float* const states[] = {call.state[kState]..., nullptr};
  Folding folding(*call.fold);
  int64_t first = 0;
  for (; first + kChunk <= call.n; first += kChunk) {
    UpdateElements<kDirect, Rule>(indices, p, call, states, first, kChunk);
    folding.Add(call.weight_out + first);
  }
  folding.Store(call.fold);
  if (first < call.n) {
    UpdateElements<kDirect, Rule>(indices, p, call, states, first,
                                  call.n - first);
  }
  return Folding::kFolds ? first : 0;
}

int64_t Run(const OptimizerStep& step, const SumAndUpdate& call) {
  TRIBUTARY_CHECK(!step.makes_direction);
  int64_t folded = 0;
  const bool found = VisitRule(step, [&](auto rule) TRIBUTARY_INLINE_LAMBDA {
    using Rule = decltype(rule);
    constexpr std::make_index_sequence<Rule::kStates.size()> kStates;
    switch (call.count) {
      case 1:
        folded = Chunks<1, Rule>(kStates, step, call);
        break;
      case 2:
        folded = Chunks<2, Rule>(kStates, step, call);
        break;
      default:
        folded = Chunks<0, Rule>(kStates, step, call);
    }
  });
  TRIBUTARY_CHECK(found);
  return folded;
}

}  // namespace TRIBUTARY_VERSION

#undef TRIBUTARY_VERSION
#undef TRIBUTARY_TARGET
#undef TRIBUTARY_FOLD_BYTES
#undef TRIBUTARY_MULTIPLY
