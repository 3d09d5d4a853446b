// SPDX-License-Identifier: Apache-2.0
// Drives pspin_top line by line: registers, loads, requests, and a host that may stop answering. Prints feedback and
// register values.
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

namespace {

constexpr unsigned kBeat = 64, kMostCycles = 10000;

struct Request {
    uint32_t message, eom, size, transfer, context, user;
};

class Edge {
  public:
    Edge() : top_(std::make_unique<Vtop>(&context_)) { reset(); }

    void run(const std::string &line) {
        std::istringstream text(line);
        std::string name;
        text >> name;
        std::vector<uint64_t> number;
        if (name == "load") {
            std::string at, hex;
            text >> at >> hex;
            load(std::stoull(at, nullptr, 0), hex);
            return;
        }
        for (std::string word; text >> word;)
            number.push_back(std::stoull(word, nullptr, 0));
        if (name == "set")
            set(number.at(0), number.at(1));
        else if (name == "get")
            std::cout << "value " << get(number.at(0)) << "\n";
        else if (name == "request")
            requests_.push_back({(uint32_t)number.at(0), (uint32_t)number.at(1), (uint32_t)number.at(2),
                                 (uint32_t)number.at(3), (uint32_t)number.at(4), (uint32_t)number.at(5)});
        else if (name == "run")
            for (uint64_t left = number.at(0); left; left--)
                cycle();
        else if (name == "host")
            answers_ = number.at(0) != 0;
        else if (name == "stray")
            strays_ += number.at(0);
        else if (name == "reset")
            reset();
        else
            throw std::runtime_error("unknown line: " + line);
    }

    // Requests that the unit has not accepted.
    size_t waiting() const { return requests_.size(); }

  private:
    VerilatedContext context_;
    std::unique_ptr<Vtop> top_;
    std::deque<Request> requests_;
    std::deque<unsigned> addresses_, written_; // identifiers: bursts without all data, and without a response
    std::deque<std::pair<unsigned, bool>> reading_;
    unsigned ends_ = 0, strays_ = 0;
    bool answers_ = true;

    void reset() {
        requests_.clear();
        addresses_.clear();
        written_.clear();
        reading_.clear();
        ends_ = 0;
        top_->ctrl_aw_valid_i = top_->ctrl_w_valid_i = top_->ctrl_ar_valid_i = 0;
        top_->nic_aw_valid_i = top_->nic_w_valid_i = top_->nic_ar_valid_i = 0;
        top_->rst_ni = 0;
        cycle();
        cycle();
        top_->rst_ni = 1;
    }

    void cycle() {
        top_->her_valid_i = !requests_.empty() && top_->rst_ni;
        if (!requests_.empty()) {
            const Request &request = requests_.front();
            top_->her_message_i = top_->her_flow_i = request.message;
            top_->her_eom_i = request.eom;
            top_->her_address_i = 0x1C400000;
            top_->her_size_i = request.size;
            top_->her_transfer_i = request.transfer;
            top_->her_context_i = request.context;
            top_->her_user_i = request.user;
        }
        top_->feedback_ready_i = top_->send_tready_i = 1;
        top_->nic_b_ready_i = top_->nic_r_ready_i = top_->ctrl_b_ready_i = top_->ctrl_r_ready_i = 1;
        top_->host_aw_ready_i = top_->host_w_ready_i = top_->host_ar_ready_i = 1;
        // A stray response has the identifier of the off-cluster DMA engine.
        top_->host_b_valid_i = top_->rst_ni && (strays_ || (answers_ && !written_.empty()));
        top_->host_b_id_i = strays_ || written_.empty() ? 0 : written_.front();
        top_->host_b_resp_i = 0;
        top_->host_r_valid_i = top_->rst_ni && answers_ && !reading_.empty();
        if (!reading_.empty()) {
            top_->host_r_id_i = reading_.front().first;
            top_->host_r_last_i = reading_.front().second;
        }
        top_->host_r_resp_i = 0;
        top_->clk_i = 0;
        top_->eval();
        if (top_->rst_ni)
            take();
        top_->clk_i = 1;
        top_->eval();
    }

