// SPDX-License-Identifier: Apache-2.0
//! Machine, from the environment and the configuration passed by the driver.

use std::env;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use machine::{Accelerator, Machine, Pspin};
use pspin_rtl::Wave;
use pspin_rtl::build::Design;
use sim::Clock;

use crate::diagnostics::{Error, Result, warn};
use crate::types::{CLUSTERS, Conf};

/// Variable with the name or file of the machine.
const MACHINE: &str = "SPINKIT_PSPIN_MACHINE";
/// Variable with settings that override those of the machine, one per line.
const SET: &str = "SPINKIT_PSPIN_SET";
/// Variable with the engine: `model`, or `rtl`, the hardware in a simulator.
const ENGINE: &str = "SPINKIT_PSPIN_ENGINE";
/// Variables with the file for a waveform of the hardware, and its cycles: `FROM..TO`.
const WAVE: &str = "SPINKIT_PSPIN_WAVE";
const WAVE_CYCLES: &str = "SPINKIT_PSPIN_WAVE_CYCLES";
/// Variables with the files for the report of the run and for its timeline.
const JSON: &str = "SPINKIT_PSPIN_JSON";
const TRACE: &str = "SPINKIT_PSPIN_TRACE";
/// Timeline of drivers linked with `-lpspin_debug`, unless the environment names a file.
const DEBUG_TRACE: &str = "waves.pftrace";
/// Variable that makes accesses beyond the host memory of execution contexts fail: `on` or `off`.
const IOMMU: &str = "SPINKIT_PSPIN_IOMMU";

/// Settings of a simulation.
pub struct Settings {
    /// Name of the machine.
    pub name: String,
    pub unit: Rc<Pspin>,
    pub clock: Clock,
    pub engine: Engine,
    /// Path of the report.
    pub json: Option<PathBuf>,
    /// Path of the timeline.
    pub trace: Option<PathBuf>,
    pub wave: Option<Wave>,
    /// Bytes of the largest packet that the card sends.
    pub max_sent: usize,
    pub is_strict: bool,
}

/// Engine of a simulation.
pub enum Engine {
    /// Model of the unit.
    Model,
    /// Unit as hardware, with the folder of its sources.
    Rtl(Design, PathBuf),
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// When the machine or a setting is wrong.
    pub fn read(conf: &Conf) -> Result<Settings> {
        let name = variable(MACHINE)?.unwrap_or_else(|| "pspin-400g".to_owned());
        let mut set = by_conf(conf);
        set.extend(
            variable(SET)?.unwrap_or_default().lines().filter(|line| !line.trim().is_empty()).map(str::to_owned),
        );
        let home = home();
        let folders: Vec<PathBuf> = home.iter().map(|home| home.join("machines")).collect();
        let machine = Machine::load(&name, &folders, &set).map_err(|error| Error::Machine(name.clone(), error))?;
        machine.notices.iter().chain(&machine.unused).for_each(|notice| warn(notice));
        let wave = wave()?;
        let engine = match variable(ENGINE)?.as_deref() {
            None | Some("model") if wave.is_none() => Engine::Model,
            None | Some("model") => {
                return Err(Error::Environment(format!("{WAVE} is for {ENGINE}=rtl: the model has no signals")));
            }
            Some("rtl") => match (Design::unit(&machine), home) {
                (Some(design), Some(home)) => Engine::Rtl(Design { is_traced: wave.is_some(), ..design }, home),
                (None, _) => return Err(Error::Kind(name, machine.accelerator.kind())),
                (_, None) => return Err(Error::Environment("SPINKIT_HOME must name the folder of spinkit".to_owned())),
            },
            Some(other) => return Err(Error::Environment(format!("{ENGINE} is {other:?}; it must be model or rtl"))),
        };
        let unit: Rc<Pspin> = match machine.accelerator {
            Accelerator::Pspin(unit) => Rc::from(unit),
            other => return Err(Error::Kind(name, other.kind())),
        };
        if let (Engine::Rtl(..), Some(reason)) = (&engine, pspin_rtl::build::refusal(&unit)) {
            return Err(Error::Environment(reason));
        }
        let clusters = unit.units.clusters;
        if clusters as usize > CLUSTERS {
            warn(&format!(
                "machine {name} has {clusters} clusters, but spin_ec_t and task_t have {CLUSTERS} scratchpads: cluster n has \
                 the scratchpad of entry n mod {CLUSTERS}, and handlers see the addresses of the first {CLUSTERS}"
            ));
        }
        let is_strict = match variable(IOMMU)?.as_deref() {
            None | Some("off") => false,
            Some("on") => true,
            Some(other) => return Err(Error::Environment(format!("{IOMMU} is {other:?}; it must be on or off"))),
        };
        let max_sent = conf.no_conf.max_pkt_size as usize;
        let [json, trace] =
            [JSON, TRACE].map(|name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from));
        let is_debug = own_path().is_some_and(|path| path.ends_with("libpspin_debug.so"));
        let trace = trace.or_else(|| is_debug.then(|| DEBUG_TRACE.into()));
        let (name, clock) = (machine.name, machine.hpu.clock);
        Ok(Settings { name, unit, clock, engine, json, trace, wave, max_sent, is_strict })
    }
}

