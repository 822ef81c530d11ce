//! Has the linker pack what the loader adjusts when a program starts. A loader reads that table whole, so it would
//! stay in memory twice, for the proxy and for its guard: half a megabyte each, of a program that idles in fifteen.

use std::process::Command;

/// The first release of the GNU library that reads packed tables.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|known| known == value);
    let is_gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // Of other machines than this it is not known what they have.
    let is_for_here = std::env::var("TARGET").is_ok_and(|target| is("HOST", &target));
    if is_gnu && is_for_here && library().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the library that programs run with here.
fn library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