    void take() {
        if (top_->her_valid_i && top_->her_ready_o)
            requests_.pop_front();
        if (top_->feedback_valid_o)
            std::cout << "feedback " << top_->feedback_user_o << " " << (int)top_->feedback_kind_o << " "
                      << (int)top_->feedback_last_o << "\n";
        if (top_->host_b_valid_i && top_->host_b_ready_o) {
            if (strays_)
                strays_--;
            else
                written_.pop_front();
        }
        if (top_->host_r_valid_i && top_->host_r_ready_o)
            reading_.pop_front();
        if (top_->host_aw_valid_o)
            addresses_.push_back(top_->host_aw_id_o);
        ends_ += top_->host_w_valid_o && top_->host_w_last_o;
        for (; ends_ && !addresses_.empty(); ends_--) {
            written_.push_back(addresses_.front());
            addresses_.pop_front();
        }
        if (top_->host_ar_valid_o)
            for (unsigned beat = 0; beat <= top_->host_ar_len_o; beat++)
                reading_.push_back({top_->host_ar_id_o, beat == top_->host_ar_len_o});
    }

    // Runs until a signal is set, and returns a value of that cycle.
    template <class Signal, class Value> uint32_t until(const Signal &signal, const Value &value) {
        for (unsigned left = kMostCycles; left; left--) {
            top_->eval();
            bool is_set = signal != 0;
            uint32_t found = value;
            cycle();
            if (is_set)
                return found;
        }
        throw std::runtime_error("the unit does not answer");
    }

    void set(uint64_t address, uint64_t value) {
        top_->ctrl_aw_valid_i = top_->ctrl_w_valid_i = 1;
        top_->ctrl_aw_addr_i = address;
        top_->ctrl_w_data_i = value;
        top_->ctrl_w_strb_i = 15;
        until(top_->ctrl_w_ready_o, top_->ctrl_w_ready_o);
        top_->ctrl_aw_valid_i = top_->ctrl_w_valid_i = 0;
        until(top_->ctrl_b_valid_o, top_->ctrl_b_resp_o);
    }

    uint32_t get(uint64_t address) {
        top_->ctrl_ar_valid_i = 1;
        top_->ctrl_ar_addr_i = address;
        until(top_->ctrl_ar_ready_o, top_->ctrl_ar_ready_o);
        top_->ctrl_ar_valid_i = 0;
        return until(top_->ctrl_r_valid_o, top_->ctrl_r_data_o);
    }

    void load(uint64_t address, const std::string &hex) {
        for (unsigned word = 0; word < kBeat / 4; word++)
            top_->nic_w_data_i[word] = 0;
        unsigned bytes = hex.size() / 2;
        for (unsigned i = 0; i < bytes; i++)
            top_->nic_w_data_i[i / 4] |= std::stoul(hex.substr(2 * i, 2), nullptr, 16) << i % 4 * 8;
        top_->nic_aw_valid_i = 1;
        top_->nic_aw_addr_i = address;
        top_->nic_aw_len_i = 0;
        top_->nic_aw_size_i = 6;
        top_->nic_aw_burst_i = 1;
        until(top_->nic_aw_ready_o, top_->nic_aw_ready_o);
        top_->nic_aw_valid_i = 0;
        top_->nic_w_strb_i = bytes == kBeat ? ~0ULL : (1ULL << bytes) - 1;
        top_->nic_w_last_i = top_->nic_w_valid_i = 1;
        until(top_->nic_w_ready_o, top_->nic_w_ready_o);
        top_->nic_w_valid_i = 0;
        if (until(top_->nic_b_valid_o, top_->nic_b_resp_o))
            throw std::runtime_error("a load was refused");
    }
};

} // namespace

int main() {
    try {
        Edge edge;
        for (std::string line; std::getline(std::cin, line);)
            edge.run(line);
        std::cout << "waiting " << edge.waiting() << "\n";
    } catch (const std::exception &error) {
        std::cerr << "edge.cpp: " << error.what() << "\n";
        return 1;
    }
    return 0;
}
