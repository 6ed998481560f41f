// agree(): exchanges one message between all ranks.
#include "backends/ranks/ranks.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits {

rank_observation agree(communicator& ranks, const rank_observation& mine) {
  return numerics::observation_of(backends::largest_message(ranks, mine, 0));
}

}  // namespace samebits
