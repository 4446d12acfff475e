// The shared posteriors as C functions, for nutpie_peer.py.
#include <string>

#include "hone/base/error.hpp"
#include "tests/support/posteriors.hpp"

namespace {

struct Peer {
  std::unique_ptr<hone::Posterior> posterior;
  std::string names;  // separated by commas
};

}  // namespace

extern "C" {

// Null if there is no posterior of this name. Kept until the process ends.
const Peer* peer_open(const char* name) {
  try {
    auto* peer = new Peer{hone::test::make_known(name), {}};
    for (const std::string& one : peer->posterior->names()) peer->names += (peer->names.empty() ? "" : ",") + one;
    return peer;
  } catch (const hone::Error&) {
    return nullptr;
  }
}

int peer_dimension(const Peer* peer) { return peer->posterior->dimension(); }

const char* peer_names(const Peer* peer) { return peer->names.c_str(); }

// Returns the log density and writes its gradient.
double peer_log_density(const Peer* peer, const double* z, double* gradient) {
  const int d = peer->posterior->dimension();
  double value = 0;
  peer->posterior->evaluate({z, d, 1}, hone::Want::both, {&value, 1}, {gradient, d, 1});
  return value;
}

void peer_constrain(const Peer* peer, const double* z, double* natural) {
  const auto d = static_cast<std::size_t>(peer->posterior->dimension());
  peer->posterior->constrain({z, d}, {natural, peer->posterior->names().size()});
}
}
