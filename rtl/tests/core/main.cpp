// Boots cores, gives them handlers, compares what they leave in memory, and counts cycles.
#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "Vcore_bench.h"
#include "Vcore_bench___024root.h"
#include "verilated.h"

static uint64_t retired_count;
static uint64_t cycle;
static uint64_t entered; // the cycle in which the first instruction of the program left decode
static bool prints;
static const uint32_t CODE = 0x1D000000;

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

// The code of a program, and its symbols.
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

#ifndef CORES
#define CORES 1
#endif

class Bench {
  public:
    explicit Bench(const Program &program) : program(program) {
        auto *root = top.rootp;
#define FILL(i)                                                                                                        \
    for (size_t at = 0; at < program.words.size(); at++)                                                               \
    root->core_bench__DOT__gen_core__BRA__##i##__KET____DOT__u_hpu__DOT__u_program__DOT__rows[at] = program.words[at]
        FILL(0);
#if CORES == 8
        FILL(1);
        FILL(2);
        FILL(3);
        FILL(4);
        FILL(5);
        FILL(6);
        FILL(7);
#endif
        for (int core = 0; core < CORES; core++)
            top.task_valid_i[core] = 0;
        top.rst_ni = 0;
        step();
        step();
        top.rst_ni = 1;
    }

    void step() {
        top.clk_i = 0;
        top.eval();
        top.clk_i = 1;
        top.eval();
        cycle = ++now;
    }

    // Cycles from the return of the function pointer to the doorbell.
    uint64_t run(const char *handler) {
        for (int core = 0; core < CORES; core++) {
            top.function_i[core] = program.symbols.at(handler);
            top.task_valid_i[core] = 1;
        }
        uint64_t started = 0;
        for (uint64_t until = now + 2000000; now < until;) {
            top.clk_i = 0;
            top.eval();
            bool starts = top.starts_o[0], ends = top.doorbell_o[0];
            if (starts)
                started = now;
            step();
            if (ends)
                return now - 1 - started;
            if (starts)
                for (int core = 0; core < CORES; core++)
                    top.task_valid_i[core] = 0;
        }
        std::fprintf(stderr, "%s does not end\n", handler);
        std::exit(1);
    }

    uint32_t out(int index) {
        return top.rootp
            ->core_bench__DOT__gen_core__BRA__0__KET____DOT__u_hpu__DOT__u_l1__DOT__u_sram__DOT__rows[0x2000 + index];
    }

    uint64_t now = 0;
    Vcore_bench top;

  private:
    const Program &program;
};

static int failures;

static void expect(const char *what, uint64_t value, uint64_t expected) {
    bool same = value == expected;
    failures += !same;
    std::printf("%-40s %10llx %s\n", what, static_cast<unsigned long long>(value), same ? "" : "WRONG");
    if (!same)
        std::printf("    expected %llx\n", static_cast<unsigned long long>(expected));
}

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s PROGRAM [print]\n", argv[0]);
        return 2;
    }
    Program program = load(argv[1]);
    prints = argc > 2;
    Bench bench(program);
    for (int i = 0; i < 300; i++)
        bench.step();
    expect("cycles of boot ROM before the program", entered - 1, 13);
    expect("init_handlers has run", bench.out(0), 0x600D0000);
    expect("function pointer to doorbell, cycles", bench.run("empty_ph"), 8);
    uint64_t before = bench.now;
    for (int i = 0; i < 10; i++)
        bench.run("empty_ph");
    expect("period of a waiting task, cycles x 10", bench.now - before, 110);
    prints = false;
    std::printf("atomics: %llu cycles\n", static_cast<unsigned long long>(bench.run("atomics_ph")));
    const uint32_t before_amo = 0xFFFFFFF0;
    const uint32_t after[] = {0x10, 7, 0xFFFFFF0F, 0x30, 0xFFFFFFFF, before_amo, 5, 5, before_amo};
    const char *names[] = {"amoadd", "amoswap", "amoxor", "amoand", "amoor", "amomin", "amomax", "amominu", "amomaxu"};
    for (int i = 0; i < 9; i++) {
        expect(names[i], bench.out(1 + 2 * i), after[i]);
        expect("  the value before", bench.out(2 + 2 * i), before_amo);
    }
    expect("sc: succeeds, no reservation, changed", bench.out(21), 0x011);
    expect("sc: the word", bench.out(22), 77);
    std::printf("corev: %llu cycles\n", static_cast<unsigned long long>(bench.run("corev_ph")));
    expect("hardware loop", bench.out(24), 63 * 64 * 127 / 6);
    expect("cv.mac", bench.out(25), 1600);
    bench.run("misaligned_ph");
    expect("misaligned load", bench.out(30), 0x66554433);
    uint64_t first = bench.now, instructions = retired_count;
    std::clock_t start = std::clock();
    bench.run("busy_ph");
    double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    double cycles = static_cast<double>(bench.now - first);
    std::printf("%d cores: %.0f cycles per second of CPU time", CORES, cycles / seconds);
    if (retired_count > instructions)
        std::printf(", %.2f cycles an instruction", cycles * CORES / static_cast<double>(retired_count - instructions));
    std::printf("\n");
    return failures != 0;
}
