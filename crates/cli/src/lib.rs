//! The commands: `spincc`, `spinrun`, `spinkit goal`, `spinkit machines` and `spinkit pspin`, and their man pages.

mod card;
mod clock;
mod drops;
mod failures;
pub mod goal;
pub mod machines;
pub mod manuals;
mod messages;
mod noise;
mod progress;
pub mod pspin;
pub mod sdk;
pub mod spincc;
pub mod spinrun;
mod transport;
mod units;

/// Cards and messages are many small pieces of memory that come and go.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes a panic of any thread end the process, with what it has to say, so that no other thread waits for that one. The profile
/// cannot do it (`panic = "abort"`), because Cargo would compile every library once more for the tests.
pub fn end_at_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort()
    }));
}
