// Profilers written in Python: assay.Profiler of the package in python/assay. The Python program
// waits at a socket. It gets rows in shared memory, and tells what it counts.
#include "plugins/python/rows.h"

#include <assay/profiler.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace python {
namespace {

constexpr std::size_t kRoom = 65536;  // rows in the shared memory

// An instruction with its number of executions, in vp_finish.
struct Executed {
    std::uint64_t pc, count;
    std::uint32_t bytes, reserved;
};
// A result: `weight` more of an event.
struct Counted {
    std::uint64_t pc, weight;
    std::uint32_t event, reserved;
};

// The connection to the Python program: lines of text, and memory for rows.
class Connection {
  public:
    Connection(const std::string& path, std::string_view command) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path)
            throw assay::BadOption("python-socket", path, "the path is too long for a socket");
        path.copy(address.sun_path, path.size());
        socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (socket_ < 0 ||
            connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            throw assay::BadOption("python-socket", path, std::strerror(errno));
        const int memory = memfd_create("assay rows", MFD_CLOEXEC);
        constexpr std::size_t kBytes = kRoom * sizeof(python_row_t);
        if (memory < 0 || ftruncate(memory, kBytes) != 0) fail("shared memory");
        void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        if (at == MAP_FAILED) fail("shared memory");
        memory_ = static_cast<std::byte*>(at);
        send_with_file("hello " + std::string(command) + "\n", memory);
        close(memory);
    }
    ~Connection() {
        if (memory_) munmap(memory_, kRoom * sizeof(python_row_t));
        if (socket_ >= 0) close(socket_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Reads a line without its end. Throws if it begins with "fail ".
    std::string line() {
        std::string read;
        for (char byte = 0;;) {
            receive(&byte, 1);
            if (byte == '\n') break;
            read += byte;
        }
        if (read.starts_with("fail ")) throw std::runtime_error(read.substr(5));
        return read;
    }
    // The number in a line "WORD NUMBER".
    std::size_t number(std::string_view word) {
        const std::string read = line();
        if (!read.starts_with(word)) throw std::runtime_error("unexpected answer: " + read);
        return std::stoull(read.substr(word.size() + 1));
    }
    void receive(void* to, std::size_t bytes) {
        for (std::size_t got = 0; got < bytes;) {
            const ssize_t more = recv(socket_, static_cast<char*>(to) + got, bytes - got, 0);
            if (more < 0 && errno == EINTR) continue;
            if (more <= 0) throw std::runtime_error("the Python program has ended");
            got += static_cast<std::size_t>(more);
        }
    }
    void send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent <= 0) throw std::runtime_error("the Python program has ended");
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    // Gives rows to the Python program, in portions.
    template <typename Row>
    void give(std::string_view word, std::span<const Row> rows) {
        static_assert(sizeof(Row) <= sizeof(python_row_t));
        while (!rows.empty()) {
            const auto portion = rows.first(std::min(rows.size(), kRoom));
            std::memcpy(memory_, portion.data(), portion.size_bytes());
            send(std::string(word) + " " + std::to_string(portion.size()) + "\n");
            if (line() != "ok") throw std::runtime_error("the Python program has lost the thread");
            rows = rows.subspan(portion.size());
        }
    }

  private:
    [[noreturn]] static void fail(const char* what) {
        throw std::system_error(errno, std::generic_category(), what);
    }

    void send_with_file(std::string text, int file) {
        iovec part{text.data(), text.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof file);
        std::memcpy(CMSG_DATA(head), &file, sizeof file);
        const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
        if (sent < 0) fail("socket");
        send(std::string_view(text).substr(static_cast<std::size_t>(sent)));
    }

    int socket_ = -1;
    std::byte* memory_ = nullptr;
};

using Request = void (*)(assay::Captures&);
struct NamedCapture {
    std::string_view name;
    Request request;
};
constexpr std::array kCaptures{
    NamedCapture{"references", [](assay::Captures& wanted) { wanted.references(); }},
    NamedCapture{"fetches", [](assay::Captures& wanted) { wanted.fetches(64, 0); }},
    NamedCapture{"blocks", [](assay::Captures& wanted) { wanted.blocks(); }},
    NamedCapture{"branches", [](assay::Captures& wanted) { wanted.branches(15); }},
    NamedCapture{"calls", [](assay::Captures& wanted) { wanted.calls(); }},
    NamedCapture{"system-calls", [](assay::Captures& wanted) { wanted.system_calls(); }},
    NamedCapture{"counts", [](assay::Captures& wanted) { wanted.block_counts(); }},
};

struct EventText {
    std::string name, description, unit;
};

class Python final : public assay::Profiler {
  public:
    static constexpr const char* kName = "python";
    static constexpr const char* kDescription =
        "Runs a profiler that is written in Python: a class derived from assay.Profiler, given to "
        "assay.run().";
    static constexpr vp_option_t kOptions[] = {
        {"python-socket", "PATH", nullptr,
         "The socket at which assay.run() of a Python program waits.", VP_OPTION_TEXT, 0}};

