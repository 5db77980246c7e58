#include "framework/collector/results/early_positions.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::collector {

// The entries of a compilation unit are read again for each request that has some of its code:
// there is one in each doubling of the time.
void EarlyPositions::prepare(const CodeTables& code, const AddressMap& addresses) {
    const Clock::duration now = Clock::now() - start_;
    if (now < next_) return;
    prepare_code(code, addresses, {});
    next_ = 2 * now;
}

void EarlyPositions::prepare_rest(const CodeTables& code, const AddressMap& addresses,
                                  std::span<const std::uint64_t> executions) {
    if (Clock::now() - start_ >= kFirst) prepare_code(code, addresses, executions);
}

void EarlyPositions::prepare_code(const CodeTables& code, const AddressMap& addresses,
                                  std::span<const std::uint64_t> executions) {
    if (instrs_ == code.instrs.size()) return;
    struct Place {
        symbols::Request* request;  // null if it is not worth it
        std::uint64_t bias;         // added to an address of the process
    };
    std::map<std::string, symbols::Request> requests;
    std::vector<Place> places;  // by mapping
    for (const Mapping& mapping : addresses.mappings()) {
        const std::string& path = *mapping.path;
        places.push_back({});
        if (!symbolizer_.worth_preparing(path)) continue;
        symbols::Request& request = requests[path];
        request.object_path = path;
        places.back() = {&request,
                         symbolizer_.address_of_offset(path, mapping.offset) - mapping.start};
    }
    AddressMap::Finder mappings(addresses);
    for (; instrs_ < code.instrs.size(); ++instrs_) {
        if (!executions.empty() && executions[instrs_] == 0) continue;
        const std::uint64_t pc = code.instrs[instrs_].pc;
        const std::uint32_t mapping = mappings.find(pc);
        if (mapping == kNoMapping || places[mapping].request == nullptr) continue;
        places[mapping].request->addresses.push_back(pc + places[mapping].bias);
    }
    for (auto& [path, request] : requests) {
        if (request.addresses.empty()) continue;
        std::sort(request.addresses.begin(), request.addresses.end());
        symbolizer_.prepare(std::move(request));
    }
}

}  // namespace assay::collector
