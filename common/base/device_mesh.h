// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// The workers that hold a parameter: those with one tensor rank in one stage,
// or in the two stages that share the parameter.
struct Holders {
  int stage = -1;        // -1: all stages
  int tensor = -1;       // -1: all tensor ranks
  int other_stage = -1;  // -1: no other stage; else above `stage`

  friend bool operator==(const Holders&, const Holders&) = default;
};

// The mesh of workers: data x stages x tensor ranks. The tensor rank varies
// fastest, so that the workers that exchange most have neighbouring ranks
// (Narayanan et al. 2021).
struct DeviceMesh {
  int data = 1;
  int stages = 1;
  int tensor = 1;

  struct Place {
    int data = 0;
    int stage = 0;
    int tensor = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };

  int size() const { return data * stages * tensor; }
  // Number of workers that hold one replica of the model.
  int model_size() const { return stages * tensor; }
  int RankOf(const Place& place) const {
    return (place.data * stages + place.stage) * tensor + place.tensor;
  }
  Place PlaceOf(int rank) const {
    return {rank / model_size(), rank / tensor % stages, rank % tensor};
  }
  bool Holds(int rank, const Holders& holders) const {
    const Place place = PlaceOf(rank);
    return (holders.stage < 0 || holders.stage == place.stage ||
            holders.other_stage == place.stage) &&
           (holders.tensor < 0 || holders.tensor == place.tensor);
  }

  friend bool operator==(const DeviceMesh&, const DeviceMesh&) = default;
};

}  // namespace tributary
