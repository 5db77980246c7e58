#include "tools/table/json.h"

#include "framework/events/formula.h"
#include "tools/table/table.h"

#include <string>

namespace assay {

void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json) {
    json.objects("events", shown, [&](const std::size_t column) {
        json.text("name", shown_name(column, header));
        const std::size_t events = header.events.size();
        json.text("unit", column < events ? header.events[column].unit
                                          : header.derived[column - events].unit);
        if (column < events) json.text("description", header.events[column].description);
    });
}

void write_counts(const events::Header& header, const std::vector<std::size_t>& shown,
                  Counts counts, JsonWriter& json) {
    json.begin_array();
    for (const std::size_t column : shown) {
        const std::size_t events = header.events.size();
        if (column < events && header.difference) {
            json.literal(std::to_string(static_cast<std::int64_t>(counts[column])));
        } else if (column < events) {
            json.number(counts[column]);
        } else {
            const events::Formula formula(header.derived[column - events].formula, header.events);
            json.real(formula.value(counts));
        }
    }
    json.end_array();
}

}  // namespace assay
