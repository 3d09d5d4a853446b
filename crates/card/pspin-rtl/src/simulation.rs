// SPDX-License-Identifier: Apache-2.0
//! A simulated design: the library built from Verilator's output and `rtl/tests/harness/harness.cpp`, opened in this
//! process.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use libloading::Library;

use crate::RtlError;

/// Event reported by an observer of the design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Cycle of the design's clock.
    pub cycle: u64,
    /// Event number, defined by the observers.
    pub kind: u16,
    /// Location: an HPU, a cluster, or 0.
    pub unit: u16,
    /// Values of the event.
    pub values: [u32; 5],
}

/// Variable as the library describes it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Value {
    scope: *const c_char,
    name: *const c_char,
    data: *mut u8,
    row_bytes: u64,
    bytes: u64,
}

/// Opaque C++ object.
#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

/// Functions of the library.
#[derive(Clone, Copy)]
struct Functions {
    close: unsafe extern "C" fn(*mut Raw),
    error: unsafe extern "C" fn(*const Raw) -> *const c_char,
    settle: unsafe extern "C" fn(*mut Raw) -> c_int,
    tick: unsafe extern "C" fn(*mut Raw) -> c_int,
    events: unsafe extern "C" fn(*const Raw, *mut *const Event) -> u64,
    forget: unsafe extern "C" fn(*mut Raw),
    /// Functions of a design that writes waveforms.
    wave: Option<WaveFunctions>,
}

/// Starts a waveform, and writes the changes up to a time.
type WaveFunctions = (unsafe extern "C" fn(*mut Raw, *const c_char) -> c_int, unsafe extern "C" fn(*mut Raw, u64));

/// Memory of the design.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Scope in the hierarchy of the design.
    pub scope: String,
    /// Bytes of a row, and bytes that the simulator stores for one: a power of two.
    pub row_bytes: usize,
    /// Total size in bytes.
    pub bytes: usize,
    data: NonNull<u8>,
}

/// Port of the design with at most 64 bits, or a wider one by words.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    data: NonNull<u8>,
    bytes: usize,
}

/// Simulated design.
pub struct Simulation {
    raw: NonNull<Raw>,
    functions: Functions,
    ports: HashMap<String, Port>,
    memories: Vec<Memory>,
    /// Input at whose edges the design samples its other inputs, if any.
    load: Option<Port>,
    /// Set if inputs changed since they last settled.
    has_changed: bool,
    failure: Option<String>,
    /// Declared last: the library must close after everything that points into it.
    _library: Library,
}

/// Scope of the ports of the top module.
const TOP: &str = "TOP.TOP";
/// Input at which a design samples the others.
const LOAD: &str = "load_i";
/// Name of the variable that holds the rows of a memory.
const ROWS: &str = "rows";

impl Simulation {
    /// Opens a library and creates its design, in the state before reset. `seed` determines random values, if the build
    /// uses them.
    ///
    /// # Errors
    /// When the file is not such a library, or the design cannot be created.
    pub fn open(file: &Path, seed: u32) -> Result<Simulation, RtlError> {
        let broken = |error: libloading::Error| RtlError::Library(file.to_owned(), error.to_string());
        // SAFETY: the library was built by this crate from the harness; it has no initialisers beyond those of C++.
        let library = unsafe { Library::new(file) }.map_err(broken)?;
        // SAFETY: the types are those of the harness, which is part of the key under which the library was built.
        let (open, list, functions) = unsafe {
            let open = *library.get::<unsafe extern "C" fn(c_int) -> *mut Raw>(b"pspin_open\0").map_err(broken)?;
            let list = *library
                .get::<unsafe extern "C" fn(*const Raw, *mut *const Value) -> u64>(b"pspin_values\0")
                .map_err(broken)?;
            let functions = Functions {
                close: *library.get(b"pspin_close\0").map_err(broken)?,
                error: *library.get(b"pspin_error\0").map_err(broken)?,
                settle: *library.get(b"pspin_settle\0").map_err(broken)?,
                tick: *library.get(b"pspin_tick\0").map_err(broken)?,
                events: *library.get(b"pspin_events\0").map_err(broken)?,
                forget: *library.get(b"pspin_forget\0").map_err(broken)?,
                wave: library.get(b"pspin_wave\0").and_then(|wave| Ok((*wave, *library.get(b"pspin_dump\0")?))).ok(),
            };
            (open, list, functions)
        };
        // SAFETY: a function of the library.
        let raw = NonNull::new(unsafe { open(seed as c_int) });
        let raw = raw.ok_or_else(|| RtlError::Library(file.to_owned(), "it makes no design".to_owned()))?;
        let mut simulation = Simulation {
            raw,
            functions,
            ports: HashMap::new(),
            memories: Vec::new(),
            load: None,
            has_changed: true,
            failure: None,
            _library: library,
        };
        let reason = simulation.error();
        if !reason.is_empty() {
            return Err(RtlError::Library(file.to_owned(), reason));
        }
        let mut values = std::ptr::null();
        // SAFETY: the simulation is open, and `values` receives the array.
        let count = unsafe { list(raw.as_ptr(), &raw mut values) };
        for index in 0..count as usize {
            // SAFETY: the array has `count` values and lives as long as the simulation.
            simulation.add(unsafe { &*values.add(index) });
        }
        simulation.load = simulation.ports.remove(LOAD);
        Ok(simulation)
    }

