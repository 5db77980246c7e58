// Finds errors in a machine, with messages for its author. "" means that there is no error.
#pragma once

#include "plugins/machine/machine.h"

#include <string>
#include <vector>

namespace machine {

std::string complaint_of_line(std::uint64_t bytes);
std::string complaint_of_page(const std::string& key, std::uint64_t bytes);
// Checks the name of a cache or translation buffer that is already in the machine.
std::string complaint_of_name(const Machine& machine, const std::string& name);

// True if both buffers hold pages of a common size.
bool shares_pages(const Tlb& a, const Tlb& b);

struct Complaint {
    std::string name;  // of the wrong cache or translation buffer; "" for the whole machine
    bool of_tlb = false;
    std::string why;
};
std::vector<Complaint> complaints(const Machine& machine);

}  // namespace machine
