//! The handler of SIGBUS, and the list of maps that it protects.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Maps that may be in use at once. The handler looks at each.
const MAX_MAPS: usize = 64;

/// A map that the handler protects.
#[derive(Debug)]
pub(crate) struct Slot {
    is_claimed: AtomicBool,
    /// The address of the first byte; 0 for none.
    start: AtomicUsize,
    len: AtomicUsize,
    /// Whether zeros stand in the place of pages that are gone.
    is_damaged: AtomicBool,
}

static SLOTS: [Slot; MAX_MAPS] = [const {
    Slot {
        is_claimed: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        is_damaged: AtomicBool::new(false),
    }
}; MAX_MAPS];

/// What the handler needs: it may not ask the system or allocate memory.
struct Installed {
    page_len: usize,
    previous: libc::sigaction,
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// A free slot, if there is one.
pub(crate) fn claim() -> Option<&'static Slot> {
    SLOTS.iter().find(|slot| !slot.is_claimed.swap(true, Ordering::SeqCst))
}

impl Slot {
    /// From now on, faults at these addresses do not end the process.
    pub(crate) fn protect(&self, start: usize, len: usize) {
        self.is_damaged.store(false, Ordering::SeqCst);
        self.len.store(len, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
    }

    /// Frees the slot.
    pub(crate) fn release(&self) {
        self.start.store(0, Ordering::SeqCst);
        self.is_claimed.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::SeqCst)
    }

    /// The end of the map, if `address` is within it.
    fn end_after(&self, address: usize) -> Option<usize> {
        let start = self.start.load(Ordering::SeqCst);
        let end = start.checked_add(self.len.load(Ordering::SeqCst))?;
        // If the slot has got another map meanwhile, the length may be that one's. A fault within
        // a map proves that its own slot does not change: a thread reads there.
        let is_one_map = start == self.start.load(Ordering::SeqCst);
        (start != 0 && is_one_map && (start..end).contains(&address)).then_some(end)
    }
}

/// The number of bytes in a page.
pub(crate) fn page_len() -> usize {
    INSTALLED.get().map_or(4096, |installed| installed.page_len)
}

/// Installs the handler, once for the process.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    if INSTALLED.get().is_some() {
        return Ok(());
    }
    let _guard = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if INSTALLED.get().is_some() {
        return Ok(());
    }
    // SAFETY: the call reads a number of the system.
    let page_len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_len = usize::try_from(page_len).map_err(|_| io::Error::last_os_error())?;
    let mut previous = MaybeUninit::uninit();
    // SAFETY: without a new action, the call writes the present one.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above wrote it.
    let previous = unsafe { previous.assume_init() };
    // Zero is a value of every field.
    // SAFETY: the type has integers, and pointers that may be null.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_sigbus as *const () as usize;
    // Like the standard library's: an overflow of the stack may be what is reported.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // The handler must find what it needs from its first signal on.
    let is_first = INSTALLED.set(Installed { page_len, previous }).is_ok();
    debug_assert!(is_first, "one thread installs at a time");
    // SAFETY: `on_sigbus` has the signature that SA_SIGINFO asks for, and only does what a handler
    // may do.
    if unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the address of this thread's error number is valid.
    let error_number = unsafe { *libc::__errno_location() };
    // SAFETY: the system passes a valid description.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // A code above 0 says that the system sends the signal, and not a process by `kill`.
    if !(code > 0 && replace_pages(address)) {
        pass_on(signal, info, context, code > 0);
    }
    // SAFETY: as above. What was interrupted must find its error number.
    unsafe { *libc::__errno_location() = error_number };
}

/// Puts zeros in the place of the map's pages from `address` on; whether it is in a map of ours.
fn replace_pages(address: usize) -> bool {
    let page = address & !(page_len() - 1);
    let mut is_ours = false;
    for slot in &SLOTS {
        let Some(end) = slot.end_after(address) else { continue };
        // First the mark: whoever reads the zeros finds it.
        slot.is_damaged.store(true, Ordering::SeqCst);
        // SAFETY: the pages are those of a map of ours, whose content counts no more since the
        // mark is set. Reading goes on in pages that are there.
        let zeros = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                end - page,
                libc::PROT_READ,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        is_ours |= zeros != libc::MAP_FAILED;
    }
    is_ours
}

/// Does what would have been done without us.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, by_system: bool) {
    let Some(Installed { previous, .. }) = INSTALLED.get() else { return };
    match previous.sa_sigaction {
        libc::SIG_IGN if !by_system => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: zero is the default action. The instruction that failed fails again after the
            // return, and a signal of another process is sent again.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &default, std::ptr::null_mut());
                if !by_system {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the flag says that the handler has this signature.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag, the handler has this signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