    fn add(&mut self, value: &Value) {
        // SAFETY: the library gives strings that live as long as the simulation.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        let (scope, name) = (text(value.scope), text(value.name));
        let Some(data) = NonNull::new(value.data) else { return };
        let (row_bytes, bytes) = (value.row_bytes as usize, value.bytes as usize);
        if scope == TOP {
            self.ports.insert(name, Port { data, bytes });
        } else if name == ROWS {
            self.memories.push(Memory { scope, row_bytes, bytes, data });
        }
    }

    fn error(&self) -> String {
        // SAFETY: the simulation is open, and the string is valid until the next call.
        unsafe { CStr::from_ptr((self.functions.error)(self.raw.as_ptr())) }.to_string_lossy().into_owned()
    }

    /// Finds a port of the top module.
    ///
    /// # Errors
    /// When the port does not exist: harness and design do not fit.
    pub fn port(&self, name: &str) -> Result<Port, RtlError> {
        self.ports.get(name).copied().ok_or_else(|| RtlError::NoPort(name.to_owned()))
    }

    /// Returns the value of a port; of one wider than 64 bits, its lowest 64 bits.
    #[inline]
    pub fn get(&self, port: Port) -> u64 {
        let mut value = [0; 8];
        self.get_bytes(port, &mut value);
        u64::from_le_bytes(value)
    }

    /// Copies the lowest bytes of a port.
    #[inline]
    pub fn get_bytes(&self, port: Port, target: &mut [u8]) {
        let bytes = port.bytes.min(target.len());
        // SAFETY: the port has at least `bytes` bytes and lives as long as the simulation; no other reference exists
        // meanwhile.
        target[..bytes].copy_from_slice(unsafe { std::slice::from_raw_parts(port.data.as_ptr(), bytes) });
    }

    /// Sets an input. Bits beyond the port's width must be 0.
    #[inline]
    pub fn set(&mut self, port: Port, value: u64) {
        self.set_bytes(port, &value.to_le_bytes());
    }

    /// Sets the lowest bytes of an input.
    #[inline]
    pub fn set_bytes(&mut self, port: Port, value: &[u8]) {
        let bytes = port.bytes.min(value.len());
        // SAFETY: as for reading.
        let known = unsafe { std::slice::from_raw_parts_mut(port.data.as_ptr(), bytes) };
        if known != &value[..bytes] {
            known.copy_from_slice(&value[..bytes]);
            self.has_changed = true;
        }
    }

    /// Returns the memories of the design.
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// Returns the bytes of a memory, row by row.
    pub fn rows(&mut self, memory: usize) -> &mut [u8] {
        let Memory { data, bytes, .. } = self.memories[memory];
        // SAFETY: the memory has `bytes` bytes and lives as long as the simulation, which is borrowed exclusively
        // meanwhile.
        unsafe { std::slice::from_raw_parts_mut(data.as_ptr(), bytes) }
    }

    /// Propagates changed inputs through combinational logic within the cycle.
    pub fn settle(&mut self) {
        if let Some(load) = self.load.filter(|_| std::mem::take(&mut self.has_changed)) {
            self.set(load, 1 - self.get(load));
            self.has_changed = false;
        }
        self.call(self.functions.settle);
    }

    /// Ends the cycle. Inputs must have settled.
    pub fn tick(&mut self) {
        self.call(self.functions.tick);
    }

    /// Starts a waveform of all signals, as VCD. The library must be built for waveforms.
    ///
    /// # Errors
    /// When it is not, or the file cannot be written.
    pub fn begin_wave(&mut self, file: &Path) -> Result<(), RtlError> {
        let failed = |reason: String| RtlError::Library(file.to_owned(), reason);
        let (begin, _) = self.functions.wave.ok_or_else(|| failed("the simulator writes no waveforms".to_owned()))?;
        let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| failed(error.to_string()))?;
        // SAFETY: a function of the library; the simulation is open, and the name is a string.
        if unsafe { begin(self.raw.as_ptr(), name.as_ptr()) } == 0 { Ok(()) } else { Err(failed(self.error())) }
    }

    /// Writes the changes up to a time in picoseconds to the waveform.
    pub fn dump(&mut self, ps: u64) {
        if let Some((_, dump)) = self.functions.wave {
            // SAFETY: a function of the library; the simulation is open.
            unsafe { dump(self.raw.as_ptr(), ps) };
        }
    }

    fn call(&mut self, function: unsafe extern "C" fn(*mut Raw) -> c_int) {
        if self.failure.is_some() {
            return;
        }
        // SAFETY: a function of the library; the simulation is open.
        if unsafe { function(self.raw.as_ptr()) } != 0 {
            let reason = self.error();
            self.failure = Some(if reason.is_empty() { "it has ended the simulation".to_owned() } else { reason });
        }
    }

    /// Returns the failure of the simulation, if any: time then stands still.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Appends the events that observers reported since the last call to `events`.
    pub fn take_events(&mut self, events: &mut Vec<Event>) {
        let mut first = std::ptr::null();
        // SAFETY: the simulation is open, and `first` receives the array.
        let count = unsafe { (self.functions.events)(self.raw.as_ptr(), &raw mut first) } as usize;
        if count > 0 {
            // SAFETY: the array has `count` events, valid until `forget`.
            events.extend_from_slice(unsafe { std::slice::from_raw_parts(first, count) });
            // SAFETY: the simulation is open.
            unsafe { (self.functions.forget)(self.raw.as_ptr()) };
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: the simulation is open, and no use follows.
        unsafe { (self.functions.close)(self.raw.as_ptr()) };
    }
}
