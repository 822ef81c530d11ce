//! Where memory comes from. A call takes and gives back some twenty small pieces, which is what mimalloc is made for. A
//! large buffer is the system's: it grows in place, and is gone as soon as it is given back.
#![expect(unsafe_code, reason = "an allocator is a promise that the compiler cannot check")]

use std::alloc::{GlobalAlloc, Layout, System};

use libmimalloc_sys::{mi_malloc, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;

/// Pieces from this size on come from the system's allocator, which gives them back.
const LARGE: usize = 128 * 1024;
/// Every piece of mimalloc that is as large as this is aligned to it. Where it is asked for no more, that is not looked
/// at; where it is asked for any alignment at all, it takes the long way for all that is over a kilobyte.
const ALIGNED: usize = 16;

#[global_allocator]
static ALLOCATOR: BySize = BySize;

/// Whoever gives a piece back says how large it is, and so whose it was.
struct BySize;

// SAFETY: each piece is allocated, changed and freed by the same one of two allocators, which keep what is promised here.
unsafe impl GlobalAlloc for BySize {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match way(layout) {
            // SAFETY: the size is not zero, as the caller promises, and the piece is aligned as is asked for.
            Way::Plain => unsafe { mi_malloc(layout.size()).cast() },
            // SAFETY: the caller keeps the promises of this very function.
            Way::Aligned => unsafe { MiMalloc.alloc(layout) },
            // SAFETY: as above.
            Way::System => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match way(layout) {
            // SAFETY: as with `alloc`.
            Way::Plain => unsafe { mi_zalloc(layout.size()).cast() },
            // SAFETY: as above.
            Way::Aligned => unsafe { MiMalloc.alloc_zeroed(layout) },
            // SAFETY: as above.
            Way::System => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as above; the layout is the one that it was allocated with, so it comes to where it came from.
        unsafe { if is_large(layout.size()) { System.dealloc(piece, layout) } else { MiMalloc.dealloc(piece, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (is_large(layout.size()), is_large(size)) {
            // SAFETY: as above.
            (true, true) => unsafe { System.realloc(piece, layout, size) },
            // SAFETY: as above; it is aligned before and after, and mimalloc knows it by its address.
            (false, false) if is_aligned(layout.align(), size) => unsafe { mi_realloc(piece.cast(), size).cast() },
            // SAFETY: as above.
            (false, false) => unsafe { MiMalloc.realloc(piece, layout, size) },
            // SAFETY: the caller promises that the size is none that overflows; both pieces have at least as many
            // bytes as are copied, and they are not the same.
            _ => unsafe {
                let other = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !other.is_null() {
                    std::ptr::copy_nonoverlapping(piece, other, layout.size().min(size));
                    self.dealloc(piece, layout);
                }
                other
            },
        }
    }
}

/// Where a piece comes from.
enum Way {
    /// From mimalloc, as it comes.
    Plain,
    /// From mimalloc, aligned to more than that is by itself.
    Aligned,
    System,
}

#[inline]
fn way(layout: Layout) -> Way {
    match () {
        () if is_large(layout.size()) => Way::System,
        () if is_aligned(layout.align(), layout.size()) => Way::Plain,
        () => Way::Aligned,
    }
}

/// Whether mimalloc aligns a piece of this size so without being asked.
#[inline]
fn is_aligned(align: usize, size: usize) -> bool {
    align <= ALIGNED && align <= size
}

#[inline]
fn is_large(size: usize) -> bool {
    size >= LARGE
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    use super::{ALLOCATOR, LARGE};

    /// Pieces are aligned as is asked for, whatever their size, and stay so as they grow and shrink.
    #[test]
    fn pieces_are_aligned() {
        for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
            for size in (1..600).chain([1_000, 1_112, 1_024, 1_025, 5_000, 70_000, LARGE - 1, LARGE, 2 * LARGE]) {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                for grown in [size + 1, 2 * size, size / 2 + 1] {
                    // SAFETY: no size is zero, and each piece is given back as what it is.
                    unsafe {
                        let piece = ALLOCATOR.alloc(layout);
                        let zeros = ALLOCATOR.alloc_zeroed(layout);
                        assert!(piece.addr().is_multiple_of(align) && zeros.addr().is_multiple_of(align));
                        assert!((0..size).all(|at| *zeros.add(at) == 0));
                        piece.write_bytes(7, size);
                        let piece = ALLOCATOR.realloc(piece, layout, grown);
                        assert!(piece.addr().is_multiple_of(align), "{align} {size} {grown}");
                        assert!((0..size.min(grown)).all(|at| *piece.add(at) == 7));
                        ALLOCATOR.dealloc(piece, Layout::from_size_align(grown, align).expect("a layout"));
                        ALLOCATOR.dealloc(zeros, layout);
                    }
                }
            }
        }
    }

    /// Bytes that are still there after a buffer has grown and shrunk across the border.
    #[test]
    fn a_buffer_keeps_what_it_holds_whatever_its_size() {
        let mut bytes: Vec<u8> = Vec::new();
        for at in 0..3 * super::LARGE {
            bytes.push((at % 251) as u8);
        }
        let is_whole = |bytes: &[u8]| bytes.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8);
        assert!(is_whole(&bytes));
        for length in [2 * super::LARGE, super::LARGE, super::LARGE - 1, 1_000, 10] {
            bytes.truncate(length);
            bytes.shrink_to_fit();
            assert!(is_whole(&bytes) && bytes.len() == length);
        }
        let zeros = vec![0u8; 2 * super::LARGE];
        assert!(zeros.iter().all(|byte| *byte == 0));
    }
}
