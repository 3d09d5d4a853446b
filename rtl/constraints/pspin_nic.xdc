# SPDX-License-Identifier: Apache-2.0
# Crossings of pspin_nic in Vivado, scoped to the module: read_xdc -ref pspin_nic. The card defines both clocks.
#
# The bits of a Gray code arrive within a period of the faster clock, so that a sample mixes at most two neighbours. The
# entries of a queue are stable when the other side reads them.
set nic_period [get_property -min PERIOD [get_clocks -of_objects [get_ports clk_i]]]
set unit_period [get_property -min PERIOD [get_clocks -of_objects [get_ports unit_clk_i]]]
set least [expr {min($nic_period, $unit_period)}]

set codes [get_cells -hierarchical -filter {NAME =~ *w_gray_q_reg* || NAME =~ *r_gray_q_reg* || NAME =~ *u_dropped/gray_q_reg*}]
set first [get_cells -hierarchical -filter {NAME =~ */meta_q_reg*}]
set_max_delay -datapath_only -from $codes -to $first $least
set_bus_skew -from $codes -to $first $least

set entries [get_cells -hierarchical -filter {NAME =~ */entries_q_reg*}]
set_max_delay -datapath_only -from [get_clocks -of_objects [get_ports clk_i]] -through $entries \
    -to [get_clocks -of_objects [get_ports unit_clk_i]] $unit_period
set_max_delay -datapath_only -from [get_clocks -of_objects [get_ports unit_clk_i]] -through $entries \
    -to [get_clocks -of_objects [get_ports clk_i]] $nic_period

# Levels of single bits, and the reset, which begins at any time.
set_false_path -from [get_cells -hierarchical -filter {NAME =~ *irq_q_reg* || NAME =~ *idle_q_reg*}] -to $first
set_false_path -to [get_pins -hierarchical -filter {NAME =~ *u_reset/u_release/*/CLR || NAME =~ *u_unit_reset/u_release/*/CLR}]
