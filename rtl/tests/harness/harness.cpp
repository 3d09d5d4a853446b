// SPDX-License-Identifier: Apache-2.0
// C interface of a simulated design: its ports and memories by name, its clock, and events of its observers. It is
// independent of the design; crates/card/pspin-rtl knows which one it is.
#include "Vdesign.h"
#include "verilated.h"
#include "verilated_syms.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Port of the top module, or memory: address of its value, and bytes of a row.
struct pspin_value {
    const char *scope;
    const char *name;
    void *data;
    uint64_t row_bytes;
    uint64_t bytes;
};

// Event of an observer.
struct pspin_event {
    uint64_t cycle;
    uint16_t kind;
    uint16_t unit;
    uint32_t values[5];
};

namespace {

// Verilator's fatal exit, as an exception.
struct Fatal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Simulation {
    VerilatedContext context;
    std::unique_ptr<Vdesign> design;
    std::vector<pspin_value> values;
    std::vector<pspin_event> events;
    std::string error;
    uint64_t cycle = 0;
    uint8_t *clock = nullptr;
#if VM_TRACE
    VerilatedVcdC wave;
#endif
};

// Simulation being evaluated, for the functions called by the design.
thread_local Simulation *current;

template <typename F> int attempt(Simulation *simulation, F &&action) {
    current = simulation;
    Verilated::threadContextp(&simulation->context);
    try {
        action();
        return simulation->context.gotFinish() ? 1 : 0;
    } catch (const std::exception &error) {
        simulation->error = error.what();
        return 1;
    }
}

void find(Simulation &simulation) {
    for (const auto &scope : *simulation.context.scopeNameMap()) {
        if (!scope.second->varsp())
            continue;
        for (auto &variable : *scope.second->varsp())
            simulation.values.push_back({scope.first, variable.first, variable.second.datap(),
                                         variable.second.entSize(), variable.second.totalSize()});
    }
}

} // namespace

void vl_fatal(const char *file, int line, const char *, const char *message) {
    throw Fatal(std::string(file ? file : "") + ":" + std::to_string(line) + ": " + message);
}

// Writes the profile counts of a library instrumented by gcc (-fprofile-generate): a C++ library may stay in its
// process after closing. Other libraries lack this function.
extern "C" __attribute__((weak)) void __gcov_dump();

extern "C" void pspin_event(int kind, int unit, int a, int b, int c, int d, int e) {
    if (current)
        current->events.push_back({current->cycle,
                                   static_cast<uint16_t>(kind),
                                   static_cast<uint16_t>(unit),
                                   {static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c),
                                    static_cast<uint32_t>(d), static_cast<uint32_t>(e)}});
}

// Reports of the monitor of retired instructions (observe/pspin_retire.sv): 1 a program counter, 2 a result, 3 a loaded
// value, 4 an access.
extern "C" void pspin_retired(int hart, int pc) { pspin_event(1, hart, pc, 0, 0, 0, 0); }

extern "C" void pspin_written(int hart, int port, int index, int value) {
    pspin_event(2 + port, hart, index, value, 0, 0, 0);
}

extern "C" void pspin_accessed(int hart, int address, int what, int value) {
    pspin_event(4, hart, address, what, value, 0, 0);
}

// Creates a design in its state before reset; seed determines random values, if the build uses them.
EXPORT Simulation *pspin_open(int seed) {
    auto *simulation = new Simulation;
    attempt(simulation, [&] {
        simulation->context.randReset(2);
        simulation->context.randSeed(seed);
        simulation->context.fatalOnError(true);
#if VM_TRACE
        simulation->context.traceEverOn(true);
#endif
        simulation->design = std::make_unique<Vdesign>(&simulation->context, "TOP");
        simulation->clock = &simulation->design->clk_i;
        simulation->design->eval();
        find(*simulation);
    });
    return simulation;
}

EXPORT void pspin_close(Simulation *simulation) {
    attempt(simulation, [&] {
#if VM_TRACE
        simulation->wave.close();
#endif
        simulation->design.reset();
    });
    current = nullptr;
    delete simulation;
    if (__gcov_dump)
        __gcov_dump();
}

// Returns the error message, if the latest call failed.
EXPORT const char *pspin_error(const Simulation *simulation) { return simulation->error.c_str(); }

// Returns the ports and memories; the array is valid as long as the simulation.
EXPORT uint64_t pspin_values(const Simulation *simulation, const pspin_value **values) {
    *values = simulation->values.data();
    return simulation->values.size();
}

// Propagates changed inputs through combinational logic within the cycle. Returns 0, or 1 for a failure.
EXPORT int pspin_settle(Simulation *simulation) {
    return attempt(simulation, [&] {
        *simulation->clock = 0;
        simulation->design->eval();
    });
}

// Ends the cycle: registers take their values. Inputs must have settled. Returns 0, or 1 for a failure.
EXPORT int pspin_tick(Simulation *simulation) {
    return attempt(simulation, [&] {
        *simulation->clock = 1;
        simulation->design->eval();
        simulation->cycle++;
    });
}

// Returns the events since the last call; the array is valid until the next tick.
EXPORT uint64_t pspin_events(const Simulation *simulation, const struct pspin_event **events) {
    *events = simulation->events.data();
    return simulation->events.size();
}

EXPORT void pspin_forget(Simulation *simulation) { simulation->events.clear(); }

#if VM_TRACE
// Starts a waveform of all signals. Returns 0, or 1 for a failure.
EXPORT int pspin_wave(Simulation *simulation, const char *file) {
    return attempt(simulation, [&] {
        simulation->design->trace(&simulation->wave, 99);
        simulation->wave.set_time_unit("1ps");
        simulation->wave.set_time_resolution("1ps");
        simulation->wave.open(file);
        if (!simulation->wave.isOpen())
            throw Fatal("the file cannot be written");
    });
}

// Writes the changes up to a time in picoseconds.
EXPORT void pspin_dump(Simulation *simulation, uint64_t time) { simulation->wave.dump(time); }
#endif
