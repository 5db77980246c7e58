#include "tools/block_vectors/simulation_points.h"

#include <string_view>

namespace assay {

SimulationPointFiles simulation_point_files(std::string vectors) {
    for (const std::string_view ending : {".gz", ".zst"})
        if (vectors.ends_with(ending)) vectors.resize(vectors.size() - ending.size());
    return {vectors + ".simpts", vectors + ".weights", vectors + ".labels"};
}

}  // namespace assay