    void option(std::string_view, const std::string& value) override { path_ = value; }

    void check_options() override {
        if (path_.empty()) {
            if (!command().empty())
                throw std::invalid_argument(
                    "this profiler needs a class: start it by assay.run() of Python's package "
                    "assay");
            return;
        }
        connection_.emplace(path_, command());
        for (std::string said; (said = connection_->line()) != "end";) agree(said);
        for (const EventText& text : texts_)
            events_.push_back({text.name.c_str(), text.description.c_str(), text.unit.c_str()});
    }

    std::span<const vp_event_t> events() const { return events_; }

    void capture(assay::Captures& wanted) override {
        for (const Request request : requests_) request(wanted);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        const auto blocks = trace.blocks();
        trace_position_t& position = positions_[trace.thread()];
        rows_.clear();
        for (const trace_record_t& record : trace.records()) {
            const trace_site_t& site = sites[record.site];
            const trace_instr_t& instr = instrs[site.instr];
            rows_.push_back(python_row_of(&record, &site, &instr, &blocks[instr.block], &position));
            rows_.back().thread = static_cast<std::uint16_t>(trace.thread() + 1);
            rows_.back().image = 1;
        }
        if (!trace.is_warm_up()) connection_->give<python_row_t>("rows", rows_);
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        std::map<std::uint64_t, Executed> executed;
        const auto instrs = trace.instrs();
        for (std::uint32_t i = 0; i < instrs.size(); ++i)
            if (const std::uint64_t count = trace.count(i)) {
                Executed& all = executed.try_emplace(instrs[i].pc).first->second;
                all = {instrs[i].pc, all.count + count, instrs[i].length, 0};
            }
        std::vector<Executed> rows;
        rows.reserve(executed.size());
        for (const auto& [pc, row] : executed) rows.push_back(row);
        connection_->give<Executed>("executed", rows);
        connection_->send("finish\n");
        for (std::size_t left = connection_->number("samples"); left > 0; --left) {
            Counted counted{};
            connection_->receive(&counted, sizeof counted);
            if (counted.event >= events_.size()) throw std::runtime_error("there is no such event");
            samples.count(counted.pc, counted.event, counted.weight);
        }
        summary_.resize(connection_->number("summary"));
        connection_->receive(summary_.data(), summary_.size());
    }

    std::string summary(std::span<const std::uint64_t>) override { return summary_; }

  private:
    // What the class says, line by line: "event NAME", then perhaps "description TEXT" and
    // "unit TEXT"; "capture NAME".
    void agree(const std::string& said) {
        const std::size_t blank = std::min(said.find(' '), said.size());
        const std::string word = said.substr(0, blank);
        const std::string text = said.substr(std::min(blank + 1, said.size()));
        if (word == "event") {
            texts_.push_back({text, "", ""});
        } else if (word == "description" && !texts_.empty()) {
            texts_.back().description = text;
        } else if (word == "unit" && !texts_.empty()) {
            texts_.back().unit = text;
        } else {
            request(text);
        }
    }

    void request(const std::string& name) {
        const auto* const known =
            std::find_if(kCaptures.begin(), kCaptures.end(),
                         [&](const NamedCapture& capture) { return capture.name == name; });
        if (known == kCaptures.end()) {
            std::string names;
            for (const NamedCapture& capture : kCaptures)
                names += (names.empty() ? "" : ", ") + std::string(capture.name);
            throw std::invalid_argument("there is no capture \"" + name + "\"; use " + names);
        }
        requests_.push_back(known->request);
    }

    std::string path_, summary_;
    std::optional<Connection> connection_;
    std::vector<vp_event_t> events_;
    std::vector<EventText> texts_;  // of events_
    std::vector<Request> requests_;
    std::map<std::uint32_t, trace_position_t> positions_;  // by thread
    std::vector<python_row_t> rows_;
};

}  // namespace
}  // namespace python

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<python::Python>();
