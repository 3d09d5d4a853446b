/* SPDX-License-Identifier: Apache-2.0 */
// Tests of an HPU. Cycle counts are those of the model (crates/card/pspin-unit/src/core).
#pragma once

// Cycles from the start of a handler to the cycle after its first instruction's execute stage, in which the driver
// acts.
static const uint64_t FIRST = 5;
static const uint64_t TRAP = 20;

static void runtime(Bench &bench) {
    while (!bench.top.idle_o)
        bench.cycle();
    expect("cycles of boot ROM before the program", entered, 15);
    expect("init_handlers has run", bench.out(0), 0x600D0000);
    expect("nothing is under way", bench.top.waits_o, 1);
    expect("function pointer to doorbell", bench.run("empty_ph"), 8);
    expect("assignment to function pointer", bench.started - bench.assigned, 1);
    expect("end to feedback", bench.outcome().kind, DONE);
    expect("end to feedback", bench.fed_back - bench.ended, 1);
    uint64_t before = bench.ended;
    for (int i = 0; i < 10; i++)
        bench.run("empty_ph");
    expect("period of a waiting task, cycles x 10", bench.ended - before, 110);
    bench.forget();
}

static void instructions(Bench &bench) {
    bench.run("atomics_ph");
    const uint32_t before_amo = 0xFFFFFFF0;
    const uint32_t after[] = {0x10, 7, 0xFFFFFF0F, 0x30, 0xFFFFFFFF, before_amo, 5, 5, before_amo};
    const char *names[] = {"amoadd", "amoswap", "amoxor", "amoand", "amoor", "amomin", "amomax", "amominu", "amomaxu"};
    for (int i = 0; i < 9; i++) {
        expect(names[i], bench.out(1 + 2 * i), after[i]);
        expect("  the value before", bench.out(2 + 2 * i), before_amo);
    }
    expect("sc: succeeds, no reservation, changed", bench.out(21), 0x011);
    expect("sc: the word", bench.out(22), 77);
    bench.run("corev_ph");
    expect("hardware loop", bench.out(24), 63 * 64 * 127 / 6);
    expect("cv.mac", bench.out(25), 1600);
    bench.run("misaligned_ph");
    expect("misaligned load", bench.out(30), 0x66554433);
    bench.top.packet_bytes_i = 96;
    bench.run("words");
    const uint32_t words[] = {64, 0x1C200000, 100,        0x10004000, 96, PLACE,  0x10400010, 0,   0, 0x3000, 5, 0, 0,
                              1,  0x23456780, 0xFFFFFFFF, 0x1C400100, 3,  0xF10A, 0x00641C20, 0x10};
    for (int i = 0; i < 21; i++)
        expect(("word " + std::to_string(i) + " of the task").c_str(), bench.word(PLACE + 0x200 + 4 * i), words[i]);
    // From function pointer to doorbell, in the model with its instruction cache warm.
    const struct {
        const char *handler;
        uint64_t cycles;
    } cycles[] = {{"words", 151}, {"atomics_ph", 88}, {"corev_ph", 597},    {"misaligned_ph", 21},
                  {"prints", 13}, {"reports", 13},    {"test_command", 16}, {"reads_cycle", 25}};
    for (const auto &one : cycles)
        expect((std::string(one.handler) + ": cycles").c_str(), bench.run(one.handler), one.cycles);
    bench.console.clear();
    bench.forget();
}

