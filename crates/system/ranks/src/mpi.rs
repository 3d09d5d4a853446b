// SPDX-License-Identifier: Apache-2.0
//! Identifies the MPI of a program by its libraries, and checks that it can use the simulated card.
//!
//! An MPI can use the card through libfabric, with the provider in `sdk/ofi`, or through Portals 4; Open MPI 5 also
//! needs the PMIx functions of `libsimpmix.so`. Any other MPI does not fail under `spinrun`: its ranks wait forever for
//! messages outside of the simulated network, or each behaves as the only rank. The user is therefore told at once.

use std::ffi::OsString;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Function that builds the libfabric provider if it does not exist yet.
#[derive(Clone)]
pub struct ProviderBuilder(Rc<dyn Fn() -> Result<(), String>>);

impl ProviderBuilder {
    /// Wraps a function that returns the reason of its failure.
    pub fn new(make: impl Fn() -> Result<(), String> + 'static) -> ProviderBuilder {
        ProviderBuilder(Rc::new(make))
    }
}

impl Debug for ProviderBuilder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderBuilder")
    }
}

/// Assessment of a program's libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No MPI, or one that uses Portals 4.
    Fine,
    /// Uses libfabric.
    NeedsProvider,
    /// An MPI whose ranks cannot reach each other, with the reason.
    Apart(String),
}

impl Verdict {
    /// Returns the reason why a job of this number of ranks cannot work. Builds a required provider first.
    pub fn objection(self, ranks: usize, provider: Option<&ProviderBuilder>) -> Option<String> {
        match (self, provider) {
            (Verdict::NeedsProvider, Some(ProviderBuilder(make))) => make().err(),
            (Verdict::NeedsProvider, None) if ranks > 1 => Some(
                "uses libfabric, and this installation has no provider for the simulated card (sdk/ofi and spincc)"
                    .into(),
            ),
            (Verdict::Apart(why), _) if ranks > 1 => Some(why),
            _ => None,
        }
    }
}

/// Determines whether a job can work with these libraries. `variable` looks up an environment variable of the ranks.
pub fn judge<'a>(
    libraries: impl IntoIterator<Item = &'a Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Verdict {
    let libraries: Vec<&Path> = libraries.into_iter().collect();
    verdict(&libraries, variable).unwrap_or_else(|(folder, error)| {
        Verdict::Apart(format!("links an Open MPI whose components are not known: {}: {error}", folder.display()))
    })
}

/// An unreadable folder, and the reason.
type Unread = (PathBuf, io::Error);

fn verdict(libraries: &[&Path], variable: impl Fn(&str) -> Option<OsString>) -> Result<Verdict, Unread> {
    let named = |start: &str| libraries.iter().find(|path| name(path).starts_with(start));
    let links_fabric = named("libfabric.so").is_some() || named("libfabric-").is_some();
    if let (Some(mpi), Some(base)) = (libraries.iter().find(|path| is_mpi(name(path))), named("libopen-pal")) {
        let mut components = Vec::new();
        for library in [mpi, base] {
            for folder in beside(library)? {
                components.extend(entries(&folder)?);
            }
        }
        for folder in configured(variable) {
            components.extend(entries(&folder)?);
        }
        let has =
            |component| components.iter().any(|path| name(path).starts_with("mca_") && name(path).contains(component));
        if named("libportals").is_some() || has("portals4") {
            return Ok(Verdict::Fine);
        }
        // Version 5 links PMIx, version 4 loads it at run time.
        let links_pmix = named("libpmix").is_some();
        if links_pmix && (links_fabric || has("mtl_ofi")) {
            return Ok(Verdict::NeedsProvider);
        }
        let (library, what) =
            (name(mpi), if links_pmix { "libfabric (mca_mtl_ofi.so) or Portals 4" } else { "Portals 4" });
        return Ok(Verdict::Apart(format!(
            "links {library}, an Open MPI without components for {what} (mca_mtl_portals4.so): its ranks would not find each \
             other; see docs/mpi.md"
        )));
    }
    if links_fabric {
        return Ok(Verdict::NeedsProvider);
    }
    Ok(match libraries.iter().find(|path| is_mpi(name(path))) {
        Some(mpi) if named("libportals").is_none() => Verdict::Apart(format!(
            "links {}, an MPI that uses neither libfabric as a shared library nor Portals 4: its ranks would wait for each \
             other for ever; see docs/mpi.md",
            name(mpi)
        )),
        _ => Verdict::Fine,
    })
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Returns true if a file is the C library of an MPI. Wheels put a hash into its name, as in `libmpi-1a2b3c.so.40`.
fn is_mpi(file: &str) -> bool {
    let rest = ["libmpich", "libmpi_abi", "libmpi"].into_iter().find_map(|start| file.strip_prefix(start));
    rest.is_some_and(|rest| rest.starts_with(".so") || rest.starts_with('-') && rest.contains(".so"))
}

/// Returns the folders with components of an Open MPI library: `openmpi` beside it, or `openmpi3` on Debian.
fn beside(library: &Path) -> Result<Vec<PathBuf>, Unread> {
    let real = library.canonicalize().unwrap_or_else(|_| library.into());
    let Some(folder) = real.parent() else { return Ok(Vec::new()) };
    let mut all = entries(folder)?;
    all.retain(|path| name(path).starts_with("openmpi"));
    Ok(all)
}

/// Returns the component folders configured by the user.
fn configured(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let moved = variable("OPAL_PREFIX").map(|prefix| Path::new(&prefix).join("lib/openmpi"));
    let paths = ["OMPI_MCA_mca_base_component_path", "OMPI_MCA_component_path"].into_iter().filter_map(variable);
    moved.into_iter().chain(paths.flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>())).collect()
}

