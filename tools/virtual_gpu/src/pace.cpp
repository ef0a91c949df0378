#include "pace.hpp"

#include <fnmatch.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache.hpp"
#include "driver.hpp"
#include "options.hpp"

namespace virtual_gpu {
namespace {

constexpr double kUnlistedMicroseconds = 10;
constexpr double kMostMicroseconds = 1e9;  // a quarter of an hour: more is a slip of the pen
constexpr int kRealRuns = 3;               // of a kernel, before a factor applies
const char* const kForms = "factor:NUMBER, table:FILE and record:FILE";

Nanoseconds nanoseconds(double microseconds) { return static_cast<Nanoseconds>(1000 * microseconds + 0.5); }

std::optional<double> number(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return text.empty() || *end || !std::isfinite(value) ? std::nullopt : std::optional<double>(value);
}

struct Line {
    std::string pattern;
    Nanoseconds time;
};

// What VIRTUAL_GPU_PACED says.
struct Request {
    explicit Request(const std::string& text) {
        const std::size_t colon = text.find(':');
        const std::string how = text.substr(0, colon);
        const std::string what = colon == std::string::npos ? "" : text.substr(colon + 1);
        if (text.empty()) {
            return;
        }
        if (what.empty() || (how != "factor" && how != "table" && how != "record")) {
            fault = "VIRTUAL_GPU_PACED=" + text + " is none of " + kForms;
        } else if (how == "factor") {
            read_factor(what);
        } else if (how == "table") {
            read_table(what);
        } else {
            pacing = Pacing::kRecord;
            file = what;
        }
    }

    void read_factor(const std::string& text) {
        const auto value = number(text);
        if (!value || *value <= 0) {
            fault = "VIRTUAL_GPU_PACED=factor:" + text + " needs a number above 0 behind the colon";
            return;
        }
        pacing = Pacing::kFactor;
        factor = *value;
        mark = "factor " + text;
    }

    void read_table(const std::string& path) {
        std::ifstream stream(path);
        std::string content, line;
        for (int count = 1; std::getline(stream, line); ++count) {
            line.resize(std::min(line.find('#'), line.size()));
            std::istringstream words(line);
            std::string pattern, time, rest;
            if (!(words >> pattern)) {
                continue;
            }
            words >> time >> rest;
            const auto value = number(time);
            if (!value || *value < 0 || *value > kMostMicroseconds || !rest.empty()) {
                fault = path + ", line " + std::to_string(count) + ": '" + line.substr(0, 200) +
                        "' does not read like a kernel's name or pattern and its microseconds (0 to 1e9)";
                return;
            }
            lines.push_back({pattern, nanoseconds(*value)});
            content += pattern + " " + time + "\n";
        }
        if (lines.empty()) {
            fault = path + " holds no kernel's time, or cannot be read; VIRTUAL_GPU_PACED names it as table";
            return;
        }
        pacing = Pacing::kTable;
        mark = "table " + hash_of(content).substr(0, 8);
    }

    Pacing pacing = Pacing::kOff;
    double factor = 1;
    std::vector<Line> lines;  // the first that matches counts
    std::string file;         // to record into
    std::string mark;
    std::string fault;
};

const Request& request() {
    static const Request& only = *new Request(options().paced);
    return only;
}

struct Known {
    std::optional<Nanoseconds> paced;
    Nanoseconds shortest = ~Nanoseconds(0);
    int runs = 0;
};

// By the kernel's name. Never destroyed: kernels are launched while the process ends.
std::unordered_map<std::string, Known>& known = *new std::unordered_map<std::string, Known>;
std::mutex& known_mutex = *new std::mutex;

Nanoseconds listed_time(const std::string& name) {
    for (const auto& [pattern, time] : request().lines) {
        if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) {
            return time;
        }
    }
    if (options().debug) {
        std::fprintf(stderr, "virtual GPU: no line of the table matches %s, it takes %g us\n", name.c_str(),
                     kUnlistedMicroseconds);
    }
    return nanoseconds(kUnlistedMicroseconds);
}

// Others see the whole table or none.
void write_record() {
    const std::string written = request().file + "." + std::to_string(getpid());
    std::ofstream file(written);
    file << "# kernel, and the shortest of its runs in microseconds; for VIRTUAL_GPU_PACED=table:FILE\n";
    {
        const std::lock_guard<std::mutex> guard(known_mutex);
        std::map<std::string, Nanoseconds> sorted;
        for (const auto& [name, run] : known) {
            sorted[name] = run.shortest;
        }
        for (const auto& [name, time] : sorted) {
            file << name << " " << static_cast<double>(time) / 1000 << "\n";
        }
    }
    file.close();
    if (!file || std::rename(written.c_str(), request().file.c_str())) {
        std::fprintf(stderr, "virtual GPU: the table of kernel times cannot be written to %s\n",
                     request().file.c_str());
        std::remove(written.c_str());
    }
}

}  // namespace

Pacing pacing() {
    static const Pacing value = request().pacing;
    return value;
}

const std::string& pacing_fault() { return request().fault; }

std::string pacing_mark() { return is_paced() ? " (paced, outputs undefined; " + request().mark + ")" : ""; }

std::string kernel_name(cl_kernel kernel) {
    char name[512] = "";
    driver().get_kernel_info(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
    return name;
}

bool paced_time(const std::string& name, bool must_know, Nanoseconds& time) {
    const std::lock_guard<std::mutex> guard(known_mutex);
    Known& own = known[name];
    if (!own.paced && pacing() == Pacing::kTable) {
        own.paced = listed_time(name);
    }
    if (own.paced) {
        time = *own.paced;
        return true;
    }
    time = nanoseconds(kUnlistedMicroseconds);
    return must_know;
}

void note_run(const std::string& name, Nanoseconds time) {
    const std::lock_guard<std::mutex> guard(known_mutex);
    if (known.empty() && pacing() == Pacing::kRecord) {
        std::atexit(write_record);
    }
    Known& own = known[name];
    own.shortest = std::min(own.shortest, time);
    if (++own.runs >= kRealRuns && pacing() == Pacing::kFactor && !own.paced) {
        own.paced = static_cast<Nanoseconds>(request().factor * static_cast<double>(own.shortest));
    }
}

Nanoseconds now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000 + static_cast<Nanoseconds>(time.tv_nsec);
}

void sleep_until(Nanoseconds time) {
    if (time <= now()) {
        return;
    }
    // By default the system may wake a thread 50 us late, to wake several at once.
    const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    const timespec end = {static_cast<time_t>(time / 1'000'000'000), static_cast<long>(time % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
    }
    if (slack > 0) {
        prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    }
}

}  // namespace virtual_gpu
