//! Determines from the libraries of a program which MPI it uses, and whether that MPI can use the simulated card.
//!
//! An MPI without Portals 4 does not fail under `spinrun`: its ranks wait for each other's messages outside of the
//! simulated network for ever (MPICH), or each behaves as the only rank (Open MPI). So the user is warned at once.

use std::path::{Path, PathBuf};

/// Returns why a job of several ranks cannot work with these libraries, or `None` if it can. `variable` looks up an
/// environment variable of the ranks.
pub fn objection<'a>(
    libraries: impl IntoIterator<Item = &'a Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let libraries: Vec<&Path> = libraries.into_iter().collect();
    let named = |start: &str| libraries.iter().find(|path| name(path).starts_with(start));
    let mpi = libraries.iter().find(|path| is_mpi(name(path)))?;
    if named("libportals").is_some() {
        return None;
    }
    let library = name(mpi);
    let Some(base) = named("libopen-pal") else {
        return Some(format!(
            "links {library}, an MPI that cannot use the simulated card: its ranks would wait for each other for ever; see \
             docs/mpi.md"
        ));
    };
    if [mpi, base].into_iter().flat_map(|path| beside(path)).chain(configured(variable)).any(|dir| has_portals(&dir)) {
        return None;
    }
    Some(format!(
        "links {library}, an Open MPI without components for Portals 4 (mca_mtl_portals4.so): its ranks would not find each \
         other; see docs/mpi.md"
    ))
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a file is the C library of an MPI. Wheels put a hash into its name, as in `libmpi-1a2b3c.so.40`.
fn is_mpi(file: &str) -> bool {
    let rest = ["libmpich", "libmpi_abi", "libmpi"].into_iter().find_map(|start| file.strip_prefix(start));
    rest.is_some_and(|rest| rest.starts_with(".so") || rest.starts_with('-') && rest.contains(".so"))
}

/// Returns the folders with components of a library of Open MPI: `openmpi` beside it, or `openmpi3` on Debian.
fn beside(library: &Path) -> Vec<PathBuf> {
    let real = library.canonicalize().unwrap_or_else(|_| library.into());
    let folder = real.parent().and_then(|folder| folder.read_dir().ok());
    let folders = folder.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|path| name(path).starts_with("openmpi")).collect()
}

/// Returns the folders of components that the user has set.
fn configured(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let moved = variable("OPAL_PREFIX").map(|prefix| Path::new(&prefix).join("lib/openmpi"));
    let paths = ["OMPI_MCA_mca_base_component_path", "OMPI_MCA_component_path"].into_iter().filter_map(variable);
    moved.into_iter().chain(paths.flat_map(|path| path.split(':').map(PathBuf::from).collect::<Vec<_>>())).collect()
}

fn has_portals(folder: &Path) -> bool {
    let entries = folder.read_dir().into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).any(|path| name(&path).starts_with("mca_") && name(&path).contains("portals4"))
}

#[cfg(test)]
mod tests {
    use super::objection;
    use std::path::Path;

    fn says(libraries: &[&str], words: Option<&str>) {
        let found = objection(libraries.iter().map(Path::new), |_| None);
        match (found, words) {
            (None, None) => {}
            (Some(found), Some(words)) => assert!(found.contains(words), "{found}"),
            (found, _) => panic!("{libraries:?}: {found:?}"),
        }
    }

    #[test]
    fn mpis_are_told_by_their_libraries() {
        says(&["/lib/libc.so.6", "/lib/libmpi_cxx.so.1", "/opt/libmpiwrap.so"], None);
        for mpich in
            ["/a/libmpi.so.12", "/a/libmpich.so.12", "/a/libmpi_abi.so.1", "/a/libmpi-0f3a.so.12.4", "libmpi.so"]
        {
            says(&["/lib/libc.so.6", mpich], Some("would wait for each other for ever; see docs/mpi.md"));
            says(&["/lib/libportals.so.4", mpich], None);
        }
        let open = ["/a/libmpi.so.40", "/a/libopen-pal.so.80"];
        says(&open, Some("links libmpi.so.40, an Open MPI without components for Portals 4"));
    }

    #[test]
    fn open_mpi_may_have_components_for_portals() {
        let home = tempfile::TempDir::new().unwrap();
        let (library, base) = (home.path().join("libmpi.so.40"), home.path().join("libopen-pal.so.40"));
        let folder = home.path().join("openmpi3");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("mca_mtl_ofi.so"), "").unwrap();
        let check = |variable: &str| {
            let value =
                |name: &str| (name == variable).then(|| format!("system:{}", home.path().join("more").display()));
            objection([library.as_path(), &base], value)
        };
        assert!(check("").is_some() && check("OMPI_MCA_mca_base_component_path").is_some());
        std::fs::create_dir(home.path().join("more")).unwrap();
        std::fs::write(home.path().join("more/mca_mtl_portals4.so"), "").unwrap();
        assert!(check("").is_some());
        assert_eq!(check("OMPI_MCA_mca_base_component_path"), None);
        std::fs::write(folder.join("mca_btl_portals4.so"), "").unwrap();
        assert_eq!(check(""), None);
    }
}
