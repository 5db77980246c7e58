// Replays a trace of simulation points (assay record --simpoints): each by itself, with profilers
// that begin anew, and adds up what each of them stands for.
#pragma once

#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/settings.h"
#include "framework/driver/replay/image_trace.h"

#include <memory>

namespace assay::collector {

// Writes the events file of the image. False if its profile is not what was asked for. Throws Error
// if nothing could be replayed, or if points do not tell what is asked for.
bool replay_points(const CoreSettings& settings, const replay::ImageTrace& trace,
                   const Image& image, const std::shared_ptr<const ProfileLog>& profiles);

}  // namespace assay::collector
