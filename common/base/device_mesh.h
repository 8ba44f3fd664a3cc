#pragma once

#include <cstdint>

namespace tributary {

// Which workers hold a parameter: those of one stage, or two that share it, and
// of one tensor rank.
struct Holders {
  int stage = -1;        // -1: of every stage
  int tensor = -1;       // -1: every tensor rank
  int other_stage = -1;  // -1: none; after `stage`

  friend bool operator==(const Holders&, const Holders&) = default;
};

// The workers as data x stages x tensor ranks, the tensor rank fastest: those
// that exchange most stand next to each other (Narayanan et al. 2021).
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
  // How many workers hold one replica of the model.
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
