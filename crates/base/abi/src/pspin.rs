// SPDX-License-Identifier: Apache-2.0
//! Software view of the PsPIN unit: addresses, registers of the HPU driver and of the unit, and their field values.
//!
//! Each list is defined once, as constants and as [`Row`]s. The rows generate the unit's SystemVerilog package,
//! assertions about `hwsched.h`, and the tables of `docs/pspin-integration.md`.

use crate::device::map as device;

/// Access rights of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A number, not a register.
    Number,
    /// Read-only.
    Read,
    /// Writable; reads as 0.
    Write,
    /// Readable and writable.
    ReadWrite,
}

impl Access {
    /// Returns the abbreviation for tables.
    pub fn name(self) -> &'static str {
        match self {
            Access::Number => "",
            Access::Read => "r",
            Access::Write => "w",
            Access::ReadWrite => "rw",
        }
    }
}

/// One line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of the constant.
    pub name: &'static str,
    /// Address, register offset, or number.
    pub value: u32,
    /// Access rights.
    pub access: Access,
    /// Name in `hwsched.h`, or empty.
    pub c: &'static str,
    /// Description for the table.
    pub meaning: &'static str,
}

/// A list of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// Prefix of the names in SystemVerilog.
    pub prefix: &'static str,
    /// Heading of the table.
    pub heading: &'static str,
    /// Heading, as a sentence.
    pub title: &'static str,
    /// Base address that C adds to each value.
    pub base: u32,
    /// Lines of the list.
    pub rows: &'static [Row],
}

