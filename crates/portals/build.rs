//! Names the library, so that programs linked to it by path find it by name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libportals.so");
    println!("cargo:rerun-if-changed=build.rs");
}