static void faults(Bench &bench) {
    struct {
        const char *handler;
        int cause;
        uint32_t pc; // 0: the handler
        uint64_t address, cycles;
    } const cases[] = {
        {"fail_load", LOAD, 0, 4, FIRST},
        {"fail_illegal", ILLEGAL, 0, 0, FIRST},
        {"fail_zero", ILLEGAL, 0, 0, FIRST},
        {"fail_breakpoint", BREAKPOINT, 0, 0, FIRST},
        {"fail_call", ILLEGAL, 0, 0, FIRST},
        {"fail_mret", ILLEGAL, 0, 0, FIRST},
        {"fail_uret", ILLEGAL, 0, 0, FIRST},
        {"fail_wfi", ILLEGAL, 0, 0, FIRST},
        {"fail_mtvec", ILLEGAL, 0, 0, FIRST},
        {"fail_mstatus", ILLEGAL, 0, 0, FIRST},
        {"fail_cycle", ILLEGAL, 0, 0, FIRST},
        {"fail_fetch", FETCH, 0x1E000000, 0, FIRST + 3},
        {"fail_rom", FETCH, 0x1A000000, 0, FIRST + 3},
    };
    for (const auto &fault : cases) {
        uint64_t cycles = bench.run(fault.handler);
        uint64_t ended = bench.ended;
        expect((std::string(fault.handler) + ": cycles").c_str(), cycles, fault.cycles + TRAP);
        uint32_t pc = fault.pc ? fault.pc : bench.program.symbols.at(fault.handler);
        expect_end(bench, fault.handler, FAULTED, fault.cause, pc, fault.address);
        bench.run("empty_ph");
        expect((std::string(fault.handler) + ": the next start").c_str(), bench.started - ended, 16);
        expect_end(bench, "after a fault", DONE, NONE, 0, 0);
    }
    bench.run("reads_cycle");
    expect("cycles between two readings", bench.word(PLACE + 0x108), 5);
    expect_end(bench, "reads_cycle", DONE, NONE, 0, 0);
    uint32_t time = bench.word(PLACE + 0x1F0);
    uint64_t started = bench.started;
    bench.cycles(300);
    bench.run("reads_cycle");
    expect("cycles while the HPU waits", bench.word(PLACE + 0x1F0) - time, uint32_t(bench.started - started));
    expect("instructions are counted", bench.word(PLACE + 0x10C) > 10, 1);
    expect_end(bench, "reads_cycle", DONE, NONE, 0, 0);
    // State left by a failed handler is not visible to the next.
    for (const char *kind : {"lb", "lh", "lw", "sb", "sh", "sw", "lr", "amo"}) {
        bench.word(PLACE + 0x100) = 0x1C300001;
        std::string name = std::string("probe_") + kind;
        uint64_t cycles = bench.run(name.c_str());
        bool is_atomic = !std::strcmp(kind, "lr") || !std::strcmp(kind, "amo");
        int cause = is_atomic ? MISALIGNED : kind[0] == 's' ? STORE : LOAD;
        // Accesses across words and atomic ones take a second cycle, and one more if the instruction waits for the
        // value of t2.
        uint64_t late = is_atomic || !std::strcmp(kind + 1, "w");
        expect((name + ": cycles").c_str(), cycles - TRAP - FIRST - 3 - late,
               (kind[0] == 's' || !std::strcmp(kind, "amo")));
        expect_end(bench, kind, FAULTED, cause, bench.program.symbols.at(name + "_at"), 0x1C300001);
        bench.word(PLACE + 0x100) = 0x1C300000;
        bench.run(name.c_str());
        cause = kind[0] == 's' ? STORE : LOAD;
        expect_end(bench, kind, FAULTED, cause, bench.program.symbols.at(name + "_at"), 0x1C300000);
    }
}

