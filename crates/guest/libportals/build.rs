//! Names the library as installations do, where programs that were linked to it look for it by that name.

use std::path::Path;

/// The name that programs keep: it changes with the binary interface.
const SONAME: &str = "libportals.so.4";

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    println!("cargo:rerun-if-changed=build.rs");
    // Cargo calls its file libportals.so, in the profile's folder and in `deps` below it.
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let profile = Path::new(&out).ancestors().nth(3).expect("<profile>/build/<package>/out");
    for folder in [profile.to_owned(), profile.join("deps")] {
        let link = folder.join(SONAME);
        // Another build may have made it just now.
        let _ = std::os::unix::fs::symlink("libportals.so", &link);
        assert!(link.is_symlink(), "{} cannot be made", link.display());
    }
}
