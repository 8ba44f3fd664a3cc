// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Many ids for few rows, so that most ids repeat.
Outputs RunEmbedding(Ops& ops) {
  Outputs outputs;
  for (int64_t dim : {int64_t{1}, int64_t{16}, int64_t{300}}) {
    const int64_t count = 301, table_rows = 41;
    std::vector<int64_t> id_values = Integers(count, table_rows, 1);
    for (int64_t i = 0; i < count; i += 5) id_values[i] = -1;
    Ids ids(ops, id_values);
    Floats table(ops, Numbers(table_rows * dim, 2));
    Floats y(ops, Zeros(count * dim));
    Floats dy(ops, Numbers(count * dim, 3));
    Floats d_table(ops, Numbers(table_rows * dim, 4));
    ops.Embedding(count, dim, ids.data(), table.data(), y.data());
    ops.EmbeddingBackward(count, dim, ids.data(), dy.data(), d_table.data());
    ops.EmbeddingBackward(0, dim, ids.data(), dy.data(), d_table.data());
    outputs.push_back(y.Download());
    outputs.push_back(d_table.Download());
  }
  return outputs;
}

Outputs RunEmbeddingBag(Ops& ops, bool mean, bool weighted) {
  Outputs outputs;
  for (int64_t dim : {int64_t{5}, int64_t{64}}) {
    const int64_t table_rows = 23;
    // Bags of 0 to 6 ids; the first and the last are empty.
    std::vector<int64_t> offset_values = {0};
    for (int64_t size : {0, 3, 1, 6, 0, 2, 5, 0}) {
      offset_values.push_back(offset_values.back() + size);
    }
    const int64_t num_ids = offset_values.back();
    Ids offsets(ops, offset_values);
    Ids ids(ops, Integers(num_ids, table_rows, 1));
    Floats weights(ops, Numbers(num_ids, 2));
    EmbeddingBags bags;
    bags.count = static_cast<int64_t>(offset_values.size()) - 1;
    bags.num_ids = num_ids;
    bags.ids = ids.data();
    bags.offsets = offsets.data();
    bags.weights = weighted ? weights.data() : nullptr;
    bags.mean = mean;
    Floats table(ops, Numbers(table_rows * dim, 3));
    Floats y(ops, Numbers(bags.count * dim, 4));
    Floats dy(ops, Numbers(bags.count * dim, 5));
    Floats d_table(ops, Numbers(table_rows * dim, 6));
    Floats d_weights(ops, Zeros(num_ids));
    ops.EmbeddingBag(bags, dim, table.data(), y.data());
    ops.EmbeddingBagBackward(bags, dim, table.data(), dy.data(), d_table.data(),
                             weighted ? d_weights.data() : nullptr);
    for (const Floats* out : {&y, &d_table, &d_weights}) {
      outputs.push_back(out->Download());
    }
  }
  return outputs;
}

Outputs RunDotInteraction(Ops& ops) {
  Outputs outputs;
  for (int64_t features : {int64_t{1}, int64_t{2}, int64_t{9}}) {
    const int64_t batch = 11, dim = 37;
    const int64_t pairs = features * (features - 1) / 2;
    Floats x(ops, Numbers(batch * features * dim, 1));
    Floats y(ops, Zeros(batch * pairs));
    Floats dy(ops, Numbers(batch * pairs, 2));
    Floats dx(ops, Numbers(batch * features * dim, 3));
    ops.DotInteraction(batch, features, dim, x.data(), y.data());
    ops.DotInteractionBackward(batch, features, dim, x.data(), dy.data(),
                               dx.data());
    outputs.push_back(y.Download());
    outputs.push_back(dx.Download());
  }
  return outputs;
}

}  // namespace

void AddEmbeddingChecks(std::vector<AgreementCheck>* checks) {
  checks->push_back({"embedding", 0, RunEmbedding});
  checks->push_back({"embedding bag, sum", 0, [](Ops& ops) {
                       return RunEmbeddingBag(ops, false, false);
                     }});
  checks->push_back({"embedding bag, mean", 0, [](Ops& ops) {
                       return RunEmbeddingBag(ops, true, false);
                     }});
  checks->push_back({"embedding bag, weighted", 0, [](Ops& ops) {
                       return RunEmbeddingBag(ops, true, true);
                     }});
  checks->push_back({"dot interaction", 0, RunDotInteraction});
}

}  // namespace tributary::testing
