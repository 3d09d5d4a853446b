use abi::device::map;
use hpu::{LoadMap, Region};

/// The addresses at which device programs are loaded, and the memories of the card that they must not overlap.
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
