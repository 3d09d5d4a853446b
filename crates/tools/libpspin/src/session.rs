// SPDX-License-Identifier: Apache-2.0
//! Set-up by the driver, and the card once its program is known.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::diagnostics::{Error, Result, warn};
use crate::program::Image;
use crate::requests;
use crate::settings::Settings;
use crate::simulation::{self, Card};
use crate::types::Conf;

/// State from `pspinsim_init` to `pspinsim_fini`.
struct Session {
    settings: Rc<Settings>,
    folder: PathBuf,
    card: Option<(Image, Box<dyn Card>)>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs an action on the session, exclusive of other calls of the library.
fn with<R>(act: impl FnOnce(&mut Session) -> Result<R>) -> Result<R> {
    SESSION.with(|session| {
        let within = |_| Error::Argument("must not be called by a callback".to_owned());
        let mut session = session.try_borrow_mut().map_err(within)?;
        act(session.as_mut().ok_or(Error::Order("pspinsim_init"))?)
    })
}

fn with_card<R>(act: impl FnOnce(&mut dyn Card) -> Result<R>) -> Result<R> {
    with(|session| match &mut session.card {
        Some((_, card)) => act(&mut **card),
        None => Err(Error::Run(format!(
            "the card has no program: {} has no program.elf, which `make deploy` writes, and no handler was looked up",
            session.folder.display()
        ))),
    })
}

/// `pspinsim_init`
pub fn begin(conf: &Conf, folder: PathBuf) -> Result<()> {
    SESSION.with(|session| {
        let within = |_| Error::Argument("must not be called by a callback".to_owned());
        let mut session = session.try_borrow_mut().map_err(within)?;
        if session.is_some() {
            return Err(Error::Argument("a simulation is running: pspinsim_fini ends it".to_owned()));
        }
        let mut fresh = Session { settings: Rc::new(Settings::read(conf)?), folder, card: None };
        requests::start(fresh.settings.unit.limits.max_packet);
        if let Some(image) = Image::in_folder(&fresh.folder)? {
            fresh.load(image)?;
        }
        *session = Some(fresh);
        Ok(())
    })
}

impl Session {
    fn load(&mut self, image: Image) -> Result<()> {
        let program = image.load(&self.settings.unit)?;
        let card = simulation::start(self.settings.clone(), &program)?;
        self.card = Some((image, card));
        Ok(())
    }
}

/// `spin_find_handler_by_name`: returns the address of a function in a program, which becomes the card's program if it
/// has none.
pub fn find(path: &Path, name: &str) -> Result<Option<u32>> {
    let image = Image::read(path)?;
    let address = image.find(name)?;
    if address.is_none() {
        warn(&format!("spin_find_handler_by_name: {} has no {name}: there is no such handler then", path.display()));
    }
    with(|session| match &session.card {
        Some((loaded, _)) if loaded.elf == image.elf => Ok(()),
        Some((loaded, _)) => Err(Error::File(
            format!("the card runs another program, {}; `make deploy` makes both the same", loaded.path.display()),
            path.to_owned(),
        )),
        None => session.load(image),
    })?;
    Ok(address)
}

/// `pspinsim_run`
pub fn run() -> Result<()> {
    with_card(|card| card.run())
}

/// `pspinsim_run_tick`
pub fn tick() -> Result<bool> {
    with_card(|card| card.tick())
}

/// `pspinsim_fini`
pub fn end() -> Result<()> {
    let card = with(|session| Ok(session.card.take()))?;
    SESSION.with_borrow_mut(Option::take);
    requests::start(0);
    card.map_or(Ok(()), |(_, card)| card.finish())
}
