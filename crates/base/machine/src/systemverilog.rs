// SPDX-License-Identifier: Apache-2.0
//! Generates a SystemVerilog package of a machine's unit: each key of `[accelerator]` is a constant.

use abi::pspin::camel;

use crate::accelerator::Accelerator;
use crate::keys::Row;
use crate::{Machine, Pspin};

/// Unit of link rates. They belong to the unit's environment, so they get no constant.
const RATE: &str = "ps/B";

/// Constants derived from those of the keys.
const DERIVED: &str = r#"
  // Derived constants.
  localparam int unsigned Hpus              = Clusters * HpusPerCluster;
  localparam int unsigned MpqCells          = MpqSharedCells + MpqQueues * MpqCellsPerQueue;
  localparam int unsigned DmaBytes          = DmaWidthBits / 8;
  localparam int unsigned NhiBytes          = NhiWidthBits / 8;
  localparam int unsigned L1Rows            = L1Bytes / (L1Banks * L1BankBits / 8);
  localparam int unsigned L1BanksPerBeat    = DmaWidthBits / L1BankBits;
  localparam int unsigned L1PacketOffset    = ClusterRuntimeBytes;
  localparam int unsigned L1PacketUnits     = ClusterPacketBufferBytes / ClusterSlotBytes;
  localparam int unsigned L1Scratchpad      = ClusterRuntimeBytes + ClusterPacketBufferBytes;
  localparam int unsigned L2PacketRows      = L2PacketBytes / (L2PacketBanks * L2PacketBankBits / 8);
  localparam int unsigned L2HandlerRows     = L2HandlerBytes / (L2HandlerBanks * L2HandlerBankBits / 8);
  localparam int unsigned ProgramRows       = ProgramBytes / (ProgramPortBits / 8);
  localparam int unsigned IcacheLines       = IcacheBytes / IcacheLineBytes;
  localparam int unsigned IcacheSets        = IcacheLines / IcacheWays;

  // Widths of the numbers by which one of them is named: at least one bit.
  function automatic int unsigned index_width(int unsigned number);
    return number > 1 ? $clog2(number) : 1;
  endfunction

  localparam int unsigned ClusterIndexWidth = index_width(Clusters);
  localparam int unsigned HpuIndexWidth     = index_width(HpusPerCluster);
  localparam int unsigned MpqIndexWidth     = index_width(MpqQueues);
  localparam int unsigned PlaceIndexWidth   = index_width(ClusterTasks);
  localparam int unsigned ContextIndexWidth = index_width(LimitsContexts);
  localparam int unsigned SlotIndexWidth    = index_width(ClusterCommandsInFlight);
  localparam int unsigned TasksWidth        = $clog2(ClusterTasks + 1);
  localparam int unsigned RunningWidth      = $clog2(Clusters * ClusterTasks + 1);
"#;

impl Pspin {
    /// Returns the package `pspin_cfg_pkg` of this unit in machine `machine`.
    pub(crate) fn systemverilog(&self, machine: &str) -> String {
        let mut rows = Vec::new();
        self.describe(&mut rows);
        let mut text = format!("// The keys of [accelerator] of the machine {machine}.\npackage pspin_cfg_pkg;\n\n");
        // The hardware has one tenant.
        let is_shared = |row: &Row| row.key.starts_with("accelerator.sharing.");
        for Row { key, value, unit, names } in rows.into_iter().filter(|row| row.unit != RATE && !is_shared(row)) {
            let key = key.trim_start_matches("accelerator.");
            let name = camel(key);
            let comment = if unit.is_empty() { key.to_owned() } else { format!("{key}, {unit}") };
            text += &constant(&name, &key.replace('.', "_"), &value, names);
            text += &format!("  // {comment}\n");
        }
        text + DERIVED + "\nendpackage\n"
    }
}

/// Returns the declaration of a constant; `kind` names its type if the value is one of `names`.
fn constant(name: &str, kind: &str, value: &str, names: &[&str]) -> String {
    let number = value.parse::<u64>().ok();
    match (names, number) {
        ([], Some(number)) if number > u64::from(u32::MAX) => {
            format!("  localparam longint unsigned {name} = {number};")
        }
        ([], Some(number)) => format!("  localparam int unsigned {name} = {number};"),
        ([], None) => format!("  localparam bit {name} = 1'b{};", u8::from(value == "true")),
        (names, _) => {
            let bits = names.len().next_power_of_two().trailing_zeros().max(1);
            let label = |of: &str| format!("{name}{}", camel(of));
            let labels: Vec<String> = names.iter().map(|of| label(of)).collect();
            format!(
                "  typedef enum logic [{}:0] {{{}}} {kind}_e;\n  localparam {kind}_e {name} = {};",
                bits - 1,
                labels.join(", "),
                label(value)
            )
        }
    }
}

impl Machine {
    /// Returns the SystemVerilog packages for the hardware of this machine, by file name: its keys, and the
    /// software-visible constants. `None` for a machine without the PsPIN unit.
    pub fn systemverilog(&self) -> Option<[(&'static str, String); 2]> {
        let Accelerator::Pspin(unit) = &self.accelerator else { return None };
        let keys = unit.systemverilog(&self.name);
        Some([("pspin_cfg_pkg.sv", keys), ("pspin_abi_pkg.sv", abi::pspin::systemverilog())])
    }
}