/// Returns the requested waveform.
fn wave() -> Result<Option<Wave>> {
    let Some(file) = variable(WAVE)?.map(PathBuf::from) else { return Ok(None) };
    let Some(text) = variable(WAVE_CYCLES)? else { return Ok(Some(Wave { file, cycles: 0..u64::MAX })) };
    let cycles = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    let wrong = || Error::Environment(format!("{WAVE_CYCLES} is {text:?}; it must be two cycles, as 1000..2000"));
    Ok(Some(Wave { file, cycles: cycles.ok_or_else(wrong)? }))
}

fn variable(name: &str) -> Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Error::Environment(format!("{name} is not text"))),
    }
}

/// Returns the settings implied by the driver's configuration where it deviates from the published one. Buffers of the
/// published simulation have no counterpart.
fn by_conf(conf: &Conf) -> Vec<String> {
    let published = Conf::default();
    let mut set = Vec::new();
    let mut rate = |ns: f64, published: f64, key: &str| {
        if ns != published {
            set.push(format!("{key}={:?}", 1_000.0 * ns));
        }
    };
    rate(conf.no_conf.network_g, published.no_conf.network_g, "accelerator.outbound.G_ps_per_byte");
    rate(conf.pcie_slv_conf.pcie_g, published.pcie_slv_conf.pcie_g, "accelerator.host.G_ps_per_byte");
    if conf.pcie_slv_conf.pcie_l != published.pcie_slv_conf.pcie_l {
        set.push(format!("accelerator.host.write_cycles={}", conf.pcie_slv_conf.pcie_l));
    }
    let mut rest = *conf;
    (rest.no_conf.network_g, rest.no_conf.max_pkt_size) = (0.0, published.no_conf.max_pkt_size);
    (rest.pcie_slv_conf.pcie_l, rest.pcie_slv_conf.pcie_g) =
        (published.pcie_slv_conf.pcie_l, published.pcie_slv_conf.pcie_g);
    if (rest.ni_conf, rest.no_conf, rest.pcie_slv_conf)
        != (published.ni_conf, published.no_conf, published.pcie_slv_conf)
    {
        warn(
            "of pspin_conf_t only slm_files_path, network_G, max_pkt_size, pcie_L and pcie_G count; the machine file says \
             the rest (accelerator.*)",
        );
    }
    set
}

/// Returns the folder with the machine files and the sources of the hardware: `$SPINKIT_HOME`, else `../share/spinkit`
/// from this library, else the checkout that contains it.
fn home() -> Option<PathBuf> {
    let is_home = |home: &PathBuf| home.join("machines/pspin-400g.toml").is_file();
    if let Some(home) = env::var_os("SPINKIT_HOME") {
        return Some(PathBuf::from(home));
    }
    let library = own_path().and_then(|path| path.canonicalize().ok())?;
    let prefix = library.parent().and_then(Path::parent).map(|prefix| prefix.join("share/spinkit"));
    prefix.into_iter().chain(library.ancestors().map(Path::to_owned)).find(is_home)
}

/// Returns the file that contains this code.
pub fn own_path() -> Option<PathBuf> {
    // SAFETY: all fields may be zero.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function, and dladdr fills in the structure.
    let is_known = unsafe { libc::dladdr(home as *const c_void, &raw mut info) } != 0;
    if !is_known || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string of the dynamic linker, valid while the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_configures_becomes_settings() {
        let mut conf = Conf::default();
        assert_eq!(by_conf(&conf), [""; 0]);
        (conf.no_conf.network_g, conf.pcie_slv_conf.pcie_g, conf.pcie_slv_conf.pcie_l) = (0.02, 0.04, 5);
        let expected = [
            "accelerator.outbound.G_ps_per_byte=20.0",
            "accelerator.host.G_ps_per_byte=40.0",
            "accelerator.host.write_cycles=5",
        ];
        assert_eq!(by_conf(&conf), expected);
    }
}