// Each kind of access around the edges of each window.
static void protection(Bench &bench) {
    struct {
        uint32_t first, bytes;
        bool writes;
    } const windows[] = {
        {0x10000000, 1024, true}, {0x1C000000, 0x10000, true}, {0x1D000000, 0x8000, false}, {0x10004000, 33, true},
        {0x1C400100, 33, true},   {0x1C200000, 100, true},     {PLACE, 0x3000, true},       {0x10400010, 5, true},
        {0x1B004000, 33, true}, // the packet again, at this HPU's alias of its L1
    };
    bench.top.packet_bytes_i = 33;
    int allowed = 0, denied = 0;
    for (const auto &window : windows)
        for (uint32_t edge : {window.first, window.first + window.bytes})
            for (uint32_t at = edge - 5; at != edge + 5; at++)
                for (const char *kind : {"lb", "lh", "lw", "sb", "sh", "sw"}) {
                    uint32_t size = kind[1] == 'b' ? 1 : kind[1] == 'h' ? 2 : 4;
                    bool writes = kind[0] == 's', may = false;
                    for (const auto &other : windows)
                        may |= at >= other.first && at + size <= other.first + other.bytes && (other.writes || !writes);
                    bench.word(PLACE + 0x100) = at;
                    bench.word(PLACE + 0x104) = 0x5A5A5A5A;
                    std::string name = std::string("probe_") + kind;
                    bench.run(name.c_str());
                    Outcome outcome = bench.outcome();
                    std::string what = name + " at " + std::to_string(at);
                    (may ? allowed : denied)++;
                    expect(what.c_str(), outcome.kind, may ? DONE : FAULTED);
                    expect(what.c_str(), outcome.address, may ? 0 : at);
                    expect(what.c_str(), outcome.cause, may ? NONE : writes ? STORE : LOAD);
                }
    expect("some were allowed", allowed > 300, 1);
    expect("some were denied", denied > 300, 1);
    // From its doorbell on, a handler has no access to its packet.
    bench.run("rings_twice");
    bench.cycles(TRAP + 5);
    expect_end(bench, "rings_twice", DONE, NONE, 0, 0);
    bench.run("empty_ph");
    bench.forget();
}

static void command(Bench &bench, uint32_t kind, std::vector<uint32_t> words, uint32_t times = 1) {
    bench.word(PLACE + 0x104) = times;
    bench.word(PLACE + 0x200) = kind;
    for (uint32_t i = 0; i < 7; i++)
        bench.word(PLACE + 0x204 + 4 * i) = i < words.size() ? words[i] : 0;
}