/// Returns the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Unread> {
    match folder.read_dir().and_then(|listed| listed.map(|entry| Ok(entry?.path())).collect()) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        listed => listed.map_err(|error| (folder.to_owned(), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ProviderBuilder, Verdict, judge};
    use std::cell::Cell;
    use std::path::Path;
    use std::rc::Rc;

    fn verdict(libraries: &[&str]) -> Verdict {
        judge(libraries.iter().map(Path::new), |_| None)
    }

    #[test]
    fn mpi_is_identified_by_its_libraries() {
        assert_eq!(verdict(&["/lib/libc.so.6", "/lib/libmpi_cxx.so.1", "/opt/libmpiwrap.so"]), Verdict::Fine);
        for mpich in
            ["/a/libmpi.so.12", "/a/libmpich.so.12", "/a/libmpi_abi.so.1", "/a/libmpi-0f3a.so.12.4", "libmpi.so"]
        {
            for fabric in ["/a/libfabric.so.1", "/a/libfabric-3c1b.so.1.29"] {
                assert_eq!(verdict(&["/lib/libc.so.6", mpich, fabric]), Verdict::NeedsProvider);
            }
            assert_eq!(verdict(&["/lib/libportals.so.4", mpich]), Verdict::Fine);
            let Verdict::Apart(why) = verdict(&["/lib/libc.so.6", mpich]) else { panic!("{mpich}") };
            assert!(why.contains("neither libfabric as a shared library nor Portals 4"), "{why}");
        }
        assert_eq!(verdict(&["/a/libfabric.so.1"]), Verdict::NeedsProvider);
        // Open MPI 5 links PMIx, and also libfabric unless that is in components.
        let five = ["/a/libmpi.so.40", "/a/libopen-pal.so.80", "/a/libpmix.so.2", "/a/libfabric.so.1"];
        assert_eq!(verdict(&five), Verdict::NeedsProvider);
        for (libraries, what) in [(&five[..3], "libfabric (mca_mtl_ofi.so) or Portals 4"), (&five[..2], "Portals 4")] {
            let Verdict::Apart(why) = verdict(libraries) else { panic!("{what}") };
            assert!(
                why.starts_with(&format!("links libmpi.so.40, an Open MPI without components for {what} (")),
                "{why}"
            );
        }
    }

    #[test]
    fn the_provider_is_built_on_demand() {
        let made = Rc::new(Cell::new(0));
        let count = made.clone();
        let maker = ProviderBuilder::new(move || {
            count.set(count.get() + 1);
            if count.get() < 3 { Ok(()) } else { Err("no compiler".into()) }
        });
        let needs = |ranks| Verdict::NeedsProvider.objection(ranks, Some(&maker));
        assert_eq!((needs(1), needs(2), made.get()), (None, None, 2));
        assert_eq!(needs(2), Some("no compiler".into()));
        assert_eq!((Verdict::Fine.objection(2, Some(&maker)), made.get()), (None, 3));
        assert!(Verdict::NeedsProvider.objection(2, None).is_some_and(|why| why.contains("no provider")));
        let apart = |ranks| Verdict::Apart("x".into()).objection(ranks, None);
        assert_eq!((apart(1), apart(2)), (None, Some("x".into())));
    }

    #[test]
    fn open_mpi_may_have_components_for_portals() {
        let home = tempfile::TempDir::new().unwrap();
        let (library, base) = (home.path().join("libmpi.so.40"), home.path().join("libopen-pal.so.40"));
        let folder = home.path().join("openmpi3");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("mca_mtl_ofi.so"), "").unwrap();
        let is_fine = |variable: &str| {
            let value = |name: &str| {
                (name == variable).then(|| format!("system:{}", home.path().join("more").display()).into())
            };
            judge([library.as_path(), &base], value) == Verdict::Fine
        };
        assert!(!is_fine("") && !is_fine("OMPI_MCA_mca_base_component_path"));
        std::fs::create_dir(home.path().join("more")).unwrap();
        std::fs::write(home.path().join("more/mca_mtl_portals4.so"), "").unwrap();
        assert!(!is_fine("") && is_fine("OMPI_MCA_mca_base_component_path"));
        std::fs::write(folder.join("mca_btl_portals4.so"), "").unwrap();
        assert!(is_fine(""));
        // A symbolic link to itself cannot be followed, so the contents are unknown.
        std::fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        let Verdict::Apart(why) = judge([library.as_path(), &base], |_| None) else { panic!("it is taken for none") };
        assert!(why.contains("components are not known") && why.contains("openmpi3: "), "{why}");
    }
}
