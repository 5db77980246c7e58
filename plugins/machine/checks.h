// What is wrong with a machine, in words for those who wrote it. "" if it is nothing.
#pragma once

#include "plugins/machine/machine.h"

#include <string>
#include <vector>

namespace machine {

std::string complaint_of_line(std::uint64_t bytes);
std::string complaint_of_page(const std::string& key, std::uint64_t bytes);
// Of a cache or translation buffer that the machine has already.
std::string complaint_of_name(const Machine& machine, const std::string& name);

// Whether there are pages that both buffers hold.
bool shares_pages(const Tlb& a, const Tlb& b);

struct Complaint {
    std::string name;  // of the cache or translation buffer that it is about; "": of all
    bool of_tlb = false;
    std::string why;
};
// The first one, if any.
std::vector<Complaint> complaints(const Machine& machine);

}  // namespace machine
