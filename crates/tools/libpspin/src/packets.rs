// SPDX-License-Identifier: Apache-2.0
//! Packets of the driver, one by one or from the files of a trace.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use crate::diagnostics::{Error, Result, warn};
use crate::requests::{self, Packet, Request};
use crate::types::{CLUSTERS, Context};

/// Host memory of packets from traces, and bytes of their scratchpads: `L1_SCRATCHPAD_SIZE`.
const TRACE_HOST: u64 = (1 << 60) + 0x4000_0000;
const TRACE_HOST_BYTES: u32 = 0x4000_0000;
const TRACE_SCRATCHPAD_BYTES: u32 = 0xF_3C00;
/// Number of columns in a line of a trace.
const COLUMNS: usize = 13;

thread_local! {
    /// Set after the warning that the driver wants more bytes in L1 than a packet has.
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

/// Checks the length of a packet.
///
/// # Errors
/// When it is empty or too large for the card, or no card exists.
pub fn check(length: usize) -> Result<()> {
    let largest = requests::largest() as usize;
    match length {
        _ if largest == 0 => Err(Error::Order("pspinsim_init")),
        0 => Err(Error::Argument("the packet is empty".to_owned())),
        _ if length > largest => {
            let key = "accelerator.limits.max_packet_bytes";
            Err(Error::Argument(format!("the packet has {length} B; {key} is {largest}")))
        }
        _ => Ok(()),
    }
}

/// Adds a packet whose length is checked.
pub fn add(context: Context, message: u32, bytes: Vec<u8>, in_l1: usize, is_last: bool, gap: u32, user: u64) {
    let length = bytes.len();
    if in_l1 > length && !HAS_WARNED.replace(true) {
        warn(&format!(
            "pspinsim_packet_add: pkt_l1_len is {in_l1} for a packet of {length} B: the whole packet is copied to L1 (drivers \
             whose fill callback does not set it pass what is on the stack)"
        ));
    }
    let transfer = in_l1.min(length) as u32;
    requests::add(Request::Packet(Packet { context, message, bytes, transfer, is_last, gap, user }));
}

/// Adds the packets of a trace.
///
/// # Errors
/// When a file cannot be read, or a line does not describe a packet; no packet is added then.
pub fn read_trace(packets: &Path, data: &Path) -> Result<()> {
    let text = fs::read_to_string(packets).map_err(|error| Error::Read(error, packets.to_owned()))?;
    let bytes = fs::read(data).map_err(|error| Error::Read(error, data.to_owned()))?;
    let mut rest = &bytes[..];
    let mut parsed = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| Error::File(format!("line {}: {what}", index + 1), packets.to_owned());
        let numbers: Vec<u32> = line
            .split(',')
            .map(|word| word.trim().parse().map_err(|_| wrong(format!("{:?} is not a number", start(word)))))
            .collect::<Result<_>>()?;
        let [message, hh, hh_size, ph, ph_size, th, th_size, memory, memory_size, size, in_l1, eom, gap] = numbers[..]
        else {
            return Err(wrong(format!("{} numbers, not {COLUMNS}", numbers.len())));
        };
        let Some((packet, after)) = rest.split_at_checked(size as usize) else {
            return Err(wrong(format!("{size} B are wanted, {} B are left in {}", rest.len(), data.display())));
        };
        check(packet.len()).map_err(|error| wrong(error.to_string()))?;
        rest = after;
        let context = Context {
            handler_mem_addr: memory,
            handler_mem_size: memory_size,
            host_mem_addr: TRACE_HOST,
            host_mem_size: TRACE_HOST_BYTES,
            hh_addr: hh,
            hh_size,
            ph_addr: ph,
            ph_size,
            th_addr: th,
            th_size,
            scratchpad_addr: [0; CLUSTERS],
            scratchpad_size: [TRACE_SCRATCHPAD_BYTES; CLUSTERS],
        };
        parsed.push((context, message, packet.to_vec(), in_l1 as usize, eom != 0, gap));
    }
    for (context, message, bytes, in_l1, is_last, gap) in parsed {
        add(context, message, bytes, in_l1, is_last, gap, 0);
    }
    Ok(())
}

/// Returns the first characters of a word.
fn start(word: &str) -> String {
    word.trim().chars().take(20).collect()
}
