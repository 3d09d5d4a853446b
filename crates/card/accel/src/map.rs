// SPDX-License-Identifier: Apache-2.0
//! Card addresses of device programs and of the accelerator's memories.

use abi::device::map;
use hpu::{LoadMap, Region};

/// Returns the load addresses of device programs, and the card memories that programs must not overlap.
pub fn load_map() -> LoadMap {
    let region = |name, base, end| Region { name, base, bytes: end - base };
    LoadMap {
        name: "the sPIN card",
        program: region("program memory", map::PROGRAM, map::RETURN),
        data: region("static data", map::DATA, map::PACKETS),
        others: vec![
            region("HPU memory", map::HPU_MEMORY, map::CONTEXTS),
            region("stacks", map::CONTEXTS, map::DATA),
            region("packet buffers", map::PACKETS, map::PROGRAM),
        ],
        return_address: map::RETURN,
    }
}
