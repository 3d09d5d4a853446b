// SPDX-License-Identifier: Apache-2.0
// Boots an HPU, runs handlers on it, compares their results in memory and the outputs of its driver, and counts cycles.
#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "Vhpu_bench.h"
#include "Vhpu_bench___024root.h"
#include "verilated.h"

static uint64_t retired_count;
static uint64_t cycle;
static uint64_t entered; // cycle in which the first instruction of the program leaves decode
static bool prints;
static const uint32_t CODE = 0x1D000000;

static const uint32_t PLACE = 0x10008000;

extern "C" void pspin_retired(int hart, int pc) {
    retired_count++;
    if (!entered && static_cast<uint32_t>(pc) == CODE)
        entered = cycle;
    if (prints)
        std::printf("  hart %d pc %08x\n", hart, static_cast<unsigned>(pc));
}

extern "C" void pspin_written(int hart, int port, int index, int value) {
    if (prints)
        std::printf("  hart %d %s x%d = %08x\n", hart, port ? "load" : "alu ", index, static_cast<unsigned>(value));
}

extern "C" void pspin_accessed(int hart, int address, int what, int value) {
    if (prints)
        std::printf("  hart %d access %03x %08x %08x\n", hart, what, address, value);
}

// Code of a program, and its symbols.
struct Program {
    std::map<std::string, uint32_t> symbols;
    std::vector<uint32_t> words;
};

static Program load(const char *path) {
    std::ifstream stream(path, std::ios::binary);
    std::vector<char> file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (file.size() < sizeof(Elf32_Ehdr)) {
        std::fprintf(stderr, "%s is no program\n", path);
        std::exit(2);
    }
    Program program;
    const auto *header = reinterpret_cast<const Elf32_Ehdr *>(file.data());
    const auto *segments = reinterpret_cast<const Elf32_Phdr *>(file.data() + header->e_phoff);
    for (const auto *at = segments; at < segments + header->e_phnum; at++)
        if (at->p_type == PT_LOAD && at->p_vaddr == CODE) {
            program.words.resize((at->p_filesz + 3) / 4);
            std::memcpy(program.words.data(), file.data() + at->p_offset, at->p_filesz);
        }
    const auto *sections = reinterpret_cast<const Elf32_Shdr *>(file.data() + header->e_shoff);
    for (const auto *at = sections; at < sections + header->e_shnum; at++)
        if (at->sh_type == SHT_SYMTAB) {
            const auto *symbols = reinterpret_cast<const Elf32_Sym *>(file.data() + at->sh_offset);
            for (const auto *symbol = symbols; symbol < symbols + at->sh_size / sizeof *symbol; symbol++)
                program.symbols[file.data() + sections[at->sh_link].sh_offset + symbol->st_name] = symbol->st_value;
        }
    return program;
}

// Causes of failures (crates/card/pspin-unit/src/status.rs), and ends of tasks.
enum Cause { NONE, LOAD, STORE, MISALIGNED, FETCH, ILLEGAL, BREAKPOINT, COMMAND, HOST, WATCHDOG, IDLE, REPORTED };
enum Kind { DONE, SKIPPED, FAULTED, TIMED_OUT };

struct Outcome {
    int kind, cause;
    uint32_t pc;
    uint64_t address;
    int place;
};

class Bench {
  public:
    explicit Bench(const Program &program) : program(program) {
        for (size_t at = 0; at < program.words.size(); at++)
            top.rootp->hpu_bench__DOT__u_program__DOT__rows[at] = program.words[at];
        top.rootp->hpu_bench__DOT__again = program.symbols.at("__rt_again");
        top.done_ready_i = top.command_ready_i = top.transfer_ready_i = top.console_ready_i = 1;
        top.rst_ni = 0;
        cycle();
        top.rst_ni = 1;
        cycle();
        top.enable_i = 1;
    }