static void commands(Bench &bench) {
    auto &top = bench.top;
    bench.top.packet_bytes_i = 96;
    // To the host, with an event: waits for the response.
    command(bench, 1, {0x23456780, 1, 0x1B004000, 96, 1, 55});
    bench.response_after = 30;
    bench.run("commands_wait");
    expect("command: kind", top.command_kind_o, 1);
    expect("command: host", top.command_host_o, 0x123456780);
    expect("command: address for everybody", top.command_address_o, 0x10004000);
    expect("command: size", top.command_size_o, 96);
    expect("command: event", top.command_event_o, 1);
    expect("command: user", top.command_user_o, 55);
    expect("command: number", bench.word(PLACE + 0x110), 0);
    expect("command: the handler has waited", bench.ended > bench.issued + 30, 1);
    expect_end(bench, "commands_wait", DONE, NONE, 0, 0);
    // The slot has another number the next time, and the feedback waits for the response.
    command(bench, 0, {0, 0, 0x10004000, 96, 0});
    bench.response_after = 40;
    bench.run("commands");
    expect("command: kind", top.command_kind_o, 2);
    expect("command: the next number", bench.word(PLACE + 0x110), 0x100);
    expect_end(bench, "commands", DONE, NONE, 0, 0);
    expect("response to feedback", bench.fed_back - (bench.issued + 40), 1);
    // More commands than slots: the HPU waits. A number is complete once its slot has another.
    command(bench, 2, {1, 0xF10A, 0x1C400100, 0, 64}, 6);
    bench.run("commands");
    const uint32_t numbers[] = {0x200, 1, 2, 3, 0x300, 0x101};
    for (int i = 0; i < 6; i++)
        expect("numbers of commands", bench.word(PLACE + 0x110 + 4 * i), numbers[i]);
    expect_end(bench, "commands", DONE, NONE, 0, 0);
    for (uint32_t number : {0x200U, 0x300U, 0x400U, 7U, 0xFF00U}) {
        bench.word(PLACE + 0x100) = number;
        bench.run("test_command");
        expect("a command that is not in flight is done", bench.word(PLACE + 0x108), 1);
        expect_end(bench, "test_command", DONE, NONE, 0, 0);
    }
    // A command that the command unit does not accept yet.
    top.command_ready_i = 0;
    command(bench, 4, {8, 0, 8 << 1 | 1, 1, 2});
    bench.response_after = 10;
    uint32_t number = 0x400;
    bench.run("commands");
    expect("number", bench.word(PLACE + 0x110), number);
    expect("host direct: size", top.command_direct_o, 8);
    bench.word(PLACE + 0x100) = number;
    expect("no feedback yet", bench.outcomes.size(), 0);
    bench.assign("test_command");
    bench.cycles(100);
    expect("the doorbell waits for a place", bench.ended < bench.started, 1);
    expect("a command in flight is not done", bench.word(PLACE + 0x108), 0);
    top.command_ready_i = 1;
    bench.finish();
    expect("two completions", bench.outcome().kind, DONE);
    expect_end(bench, "test_command", DONE, NONE, 0, 0);
    // Memory outside the handler's windows, and unknown commands.
    command(bench, 0, {0, 0, 0x10004001, 96, 1});
    bench.run("commands");
    expect_end(bench, "a byte too many", FAULTED, COMMAND, 0, 0x10004001);
    command(bench, 0, {0, 0, 0x1D000000, 64, 0});
    bench.run("commands");
    expect_end(bench, "from the host to code", FAULTED, COMMAND, 0, 0x1D000000);
    command(bench, 0, {0, 0, 0x1D000000, 64, 1});
    bench.run("commands");
    expect_end(bench, "code to the host", DONE, NONE, 0, 0);
    command(bench, 6, {});
    expect("no command: cycles", bench.run("commands"), 85);
    expect_end(bench, "no command", FAULTED, LOAD, bench.program.symbols.at("commands_at"), 0x1B205080);
    command(bench, 4, {0, 0, 33 << 1 | 1});
    bench.run("commands");
    expect_end(bench, "too much data", FAULTED, LOAD, bench.program.symbols.at("commands_at"), 0x1B205080);
    // The host refuses: while the handler runs, and after its end. Only responses for this HPU count.
    top.response_refused_i = 1;
    bench.response_after = 15;
    command(bench, 1, {0x23456780, 1, 0x10004000, 96, 1});
    bench.run("commands_wait");
    expect_end(bench, "refused", FAULTED, HOST, 0, 0x987654321);
    bench.response_after = 60;
    bench.run("commands");
    expect_end(bench, "refused after the end", FAULTED, HOST, 0, 0x987654321);
    bench.response_after = 0;
    top.response_hpu_i = 1;
    bench.run("commands");
    bench.responses.emplace_back(bench.now + 5, bench.slot);
    bench.cycles(30);
    expect("a response for another HPU", bench.outcomes.size(), 0);
    top.response_hpu_i = 0;
    top.response_refused_i = 0;
    bench.responses.emplace_back(bench.now + 5, bench.slot);
    expect_end(bench, "commands", DONE, NONE, 0, 0);
    bench.run("reports");
    expect_end(bench, "reports", FAULTED, REPORTED, 0, 77);
    top.console_ready_i = 0;
    bench.assign("prints");
    bench.cycles(50);
    top.console_ready_i = 1;
    bench.finish();
    expect("console", bench.console == "Hi", 1);
    expect("terminated", bench.terminated, 0);
    bench.run("terminates");
    expect("terminated", bench.terminated, 1);
    bench.forget();
}

static void transfers(Bench &bench) {
    auto &top = bench.top;
    top.packet_bytes_i = 96;
    auto words = [&](uint32_t from, uint32_t to, uint32_t size, uint32_t times) {
        bench.word(PLACE + 0x104) = times;
        bench.word(PLACE + 0x200) = from;
        bench.word(PLACE + 0x204) = to;
        bench.word(PLACE + 0x208) = size;
    };
    words(0x1C400100, 0x1B008400, 96, 3);
    bench.lands_after = 100;
    bench.run("transfers");
    expect("transfer: from", top.transfer_from_o, 0x1C400100);
    expect("transfer: to", top.transfer_to_o, 0x10008400);
    expect("transfer: size", top.transfer_size_o, 96);
    expect("transfers", bench.transfers, 3);
    expect("transfer: number", bench.word(PLACE + 0x108), 3);
    expect("transfer: none has landed", bench.word(PLACE + 0x10C), 0);
    expect("the doorbell waits for transfers", bench.landings.empty(), 1);
    expect_end(bench, "transfers", DONE, NONE, 0, 0);
    bench.lands_after = 3;
    bench.run("transfers");
    expect("transfer: number", bench.word(PLACE + 0x108), 6);
    expect("transfer: two have landed", bench.word(PLACE + 0x10C) >= 5, 1);
    expect_end(bench, "transfers", DONE, NONE, 0, 0);
    words(0x1C400100, 0x1D000000, 4, 1);
    bench.run("transfers");
    expect_end(bench, "transfer to code", FAULTED, COMMAND, 0, 0x1D000000);
    words(0x1C4000FF, 0x1D000000, 4, 1);
    bench.run("transfers");
    expect_end(bench, "transfer from elsewhere", FAULTED, COMMAND, 0, 0x1C4000FF);
    expect("no transfer", bench.transfers, 6);
}

static void doorbell(Bench &bench) {
    auto &top = bench.top;
    top.done_ready_i = 0;
    bench.run("empty_ph");
    unsigned first = bench.place;
    while (!top.idle_o)
        bench.cycle();
    bench.assign("reports", 50);
    bench.cycles(100);
    expect("a second completion waits, and is not killed", bench.ended < bench.started, 1);
    top.done_ready_i = 1;
    bench.finish();
    expect("feedback to end", bench.ended - bench.fed_back, 1);
    Outcome outcome = bench.outcome();
    expect("the first completion", outcome.place, first);
    expect("the first completion", outcome.kind, DONE);
    expect_end(bench, "the second completion", FAULTED, REPORTED, 0, 77);
}

// The watchdog expires wherever a handler waits; the task ends TRAP cycles later, and the HPU continues with the next
// one.
static void watchdog(Bench &bench) {
    auto &top = bench.top;
    const uint32_t after = 80;
    auto killed = [&](const char *what, uint64_t cycles) {
        expect((std::string(what) + ": cycles").c_str(), bench.ended - bench.assigned, cycles);
        expect_end(bench, what, TIMED_OUT, WATCHDOG, 0, 0);
        bench.run("empty_ph");
        expect_end(bench, "after the watchdog", DONE, NONE, 0, 0);
    };
    bench.run("forever", after);
    killed("forever", after + TRAP);
    bench.run("waits_function", after);
    killed("waits_function", after + TRAP);
    // Orphans: a command not accepted, a slot not freed, a response that does not arrive.
    command(bench, 0, {0, 0, 0x10004000, 96, 0}, 2);
    bench.response_after = 0;
    top.command_ready_i = 0;
    bench.run("commands", after);
    expect("ends at the watchdog", bench.ended - bench.assigned, after + TRAP);
    bench.cycles(50);
    expect("the feedback waits for the orphan", bench.outcomes.size(), 0);
    expect("orphan", top.orphans_o, 1);
    top.command_ready_i = 1;
    bench.cycles(2);
    bench.responses.emplace_back(bench.now + 5, bench.slot);
    killed("no place for a command", after + TRAP);
    expect("no orphan", top.orphans_o, 0);
    bench.run("commands_wait", after);
    expect("commands", bench.commands > 0, 1);
    expect("orphans", top.orphans_o, 3);
    bench.responses.emplace_back(bench.now + 5, 0);
    bench.cycles(10);
    expect("the feedback waits for the other orphan", bench.outcomes.size(), 0);
    bench.responses.emplace_back(bench.now + 5, 1);
    killed("no response", after + TRAP);
    // The slots of orphans are reused, by invalid commands.
    command(bench, 0, {0, 0, 0x10004000, 96, 0}, 1);
    bench.run("commands");
    expect("no orphan", top.orphans_o, 0);
    bench.responses.emplace_back(bench.now + 5, bench.slot);
    expect_end(bench, "commands", DONE, NONE, 0, 0);
    // The end waits for transfers, and so does the end of a killed handler.
    bench.word(PLACE + 0x104) = 1;
    bench.word(PLACE + 0x200) = 0x1C400100;
    bench.word(PLACE + 0x204) = PLACE + 0x400;
    bench.word(PLACE + 0x208) = 4;
    bench.lands_after = 300;
    bench.run("transfers", after);
    uint64_t landed = bench.ended;
    expect("the end waits for a transfer", bench.landings.empty() && landed - bench.started > 300, 1);
    killed("a transfer that has not landed", landed - bench.assigned);
    top.transfer_ready_i = 0;
    bench.run("transfers", after);
    killed("a transfer that is not taken", after + TRAP);
    top.transfer_ready_i = 1;
    // L1 and the console do not respond; a remote memory responds late, and its access cannot be cancelled.
    bench.word(PLACE + 0x100) = PLACE + 0x108;
    bench.assign("probe_lw", after);
    bench.cycles(5);
    top.l1_blocks_i = 1;
    bench.finish();
    top.l1_blocks_i = 0;
    killed("L1", after + TRAP);
    top.console_ready_i = 0;
    bench.run("prints", after);
    top.console_ready_i = 1;
    killed("console", after + TRAP);
    bench.word(PLACE + 0x100) = 0x1C200010;
    bench.word(PLACE + 0x104) = 0x600D;
    top.remote_blocks_i = 1;
    bench.assign("probe_sw", after);
    bench.cycles(after + 50);
    expect("it still asks", top.remote_asks_o, 1);
    top.remote_blocks_i = 0;
    uint64_t taken = bench.now;
    bench.finish();
    killed("a remote store", taken + 11 - bench.assigned + TRAP);
    bench.run("probe_lw");
    expect("the remote store took place", bench.word(PLACE + 0x108), 0x600D);
    expect_end(bench, "probe_lw", DONE, NONE, 0, 0);
    // The watchdog does not expire in the cycle before the doorbell, but does in that of the doorbell.
    for (uint32_t cycles : {9U, 10U}) {
        bench.cycles(40);
        bench.run("empty_ph", cycles);
        bool is_killed = cycles == 9;
        expect("doorbell and watchdog", bench.outcome().kind, is_killed ? TIMED_OUT : DONE);
        expect("doorbell and watchdog", bench.ended - bench.assigned, is_killed ? 9 + TRAP : 9);
    }
}

// The host stops the HPU, and restarts it with a possibly different program.
static void enable(Bench &bench) {
    bench.cycles(50);
    expect("it waits", bench.top.waits_o, 1);
    bench.top.enable_i = 0;
    bench.cycles(3);
    expect("it does not wait for a task", bench.top.idle_o, 0);
    bench.word(PLACE) = 0;
    bench.top.enable_i = 1;
    for (int i = 0; i < 200 && !bench.top.idle_o; i++)
        bench.cycle();
    expect("init_handlers has run again", bench.out(0), 0x600D0000);
    expect("function pointer to doorbell", bench.run("empty_ph"), 8);
    expect_end(bench, "empty_ph", DONE, NONE, 0, 0);
}

static void speed(Bench &bench) {
    auto measure = [&](const char *what, auto run) {
        uint64_t first = bench.now, instructions = retired_count;
        std::clock_t start = std::clock();
        run();
        double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        double cycles = static_cast<double>(bench.now - first);
        std::printf("%s: %.0f cycles per second of CPU time, %.2f instructions a cycle\n", what, cycles / seconds,
                    static_cast<double>(retired_count - instructions) / cycles);
    };
    measure("busy", [&] { bench.run("busy_ph"); });
    measure("waiting", [&] { bench.cycles(300000); });
}
