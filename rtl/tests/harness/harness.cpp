// SPDX-License-Identifier: Apache-2.0
// The C interface of a simulated design: its ports and memories by name, its clock, and what its observers tell. Nothing here
// knows which design it is; crates/card/pspin-rtl does.
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

// A port of the top module, or a memory: where its value is, and the bytes of a row.
struct pspin_value {
    const char *scope;
    const char *name;
    void *data;
    uint64_t row_bytes;
    uint64_t bytes;
};

// What an observer has told.
struct pspin_event {
    uint64_t cycle;
    uint16_t kind;
    uint16_t unit;
    uint32_t values[5];
};

namespace {

// Verilator's way to end a process, as an exception.
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

// The simulation that is evaluated, for the functions that the design calls.
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

// Writes what the code has counted, in a library that gcc has compiled to count (-fprofile-generate): a library of C++ may stay in its
// process when it is closed. Others have no such function.
extern "C" __attribute__((weak)) void __gcov_dump();

extern "C" void pspin_event(int kind, int unit, int a, int b, int c, int d, int e) {
    if (current)
        current->events.push_back({current->cycle,
                                   static_cast<uint16_t>(kind),
                                   static_cast<uint16_t>(unit),
                                   {static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c),
                                    static_cast<uint32_t>(d), static_cast<uint32_t>(e)}});
}

// What the monitor of retired instructions (observe/pspin_retire.sv) tells: 1 a program counter, 2 a result, 3 what was
// loaded, 4 an access.
extern "C" void pspin_retired(int hart, int pc) { pspin_event(1, hart, pc, 0, 0, 0, 0); }

extern "C" void pspin_written(int hart, int port, int index, int value) {
    pspin_event(2 + port, hart, index, value, 0, 0, 0);
}

extern "C" void pspin_accessed(int hart, int address, int what, int value) {
    pspin_event(4, hart, address, what, value, 0, 0);
}

// Makes a design in its state before reset; where the build asks for random values, they come from this seed.
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

// What went wrong, if the latest call has failed.
EXPORT const char *pspin_error(const Simulation *simulation) { return simulation->error.c_str(); }

// The ports and memories; the array is valid as long as the simulation.
EXPORT uint64_t pspin_values(const Simulation *simulation, const pspin_value **values) {
    *values = simulation->values.data();
    return simulation->values.size();
}

// Lets changed inputs reach what depends on them within the cycle. Returns 0, or 1 for a failure.
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

// Takes the events since the last time; the array is valid until the next tick.
EXPORT uint64_t pspin_events(const Simulation *simulation, const struct pspin_event **events) {
    *events = simulation->events.data();
    return simulation->events.size();
}

EXPORT void pspin_forget(Simulation *simulation) { simulation->events.clear(); }

#if VM_TRACE
// Begins to write a waveform of all signals. Returns 0, or 1 for a failure.
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

// Writes what has changed by a time, in picoseconds.
EXPORT void pspin_dump(Simulation *simulation, uint64_t time) { simulation->wave.dump(time); }
#endif
