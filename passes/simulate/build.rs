//! Links the shared HiGHS library.
fn main() {
    divi_build::link_shared_highs();
}
