# SPDX-License-Identifier: Apache-2.0
# Clocks of pspin_nic, for any tool that reads SDC. The card sets the periods, in ns, and the names of its clock ports.
if {![info exists nic_period]} { set nic_period 4.0 }
if {![info exists unit_period]} { set unit_period 25.0 }
create_clock -name nic_clock -period $nic_period [get_ports clk_i]
create_clock -name unit_clock -period $unit_period [get_ports unit_clk_i]
set_clock_groups -asynchronous -group nic_clock -group unit_clock

# A reset begins at any time; pspin_reset_sync ends it.
set_false_path -from [get_ports rst_ni]
