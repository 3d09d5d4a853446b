// SPDX-License-Identifier: Apache-2.0
//! Sets the soname of the library and creates a link with that name, for programs linked to the build folder.

use std::path::Path;

/// Soname recorded in programs; it changes with the binary interface.
const SONAME: &str = "libportals.so.4";

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    println!("cargo:rerun-if-changed=build.rs");
    // Cargo names the file libportals.so, in the profile's folder and in `deps` below it.
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let profile = Path::new(&out).ancestors().nth(3).expect("<profile>/build/<package>/out");
    for folder in [profile.to_owned(), profile.join("deps")] {
        let link = folder.join(SONAME);
        // A concurrent build may have created the link.
        let _ = std::os::unix::fs::symlink("libportals.so", &link);
        assert!(link.is_symlink(), "{} cannot be made", link.display());
    }
}