    // Simulates a cycle with the current inputs, and records the outputs.
    void cycle() {
        if (!responses.empty() && responses.front().first == now) {
            top.response_i = 1;
            top.response_slot_i = responses.front().second;
            responses.pop_front();
        } else {
            top.response_i = 0;
        }
        top.landed_i = !landings.empty() && landings.front() == now;
        if (top.landed_i)
            landings.pop_front();
        top.clk_i = 0;
        top.eval();
        if (top.start_o)
            started = now;
        if (top.end_o)
            ended = now, ends++;
        if (top.done_valid_o && top.done_ready_i) {
            outcomes.push_back({top.kind_o, top.cause_o, top.pc_o, top.address_o, top.done_place_o});
            fed_back = now;
        }
        if (top.command_valid_o && top.command_ready_i) {
            commands++;
            issued = now;
            slot = top.command_slot_o;
            if (response_after)
                responses.emplace_back(now + response_after, slot);
        }
        if (top.transfer_valid_o && top.transfer_ready_i) {
            transfers++;
            if (lands_after)
                landings.push_back(now + lands_after);
        }
        if (top.console_valid_o && top.console_ready_i)
            console += static_cast<char>(top.console_char_o);
        terminated += top.terminate_o;
        top.clk_i = 1;
        top.eval();
        top.assign_i = 0;
        ::cycle = ++now;
    }

    void cycles(uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            cycle();
    }

    // Assigns a task in this cycle; its function pointer is readable in the next.
    void assign(const char *handler, uint32_t watchdog = 1000000) {
        if (!top.idle_o) {
            std::fprintf(stderr, "%s: the HPU is not idle\n", handler);
            std::exit(1);
        }
        place = (place + 1) % 20;
        top.assign_i = 1;
        top.place_i = place;
        top.function_i = program.symbols.at(handler);
        top.watchdog_i = watchdog;
        assigned = now;
        cycle();
    }

    // Runs to the end of the task. Returns the number of cycles since its start.
    uint64_t finish(uint64_t most = 2000000) {
        uint64_t before = ends;
        for (uint64_t until = now + most; ends == before;) {
            if (now == until) {
                std::fprintf(stderr, "the task does not end\n");
                std::exit(1);
            }
            cycle();
        }
        return ended - started;
    }

    uint64_t run(const char *handler, uint32_t watchdog = 1000000) {
        while (!top.idle_o)
            cycle();
        assign(handler, watchdog);
        return finish();
    }

    // Returns the outcome of the task with the next feedback.
    Outcome outcome() {
        for (uint64_t until = now + 1000; outcomes.empty() && now < until;)
            cycle();
        if (outcomes.empty()) {
            std::fprintf(stderr, "no feedback comes\n");
            std::exit(1);
        }
        Outcome outcome = outcomes.front();
        outcomes.pop_front();
        return outcome;
    }

    // Discards the outcomes so far.
    void forget() {
        cycles(3);
        outcomes.clear();
    }

    uint32_t &word(uint32_t address) {
        return top.rootp->hpu_bench__DOT__u_l1__DOT__u_sram__DOT__rows[address / 4 % 16384];
    }

    uint32_t out(int index) { return word(PLACE + 4 * index); }

    uint64_t now = 0, assigned = 0, started = 0, ended = 0, fed_back = 0, issued = 0, ends = 0;
    uint64_t response_after = 10, lands_after = 20;
    unsigned commands = 0, transfers = 0, terminated = 0, place = 0, slot = 0;
    std::deque<Outcome> outcomes;
    std::deque<std::pair<uint64_t, unsigned>> responses;
    std::deque<uint64_t> landings;
    std::string console;
    const Program &program;
    Vhpu_bench top;
};

static int failures, compared;

static void expect(const char *what, uint64_t value, uint64_t expected) {
    compared++;
    failures += value != expected;
    if (value != expected)
        std::printf("WRONG %s: %llx, not %llx\n", what, static_cast<unsigned long long>(value),
                    static_cast<unsigned long long>(expected));
}

static void expect_end(Bench &bench, const char *what, int kind, int cause, uint32_t pc, uint64_t address) {
    Outcome outcome = bench.outcome();
    std::string name = what;
    expect((name + ": kind").c_str(), outcome.kind, kind);
    expect((name + ": cause").c_str(), outcome.cause, cause);
    expect((name + ": pc").c_str(), outcome.pc, pc);
    expect((name + ": address").c_str(), outcome.address, address);
    expect((name + ": place").c_str(), outcome.place, bench.place);
}

#include "tests.h"

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s PROGRAM [print]\n", argv[0]);
        return 2;
    }
    Program program = load(argv[1]);
    prints = argc > 2;
    Bench bench(program);
    runtime(bench);
    instructions(bench);
    faults(bench);
    protection(bench);
    commands(bench);
    transfers(bench);
    doorbell(bench);
    watchdog(bench);
    enable(bench);
    speed(bench);
    std::printf("%d compared, %d wrong\n", compared, failures);
    return failures != 0;
}
