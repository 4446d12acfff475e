#include "app/run/json.hpp"
#include "app/run/provenance.hpp"
#include "app/run/train.hpp"

namespace hone {

std::string TrainSummary::to_json() const {
  Json json = {{"model", model},
               {"likelihood", likelihood},
               {"family", family},
               {"data", data},
               {"binarization", binarization},
               {"objective", objective},
               {"alpha", alpha},
               {"kernel", kernel},
               {"steps", steps},
               {"leapfrog", leapfrog},
               {"latent", latent},
               {"batch", batch},
               {"precision", precision},
               {"seed", seed},
               {"engine", engine},
               {"threads", threads},
               {"iterations", iterations},
               {"finished", finished},
               {"seconds", seconds},
               {"us_per_iteration", us_per_iteration},
               {"runs_side_by_side", runs_side_by_side},
               {"elbo", json_of(elbo)},
               {"vcd", json_of(vcd)},
               {"acceptance", acceptance},
               {"step_size", step_size},
               {"rejected_nonfinite", rejected_nonfinite},
               {"dropped_draws", dropped_draws},
               {"training_data", training_data},
               {"test_data", test_data}};
  if (best) {
    json["best"] = {{"iteration", best->iteration}, {"validation_log_likelihood", best->value}};
    json["stopped_early"] = stopped_early;
  }
  if (!device.empty()) json["device"] = device;
  if (trouble) json["trouble"] = {{"since", trouble->since}, {"what", trouble->text()}, {"advice", advice}};
  if (!note.empty()) json["note"] = note;
  json["machine"] = host_text();
  json["hone_version"] = hone_version();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone
