// SPDX-License-Identifier: Apache-2.0
// Plays the network, the plain NIC, the host's memory and the driver of pspin_nic, controlled by lines of standard input:
//
//   set ADDRESS VALUE       writes a register            get NAME ADDRESS    reads one
//   memory ADDRESS BYTES    host memory                  peek NAME ADDRESS SIZE
//   clocks NIC UNIT         periods of both clocks       pace SEED PERCENT   how often each side of a stream is ready
//   rx BAD BYTES            a frame from the network     from BYTES          a frame from the plain NIC
//   boot ADDRESS            until bit 0 of this register is set
//   play STATE CYCLES       until everything is done and bit 0 of the register STATE is set
//   run CYCLES              whatever is left
//   reset                   and all is forgotten         waves FILE          writes a waveform from here on
//
// Numbers and bytes are hexadecimal, periods and cycles decimal. A cycle is one of the NIC's clock. Prints packets that
// leave the card: `tx CYCLE BYTES`, `other CYCLE BYTES`; and read values: `NAME VALUE`. The last ones are counts:
// `stalls`, cycles in which the network waited for the card, `msi`, and `cycles`.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

const size_t BEAT = 64;
const size_t PORT = sizeof(Vtop::rx_data_i); // bytes of a beat of the network
using Bytes = std::vector<uint8_t>;

[[noreturn]] void fail(const std::string &why) {
    std::cerr << "pspin_nic: " << why << std::endl;
    std::exit(1);
}

uint64_t number(const std::string &text) { return std::stoull(text, nullptr, 16); }

Bytes bytes(const std::string &text) {
    Bytes data;
    for (size_t i = 0; i + 1 < text.size(); i += 2)
        data.push_back(static_cast<uint8_t>(number(text.substr(i, 2))));
    return data;
}

std::string hex(const Bytes &data) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : data) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::string hex(uint64_t value) {
    std::ostringstream stream;
    stream << std::hex << value;
    return stream.str();
}

struct Beat {
    Bytes data;
    uint64_t keep = 0;
    bool last = false;
    unsigned user = 0; // an AXI identifier, or the bad-packet flag
};

// Ports are words in the byte order of the host.
template <typename Port> void put(Port &port, const Bytes &data) {
    std::memset(&port, 0, sizeof(Port));
    std::memcpy(&port, data.data(), data.size());
}

template <typename Port> Bytes get(const Port &port, uint64_t keep = ~UINT64_C(0)) {
    const auto *from = reinterpret_cast<const uint8_t *>(&port);
    Bytes data;
    for (size_t i = 0; i < sizeof(Port); i++)
        if (keep >> i & 1)
            data.push_back(from[i]);
    return data;
}

uint64_t keep_of(size_t size) { return size == 64 ? ~UINT64_C(0) : (UINT64_C(1) << size) - 1; }

std::deque<Beat> beats(const Bytes &frame, unsigned user) {
    std::deque<Beat> all;
    for (size_t at = 0; at < frame.size(); at += PORT) {
        const size_t size = std::min(PORT, frame.size() - at);
        const bool last = at + size == frame.size();
        const auto from = frame.begin() + static_cast<std::ptrdiff_t>(at);
        all.push_back({Bytes(from, from + static_cast<std::ptrdiff_t>(size)), keep_of(size), last, last ? user : 0});
    }
    return all;
}

// Stream into the card: an offer stays until it is accepted.
struct Source {
    std::deque<Beat> queue;
    bool offers = false;

    void add(const Bytes &frame, unsigned user) {
        const auto more = beats(frame, user);
        queue.insert(queue.end(), more.begin(), more.end());
    }

    bool valid(bool may) { return offers = !queue.empty() && (offers || may); }

    void taken(bool ready) {
        if (offers && ready) {
            queue.pop_front();
            offers = false;
        }
    }
};

class Card {
  public:
    Card() { reset(); }

    ~Card() {
#if VM_TRACE
        if (wave)
            wave->close();
#endif
        top->final();
    }

    void execute(const std::string &line) {
        std::istringstream words(line);
        std::string what, one, two, three;
        words >> what >> one >> two >> three;
        if (what == "set")
            write(number(one), number(two));
        else if (what == "get")
            std::cout << one << " " << hex(read(number(two))) << "\n";
        else if (what == "memory")
            fill(number(one), bytes(two));
        else if (what == "peek")
            std::cout << one << " " << hex(peek(number(two), number(three))) << "\n";
        else if (what == "clocks")
            clocks(std::stoull(one), std::stoull(two));
        else if (what == "pace")
            random.seed(static_cast<unsigned>(number(one))), pace = std::stoul(two);
        else if (what == "rx")
            rx.add(bytes(two), static_cast<unsigned>(number(one)));
        else if (what == "from")
            from.add(bytes(one), 0);
        else if (what == "boot")
            boot(number(one));
        else if (what == "play")
            play(number(one), std::stoull(two));
        else if (what == "run")
            for (uint64_t i = std::stoull(one); i > 0; i--)
                cycle();
        else if (what == "reset")
            reset();
        else if (what == "waves")
            waves(one);
        else
            fail("unknown line: " + line);
    }

    void finish() {
        for (const auto &[name, count] : counts)
            std::cout << name << " " << hex(count) << "\n";
        std::cout << "cycles " << hex(now) << "\n";
    }

  private:
    const std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
    const std::unique_ptr<Vtop> top = std::make_unique<Vtop>(context.get());
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> wave;
#endif
    uint64_t now = 0;
    uint64_t nic_period = 2, unit_period = 2; // even
    uint64_t time = 0, nic_edge = 1, unit_edge = 1;
    unsigned long pace = 100;
    std::minstd_rand random;
    Source rx, from, reads, answers;
    Bytes sent, passed;                               // bytes of unfinished frames
    std::deque<std::pair<uint64_t, unsigned>> writes; // bursts whose data is outstanding
    std::deque<Beat> data;                            // data that precedes its burst
    uint64_t at = 0;                                  // bytes already written of the first burst
    std::map<uint64_t, uint8_t> memory;
    std::map<std::string, uint64_t> counts;

    bool happens() { return random() % 100 < pace; }

    // One cycle: apply inputs, settle outputs, transfer accepted items, and update registers. `see` samples the
    // outputs.
    void cycle(const std::function<void()> &see = {}) {
        top->rx_valid_i = rx.valid(happens());
        if (rx.offers) {
            put(top->rx_data_i, rx.queue.front().data);
            top->rx_keep_i = rx.queue.front().keep;
            top->rx_last_i = rx.queue.front().last;
            top->rx_user_i = rx.queue.front().user & 1;
        }
        top->bypass_tx_valid_i = from.valid(happens());
        if (from.offers) {
            put(top->bypass_tx_data_i, from.queue.front().data);
            top->bypass_tx_keep_i = from.queue.front().keep;
            top->bypass_tx_last_i = from.queue.front().last;
        }
        top->host_r_valid_i = reads.valid(happens());
        if (reads.offers) {
            put(top->host_r_data_i, reads.queue.front().data);
            top->host_r_id_i = reads.queue.front().user & 7;
            top->host_r_last_i = reads.queue.front().last;
        }
        top->host_b_valid_i = answers.valid(happens());
        if (answers.offers)
            top->host_b_id_i = answers.queue.front().user & 7;
        top->tx_ready_i = happens();
        top->bypass_rx_ready_i = happens();
        top->host_aw_ready_i = happens();
        top->host_w_ready_i = happens();
        top->host_ar_ready_i = happens();
        top->msi_ready_i = happens();
        // The inputs change with the falling edge.
        nic_edge = time + nic_period / 2;
        top->clk_i = 0;
        if (unit_edge == time)
            flip_unit();
        settle();
        unit_edges(nic_edge);
        if (top->rst_ni)
            take();
        if (see)
            see();
        top->clk_i = 1;
        if (unit_edge == nic_edge)
            flip_unit();
        time = nic_edge;
        settle();
        unit_edges(time + nic_period - nic_period / 2);
        time += nic_period - nic_period / 2;
        now++;
    }

    void clocks(uint64_t nic, uint64_t unit) {
        nic_period = nic;
        unit_period = unit;
        unit_edge = time + unit / 2;
    }

    void flip_unit() {
        top->unit_clk_i = !top->unit_clk_i;
        unit_edge += unit_period / 2;
    }

    // Edges of the unit's clock before a time.
    void unit_edges(uint64_t end) {
        while (unit_edge < end) {
            time = unit_edge;
            flip_unit();
            settle();
        }
    }

    void settle() {
        top->eval();
#if VM_TRACE
        if (wave)
            wave->dump(time);
#endif
    }

    void take() {
        counts["stalls"] += rx.offers && !top->rx_ready_o;
        counts["msi"] += top->msi_valid_o && top->msi_ready_i;
        rx.taken(top->rx_ready_o);
        from.taken(top->bypass_tx_ready_o);
        reads.taken(top->host_r_ready_o);
        answers.taken(top->host_b_ready_o);
        if (top->tx_valid_o && top->tx_ready_i)
            collect("tx", sent, get(top->tx_data_o, top->tx_keep_o), top->tx_last_o);
        if (top->bypass_rx_valid_o && top->bypass_rx_ready_i)
            collect("other", passed, get(top->bypass_rx_data_o, top->bypass_rx_keep_o), top->bypass_rx_last_o);
        if (top->host_aw_valid_o && top->host_aw_ready_i)
            writes.push_back({top->host_aw_addr_o, top->host_aw_id_o});
        if (top->host_w_valid_o && top->host_w_ready_i)
            data.push_back({get(top->host_w_data_o), top->host_w_strb_o, top->host_w_last_o != 0, 0});
        while (!writes.empty() && !data.empty())
            store();
        if (top->host_ar_valid_o && top->host_ar_ready_i) {
            const uint64_t first = top->host_ar_addr_o / BEAT * BEAT;
            for (unsigned i = 0; i <= top->host_ar_len_o; i++)
                reads.queue.push_back({peek(first + i * BEAT, BEAT), 0, i == top->host_ar_len_o, top->host_ar_id_o});
        }
    }

    void collect(const char *name, Bytes &frame, const Bytes &part, bool last) {
        frame.insert(frame.end(), part.begin(), part.end());
        if (last) {
            std::cout << name << " " << now << " " << hex(frame) << "\n";
            frame.clear();
        }
    }

    // Writes the first beat of the first burst to host memory.
    void store() {
        const Beat &beat = data.front();
        const uint64_t first = writes.front().first / BEAT * BEAT + at;
        for (size_t i = 0; i < BEAT; i++)
            if (beat.keep >> i & 1)
                memory[first + i] = beat.data[i];
        at += BEAT;
        if (beat.last) {
            answers.queue.push_back({{}, 0, true, writes.front().second});
            writes.pop_front();
            at = 0;
        }
        data.pop_front();
    }

    // Nothing is offered during reset.
    void reset() {
        rx = from = reads = answers = {};
        sent = passed = {};
        writes = {};
        data = {};
        at = 0;
        counts = {};
        top->rst_ni = 0;
        for (unsigned i = 0; i < 8; i++)
            cycle([&] {
                if (top->tx_valid_o || top->bypass_rx_valid_o || top->host_aw_valid_o || top->host_w_valid_o ||
                    top->host_ar_valid_o || top->msi_valid_o || top->ctrl_b_valid_o || top->ctrl_r_valid_o ||
                    top->irq_o)
                    fail("something is offered in a reset");
            });
        top->rst_ni = 1;
        for (unsigned i = 0; i < 40; i++)
            cycle(); // both clocks leave the reset
    }

    void fill(uint64_t address, const Bytes &content) {
        for (const uint8_t byte : content)
            memory[address++] = byte;
    }

    Bytes peek(uint64_t address, uint64_t size) {
        Bytes content;
        for (uint64_t i = 0; i < size; i++)
            content.push_back(memory[address + i]);
        return content;
    }

    // Runs to the end of the cycle in which a port is ready or has a response.
    void until(const uint8_t &port, const std::function<void()> &see = {}) {
        for (unsigned waited = 0; waited < 10'000; waited++) {
            bool is_there = false;
            cycle([&] {
                is_there = port != 0;
                if (is_there && see)
                    see();
            });
            if (is_there)
                return;
        }
        fail("the card does not answer");
    }

    // AXI4-Lite: address and data of a write are taken together.
    void write(uint64_t address, uint64_t value) {
        top->ctrl_aw_valid_i = top->ctrl_w_valid_i = 1;
        top->ctrl_aw_addr_i = static_cast<uint16_t>(address);
        top->ctrl_w_data_i = static_cast<uint32_t>(value);
        top->ctrl_w_strb_i = 15;
        top->ctrl_b_ready_i = 1;
        until(top->ctrl_w_ready_o);
        top->ctrl_aw_valid_i = top->ctrl_w_valid_i = 0;
        until(top->ctrl_b_valid_o);
    }

    uint32_t read(uint64_t address) {
        top->ctrl_ar_valid_i = 1;
        top->ctrl_r_ready_i = 1;
        top->ctrl_ar_addr_i = static_cast<uint16_t>(address);
        until(top->ctrl_ar_ready_o);
        top->ctrl_ar_valid_i = 0;
        uint32_t value = 0;
        until(top->ctrl_r_valid_o, [&] { value = top->ctrl_r_data_o; });
        return value;
    }

    void boot(uint64_t address) {
        for (unsigned tries = 0; tries < 100; tries++) {
            for (unsigned i = 0; i < 100; i++)
                cycle(); // an access counts as outstanding work
            if (read(address) & 1)
                return;
        }
        fail("the HPUs do not wait for tasks");
    }

    void play(uint64_t state, uint64_t most) {
        const unsigned quiet = 200;
        unsigned rests = 0;
        for (const uint64_t end = now + most; now < end;) {
            cycle();
            const bool busy = !rx.queue.empty() || !from.queue.empty() || !reads.queue.empty() ||
                              !answers.queue.empty() || !sent.empty() || !passed.empty();
            rests = busy ? 0 : rests + 1;
            // A packet between the clocks is in none of these.
            if (rests < quiet || rests % quiet)
                continue;
            if (!(read(state) & 1))
                rests = 0;
            else if (rests >= 3 * quiet)
                return;
        }
        fail("the card does not come to rest in " + std::to_string(most) + " cycles");
    }

    void waves(const std::string &file) {
#if VM_TRACE
        context->traceEverOn(true);
        wave = std::make_unique<VerilatedVcdC>();
        top->trace(wave.get(), 99);
        wave->open(file.c_str());
#else
        fail("this simulator writes no waveforms: " + file);
#endif
    }
};

} // namespace

int main() {
    Card card;
    for (std::string line; std::getline(std::cin, line);)
        card.execute(line);
    card.finish();
}
