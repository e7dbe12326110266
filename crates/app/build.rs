// SPDX-License-Identifier: GPL-2.0
//! The shared library's name for the dynamic linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The number changes when programs must be compiled anew. Once loaded the library stays: a handler of
    // forks of it, and destructors of threads, may be called at any time.
    for argument in ["-soname,libandante.so.0", "-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
    }
}
