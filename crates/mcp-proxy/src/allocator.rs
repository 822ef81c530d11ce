//! Where memory comes from. A call takes and gives back some twenty small pieces, which is what mimalloc is made for. A
//! large buffer is the system's: it grows in place, and is gone as soon as it is given back.
#![expect(unsafe_code, reason = "an allocator is a promise that the compiler cannot check")]

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// From here on a piece is large.
const LARGE: usize = 128 * 1024;

#[global_allocator]
static ALLOCATOR: BySize = BySize;

/// Whoever gives a piece back says how large it is, and so whose it was.
struct BySize;

// SAFETY: each piece is allocated, changed and freed by the same one of two allocators, which keep what is promised here.
unsafe impl GlobalAlloc for BySize {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of this very function.
        unsafe { if is_large(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { if is_large(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
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

#[inline]
fn is_large(size: usize) -> bool {
    size >= LARGE
}

#[cfg(test)]
mod tests {
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
