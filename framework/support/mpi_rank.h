// The rank of a process among the processes of an MPI program.
#pragma once

#include <string>

namespace assay {

// The rank that the launcher set in the environment of this process: Open MPI, MPICH and launchers
// that speak PMI. "" if it set no rank.
std::string mpi_rank();
// The rank in the environment with which that process began.
std::string mpi_rank_of(int pid);

}  // namespace assay
