//! Benchmarks of the other crates, which `cargo bench -p benches` runs. In a crate of their own they cost no build and no test the time to
//! compile Criterion.
