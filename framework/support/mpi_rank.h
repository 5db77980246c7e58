// Which of the processes of an MPI program a process is.
#pragma once

#include <string>

namespace assay {

// As the launcher has told this process, and those that it starts: Open MPI's, MPICH's and those
// that speak PMI. "" if none has.
std::string mpi_rank();
// As that process was told when its program began.
std::string mpi_rank_of(int pid);

}  // namespace assay
