#include "alarm.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace virtual_gpu {
namespace {

class Alarm {
public:
    Alarm() {
        std::thread([this] { run(); }).detach();
    }

    void add(Nanoseconds time, std::function<void()> call) {
        const std::lock_guard<std::mutex> guard(mutex_);
        calls_.emplace(time, std::move(call));
        changed_.notify_one();
    }

private:
    [[noreturn]] void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            if (calls_.empty()) {
                changed_.wait(lock);
                continue;
            }
            const Nanoseconds time = now();
            const auto first = calls_.begin();
            if (first->first > time) {
                changed_.wait_for(lock, std::chrono::nanoseconds(first->first - time));
                continue;
            }
            const std::function<void()> call = std::move(first->second);
            calls_.erase(first);
            lock.unlock();
            call();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::multimap<Nanoseconds, std::function<void()>> calls_;
};

}  // namespace

void call_at(Nanoseconds time, std::function<void()> call) {
    static Alarm& only = *new Alarm;  // never destroyed: its thread sleeps in it while the process ends
    only.add(time, std::move(call));
}

}  // namespace virtual_gpu