/// Defines a list as the constants of a module and as rows.
macro_rules! list {
    (
        $(#[doc = $title:literal])+
        $module:ident $prefix:literal $heading:literal + $base:expr;
        $($name:ident = $value:expr, $access:ident, $c:literal, $meaning:literal;)+
    ) => {
        $(#[doc = $title])+
        pub mod $module {
            use super::*;

            $(#[doc = $meaning] pub const $name: u32 = $value;)+

            /// All rows of this module.
            pub const LIST: List = List {
                prefix: $prefix,
                heading: $heading,
                title: concat!($($title),+).trim_ascii_start(),
                base: $base,
                rows: &[$(Row {
                    name: stringify!($name),
                    value: $value,
                    access: Access::$access,
                    c: $c,
                    meaning: $meaning,
                }),+],
            };
        }
    };
}

list! {
    /// Addresses in the unit. Every memory except an HPU's own L1 has the same address for all HPUs.
    map "Map" "Memory map" + 0;
    L1 = 0x1000_0000, Number, "", "L1 of cluster 0; that of cluster n is at n * L1_SPAN above it";
    L1_SPAN = 0x40_0000, Number, "", "distance between the L1 memories of neighbouring clusters";
    L1_END = 0x1A00_0000, Number, "", "end of the L1 memories";
    OUTPUT = 0x1A10_4000, Write, "", "a store of a character writes it to the console";
    OWN_L1 = 0x1B00_0000, Number, "", "L1 of the HPU's own cluster";
    TERMINATE = 0x1B20_0000, Write, "", "a store ends the run after an error";
    DRIVER = 0x1B20_5000, Number, "HWSCHED_BASE", "registers of the HPU driver; each HPU has its own set";
    HANDLER = device::DATA, Number, "", "L2 handler memory";
    PACKET = device::PACKETS, Number, "", "L2 packet buffer";
    PROGRAM = device::PROGRAM, Number, "", "program memory";
}

list! {
    /// Registers of the HPU driver, as offsets from its address. All are words; a load may wait for its value.
    driver "Driver" "HPU driver" + map::DRIVER;
    FUNCTION = 0x00, Read, "HWSCHED_HANDLER_FUN_ADDR", "address of the handler; a load waits for a task";
    FUNCTION_SIZE = 0x04, Read, "HWSCHED_HANDLER_FUN_SIZE", "bytes of the handler's code";
    TASK = 0x08, Read, "HWSCHED_TASK", "the 18 words of the task, readable at byte granularity";
    DOORBELL = 0x50, ReadWrite, "HWSCHED_DOORBELL", "any access ends the handler";
    ERROR = 0x54, Write, "HWSCHED_ERROR", "a store of a code marks the task as failed; the doorbell ends it";
    ISSUE = 0x80, Read, "CMD_ISSUE", "a load issues the command in the words below and returns its number; it waits for a free slot";
    WAIT = 0x84, Write, "CMD_WAIT", "a store of a command's number returns when that command is done";
    TEST = 0x88, ReadWrite, "CMD_TEST", "a load returns 1 if the command with the stored number is done";
    COMMAND = 0x8C, ReadWrite, "CMD_INFO", "kind of the command; bit 0: it has an event";
    WORDS = 0x90, ReadWrite, "CMD_WORD0", "7 words, whose meaning depends on the kind";
    SOURCE = 0x100, ReadWrite, "DMA_SOURCE", "source address of a transfer of the cluster's DMA engine";
    DESTINATION = 0x108, ReadWrite, "DMA_DESTINATION", "destination address of the transfer";
    BYTES = 0x110, ReadWrite, "DMA_BYTES", "bytes of the transfer";
    LAUNCH = 0x118, Read, "DMA_LAUNCH", "a load launches the transfer and returns its number; an HPU's numbers increase from 1";
    LANDED = 0x120, Read, "DMA_DONE", "number up to which all transfers are done";
}

list! {
    /// Kinds of commands, in the command register of the HPU driver. Bit 0 is set when the host gets an event.
    kind "Kind" "Commands" + 0;
    HOST_DMA = 0, Number, "CMD_INFO_HOST_DMA", "words: host address low and high, data, size, direction (1 to the host), user";
    EVENT = 1, Number, "CMD_INFO_EVENT", "the host gets an event with the user's number";
    SEND = 2, Number, "CMD_INFO_NIC", "words: node, flow (0 is a raw packet), data low and high, size, user";
    HOST_DIRECT = 4, Number, "CMD_INFO_HOST_DIRECT", "words: host address low and high, size << 1 | direction (1 to the host), data low and high";
}

list! {
    /// Causes in the status of a failed handler, and in events.
    cause "Status" "Causes" + 0;
    LOAD = 1, Number, "", "a load from foreign memory";
    STORE = 2, Number, "", "a store to foreign memory";
    MISALIGNED = 3, Number, "", "a misaligned atomic operation";
    FETCH = 4, Number, "", "execution left the handler's code";
    ILLEGAL = 5, Number, "", "an illegal instruction";
    BREAKPOINT = 6, Number, "", "a breakpoint";
    COMMAND = 7, Number, "", "a command or transfer with foreign memory of the unit";
    HOST = 8, Number, "", "a command with host memory that the host refuses";
    WATCHDOG = 9, Number, "", "the watchdog killed the handler";
    IDLE = 10, Number, "", "the message was abandoned because no packet arrived";
    REPORTED = 11, Number, "", "the handler reported an error; the address is its code";
    REQUEST = 12, Number, "", "the unit refused a request: the address is its context, message or bytes for L1 beyond the limit";
    DISABLED = 13, Number, "", "ENABLE was cleared while the message was in the unit";
}

list! {
    /// Kinds of events in the unit's event queue.
    event "Event" "Events" + 0;
    NONE = 0, Number, "", "no event";
    FAILED = 1, Number, "", "a handler failed or was killed, or a request was refused; details are in EVENT_CAUSE, EVENT_MESSAGE, EVENT_HPU and EVENT_CONTEXT";
    IDLE = 2, Number, "", "a message without packets was abandoned: EVENT_MESSAGE and EVENT_CONTEXT name it; EVENT_USER is 1 if its number is free";
    COMMAND = 3, Number, "", "a command with an event is done: EVENT_USER is the handler's number";
    TERMINATED = 4, Number, "", "a program requests the end of the run; EVENT_HPU names the cluster";
}

list! {
    /// Control registers of the unit, for the driver on the host. All are words.
    control "Control" "Control registers" + 0;
    ID = 0x000, Read, "", "0x4E505350, \"PSPN\"";
    VERSION = 0x004, Read, "", "version of this register map: 1";
    CLUSTERS = 0x008, Read, "", "number of clusters";
    HPUS = 0x00C, Read, "", "number of HPUs of a cluster";
    QUEUES = 0x010, Read, "", "number of message queues; message m uses queue m modulo this number";
    CONTEXTS = 0x014, Read, "", "number of execution contexts";
    L1_BYTES = 0x018, Read, "", "size of the L1 of a cluster";
    L1_SCRATCHPAD = 0x01C, Read, "", "offset in L1 at which scratchpads begin, behind the runtime's data and the packet buffer";
    HANDLER_BYTES = 0x020, Read, "", "size of L2 handler memory";
    PACKET_BYTES = 0x024, Read, "", "size of the L2 packet buffer";
    PROGRAM_BYTES = 0x028, Read, "", "size of program memory";
    MAX_PACKET_BYTES = 0x02C, Read, "", "size of the longest packet";
    ENABLE = 0x040, ReadWrite, "", "bit 0: the HPUs run; while it is 0 they are in reset. Clearing it abandons all messages in the unit";
    ENTRY = 0x044, ReadWrite, "", "address at which an HPU starts";
    AGAIN = 0x048, ReadWrite, "", "address at which it restarts after a failed or killed handler";
    STATIC_ADDRESS = 0x04C, ReadWrite, "", "static data of the program, which all handlers may use: address";
    STATIC_BYTES = 0x050, ReadWrite, "", "and size";
    CODE_ADDRESS = 0x054, ReadWrite, "", "code and constants of the program, which all handlers may read: address";
    CODE_BYTES = 0x058, ReadWrite, "", "and size";
    BOOT_ADDRESS = 0x05C, ReadWrite, "", "first content of handler memory, which the program may use while it starts: address";
    BOOT_BYTES = 0x060, ReadWrite, "", "and size";
    STATE = 0x064, Read, "", "bit 0: all HPUs wait for a task, and the unit is idle; bit 1: the latest RESET_MESSAGE named an existing message; bit 2: its number was free at once";
    RESET_MESSAGE = 0x068, Write, "", "abandons the message with this number; STATE has the result";
    IRQ_ENABLE = 0x06C, ReadWrite, "", "bit 0: interrupt while the event queue is not empty; bit 1: interrupt while the console is not empty";
    HOST_TIMEOUT = 0x070, ReadWrite, "", "cycles without an answer of the host after which it has refused its commands; 0: never; 4096 after a reset";
    EVENT_KIND = 0x080, Read, "", "kind of the oldest event; 0 if the queue is empty";
    EVENT_CAUSE = 0x084, Read, "", "cause, and in bits 9 and 8 the part of the handler: 0 header, 1 payload, 2 completion, 3 none";
    EVENT_MESSAGE = 0x088, Read, "", "message";
    EVENT_HPU = 0x08C, Read, "", "cluster << 8 | HPU";
    EVENT_CONTEXT = 0x090, Read, "", "execution context";
    EVENT_USER = 0x094, Read, "", "number chosen by the handler";
    EVENT_PC = 0x098, Read, "", "address of the instruction that failed, or 0";
    EVENT_ADDRESS = 0x09C, Read, "", "address of the access that failed, low half";
    EVENT_ADDRESS_HIGH = 0x0A0, Read, "", "high half";
    EVENT_POP = 0x0A4, Write, "", "a write removes the oldest event";
    CONSOLE = 0x0A8, Read, "", "a load removes the next character of the console; bit 31 is set if there was one; cluster << 16 | HPU << 8 | character";
    CONTEXT_TENANT = 0x100, ReadWrite, "", "row that the next CONTEXT_WRITE writes: tenant";
    CONTEXT_PIN = 0x104, ReadWrite, "", "bit 31: its tasks run in one cluster only; bits 7 to 0: this cluster";
    CONTEXT_DESCRIPTOR = 0x108, ReadWrite, "", "address in host memory for the status of failures, low half; 0 for none";
    CONTEXT_DESCRIPTOR_HIGH = 0x10C, ReadWrite, "", "high half";
    CONTEXT_IDLE = 0x110, ReadWrite, "", "cycles without a packet after which the unit abandons a message";
    CONTEXT_WATCHDOG = 0x114, ReadWrite, "", "cycles after which the watchdog kills a handler; 0 turns it off";
    CONTEXT_HOST = 0x118, ReadWrite, "", "host memory of the context, as seen by its handlers: address, low half";
    CONTEXT_HOST_HIGH = 0x11C, ReadWrite, "", "high half";
    CONTEXT_HOST_BYTES = 0x120, ReadWrite, "", "size, low half";
    CONTEXT_HOST_BYTES_HIGH = 0x124, ReadWrite, "", "high half";
    CONTEXT_HANDLER_MEMORY = 0x128, ReadWrite, "", "L2 handler memory of the context: address";
    CONTEXT_HANDLER_MEMORY_BYTES = 0x12C, ReadWrite, "", "and size";
    CONTEXT_HEADER = 0x130, ReadWrite, "", "header handler: address; 0 for none";
    CONTEXT_HEADER_BYTES = 0x134, ReadWrite, "", "and size of its code";
    CONTEXT_PAYLOAD = 0x138, ReadWrite, "", "payload handler: address; 0 for none";
    CONTEXT_PAYLOAD_BYTES = 0x13C, ReadWrite, "", "and size of its code";
    CONTEXT_COMPLETION = 0x140, ReadWrite, "", "completion handler: address; 0 for none";
    CONTEXT_COMPLETION_BYTES = 0x144, ReadWrite, "", "and size of its code";
    CONTEXT_WRITE = 0x148, Write, "", "writes the row to the context with this number";
    SCRATCHPAD_ADDRESS = 0x14C, ReadWrite, "", "scratchpad that the next SCRATCHPAD_WRITE writes: address";
    SCRATCHPAD_BYTES = 0x150, ReadWrite, "", "and size";
    SCRATCHPAD_CLUSTER = 0x154, ReadWrite, "", "cluster of the scratchpad";
    SCRATCHPAD_WRITE = 0x158, Write, "", "writes the scratchpad to the context with this number";
    COUNTERS = 0x200, Read, "", "counters of 64 bits, low half first; a load of this word freezes all until its next load";
}

list! {
    /// Counters of the unit, in their order behind `COUNTERS`.
    counter "Counter" "Counters" + 0;
    CYCLES = 0, Number, "", "cycles since reset";
    ACCEPTED = 1, Number, "", "accepted requests";
    DONE = 2, Number, "", "packets with feedback after their last handler returned";
    SKIPPED = 3, Number, "", "packets with feedback without a handler";
    FAULTED = 4, Number, "", "packets with feedback after their last handler failed";
    TIMED_OUT = 5, Number, "", "packets with feedback after the watchdog killed their last handler";
    RESET = 6, Number, "", "packets with feedback because their message was abandoned";
    COMMANDS = 7, Number, "", "commands accepted by the command unit";
    LOST_STATUS = 8, Number, "", "errors missing in the descriptor of their context, because the host refused the address";
    LOST_EVENTS = 9, Number, "", "events lost because the event queue was full";
    LOST_OUTPUT = 10, Number, "", "characters lost because the console was full";
    REFUSED = 11, Number, "", "cycles with a waiting request";
    BLOCKED = 12, Number, "", "cycles with a task that waited because no cluster had room";
    HELD = 13, Number, "", "cycles with a feedback that the NIC did not accept";
    BUSY = 14, Number, "", "cycles of HPUs with a task, summed over all HPUs";
    CONFLICTS = 15, Number, "", "cycles of HPUs waiting for a bank of their L1";
    MISSES = 16, Number, "", "lines fetched into instruction caches";
    STRAY = 17, Number, "", "dropped answers of the host that no command waits for: late ones, or strays";
}

list! {
    /// Registers of the NIC `pspin_nic`, behind those of the unit. All are words.
    nic "Nic" "NIC registers" + 0;
    ID = 0x8000, Read, "", "0x434E5350, \"PSNC\"";
    VERSION = 0x8004, Read, "", "version of this register map: 1";
    RULESETS = 0x8008, Read, "", "number of rulesets";
    RULES = 0x800C, Read, "", "number of rules of a ruleset; the last one marks the end of a message";
    ENABLE = 0x8010, ReadWrite, "", "bit 0: packets that match a ruleset go to the unit; otherwise all packets bypass it";
    MSI_ENABLE = 0x8014, ReadWrite, "", "bit 0: an interrupt of the unit sends a message";
    MSI_ACK = 0x8018, Write, "", "a write permits the next message, which is sent at once if the interrupt is still set";
    STATE = 0x801C, Read, "", "bit 0: the unit has no packet and no access of the memory window; bit 1: the unit interrupts; bit 2: the unit refused an access of the memory window since the latest load of this word";
    MEMORY_ADDRESS = 0x8020, ReadWrite, "", "window to the memories of the unit: address of 64 bytes";
    MEMORY_BYTES = 0x8024, ReadWrite, "", "bytes that a MEMORY_WRITE writes, from the first on: 1 to 64";
    MEMORY_WRITE = 0x8028, Write, "", "a write copies MEMORY_DATA to the unit, and adds 64 to the address";
    MEMORY_READ = 0x802C, Write, "", "a write copies 64 bytes of the unit to MEMORY_DATA, and adds 64 to the address; STATE has the end";
    MEMORY_DATA = 0x8040, ReadWrite, "", "first of 16 words of the window";
    MATCHED = 0x8080, Read, "", "packets of the network for the unit";
    BYPASSED = 0x8084, Read, "", "packets of the network for the plain NIC";
    DROPPED = 0x8088, Read, "", "packets for the unit that were dropped, because they were bad or longer than a place of the packet buffer";
    SENT = 0x808C, Read, "", "packets sent by handlers";
    FORWARDED = 0x8090, Read, "", "packets sent by the plain NIC";
    RULE_WORD = 0x8100, ReadWrite, "", "rule 0 of ruleset 0; the next rule is 0x10 behind it, the next ruleset 0x100: number of the 32-bit word, big-endian, of the first 64 bytes of the frame";
    RULE_MASK = 0x8104, ReadWrite, "", "mask of the word";
    RULE_FIRST = 0x8108, ReadWrite, "", "least value of the masked word that fits";
    RULE_LAST = 0x810C, ReadWrite, "", "greatest value";
    RULESET_MODE = 0x81F0, ReadWrite, "", "mode of ruleset 0: 0 unused; 1 all rules before the last one fit; 2 one of them fits";
    RULESET_CONTEXT = 0x81F4, ReadWrite, "", "execution context of its packets";
    RULESET_TRANSFER = 0x81F8, ReadWrite, "", "greatest number of bytes of a packet copied to L1";
}

/// All lists.
pub const LISTS: [List; 8] =
    [map::LIST, driver::LIST, kind::LIST, cause::LIST, event::LIST, control::LIST, counter::LIST, nic::LIST];

/// Value of the register `ID`.
pub const ID: u32 = u32::from_le_bytes(*b"PSPN");
/// Value of the register `VERSION`.
pub const VERSION: u32 = 1;
/// Value of the NIC's register `ID`.
pub const NIC_ID: u32 = u32::from_le_bytes(*b"PSNC");
/// Number of words of a task, after the size of the handler.
pub const TASK_WORDS: u32 = 18;
/// Number of words of a command, including its kind.
pub const COMMAND_WORDS: u32 = 8;

/// Returns the SystemVerilog package of all lists.
pub fn systemverilog() -> String {
    let mut text = String::from(
        "// Addresses, registers and numbers that software uses (crates/base/abi/src/pspin.rs).\npackage pspin_abi_pkg;\n",
    );
    for list in &LISTS {
        text += &format!("\n  // {}\n", list.title);
        for row in list.rows {
            let (name, value) = (camel(row.name), hex(row.value));
            text += &format!("  localparam logic [31:0] {}{name} = 32'h{value};  // {}\n", list.prefix, row.meaning);
        }
        text += &format!("  localparam int unsigned {}Rows = {};\n", list.prefix, list.rows.len());
    }
    let others = [
        ("Id", ID),
        ("Version", VERSION),
        ("NicId", NIC_ID),
        ("TaskWords", TASK_WORDS),
        ("CommandWords", COMMAND_WORDS),
    ];
    text += "\n";
    for (name, value) in others {
        text += &format!("  localparam logic [31:0] Abi{name} = 32'h{};\n", hex(value));
    }
    text + "\nendpackage\n"
}

/// Returns C assertions that `hwsched.h` has the values of the lists.
pub fn c_assertions() -> String {
    let mut text = String::from("#include <hwsched.h>\n");
    for list in &LISTS {
        for row in list.rows.iter().filter(|row| !row.c.is_empty()) {
            let value = list.base + row.value;
            text += &format!("_Static_assert({} == {value}u, \"{}\");\n", row.c, row.c);
        }
    }
    text
}

/// Returns the tables of the integration guide.
pub fn markdown() -> String {
    let mut text = String::new();
    for list in &LISTS {
        text += &format!("### {}\n\n", list.heading);
        text += &format!("{}\n\n| name | value | | meaning |\n| --- | --- | --- | --- |\n", list.title);
        for row in list.rows {
            let value = match row.access {
                Access::Number if row.value < 0x1000 => row.value.to_string(),
                _ => format!("0x{}", hex(row.value)),
            };
            text += &format!("| `{}` | {value} | {} | {} |\n", row.name, row.access.name(), row.meaning);
        }
        text += "\n";
    }
    text
}

/// Converts `FUNCTION_SIZE` to `FunctionSize`.
pub fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_ascii_uppercase().to_string() + &letters.as_str().to_ascii_lowercase()
        })
    };
    name.split(['_', '.', '-']).map(word).collect()
}

/// Returns four hexadecimal digits, or twice four with `_` between.
fn hex(value: u32) -> String {
    if value >> 16 == 0 { format!("{value:04X}") } else { format!("{:04X}_{:04X}", value >> 16, value & 0xffff) }
}
