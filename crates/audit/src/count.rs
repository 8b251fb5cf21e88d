//! Counts the instructions of one object file, by function, in parallel.

use std::{io, ops::Range, sync::Mutex};

use rayon::prelude::*;

use crate::{
    Arch,
    arch::{Token, WIDTHS, widest},
    functions::{Function, cuts},
    image::Image,
    pattern::{Finder, Match, Patterns},
    source::{Source, Window},
    sweep::{self, Cut},
};

/// Counts of the instructions of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    /// Instructions that name a vector register of any kind.
    pub(crate) vector: u64,
    /// Instructions that name a register of each kind. An instruction may name several kinds.
    pub(crate) widths: [u64; WIDTHS],
    /// Steps of the decoder that are not an instruction.
    pub(crate) bad: u64,
}

impl Counts {
    fn add(&mut self, token: Token) {
        if token.bad {
            self.bad += 1;
            return;
        }
        self.instructions += 1;
        if token.widths != 0 {
            self.vector += 1;
            for (i, count) in self.widths.iter_mut().enumerate() {
                *count += u64::from(token.widths >> i & 1);
            }
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.vector += other.vector;
        self.bad += other.bad;
        for (sum, count) in self.widths.iter_mut().zip(other.widths) {
            *sum += count;
        }
    }
}

/// How often each mnemonic occurs, by the widest vector register that it names.
pub(crate) type Mnemonics = Vec<[u64; WIDTHS]>;

/// The counts of an object file's code.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) total: Counts,
    /// The counts of each function.
    pub(crate) functions: Vec<Counts>,
    pub(crate) mnemonics: Mnemonics,
    /// The places of instruction patterns, by region.
    pub(crate) matches: Vec<(u32, Match)>,
}

/// A piece of code for one thread.
struct Task {
    region: u32,
    range: Range<u64>,
    functions: Range<usize>,
}

/// The minimum length of a task in bytes, if there are functions to cut at.
const MIN_TASK_LEN: u64 = 256 << 10;

/// Counts all code of `image`.
pub(crate) fn count(
    source: &dyn Source,
    image: &Image<'_>,
    functions: &[Function],
    patterns: &Patterns,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Counted> {
    let cuts: Vec<_> = (0..image.code.len() as u32).map(|region| cuts(image, region)).collect();
    let tasks = tasks(image, functions);
    let mnemonics = Mutex::new(Mnemonics::new());
    let counted: io::Result<Vec<Counted>> = tasks
        .par_iter()
        .map(|task| {
            let mut worker = Worker::new(task, functions, patterns);
            worker.run(source, image, &cuts[task.region as usize])?;
            progress(task.range.end - task.range.start);
            add_mnemonics(
                &mut mnemonics.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
                &worker.mnemonics,
            );
            Ok(worker.finish())
        })
        .collect();
    let mut all = Counted { functions: Vec::with_capacity(functions.len()), ..Counted::default() };
    for part in counted? {
        all.total += part.total;
        all.functions.extend(part.functions);
        all.matches.extend(part.matches);
    }
    all.mnemonics = mnemonics.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(all)
}

pub(crate) fn add_mnemonics(all: &mut Mnemonics, more: &Mnemonics) {
    all.resize(all.len().max(more.len()), [0; WIDTHS]);
    for (sum, row) in all.iter_mut().zip(more) {
        sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
}

/// Cuts the code into tasks, at the starts of functions. Every function is in exactly one task; the
/// order is kept.
fn tasks(image: &Image<'_>, functions: &[Function]) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut next = 0;
    for (region, code) in image.code.iter().enumerate() {
        let region = region as u32;
        let size = code.range.end - code.range.start;
        let mut task = Task { region, range: 0..0, functions: next..next };
        while let Some(function) = functions.get(next).filter(|function| function.region == region) {
            if function.start - task.range.start >= MIN_TASK_LEN {
                task.range.end = function.start;
                task.functions.end = next;
                let rest = Task { region, range: function.start..0, functions: next..next };
                tasks.push(std::mem::replace(&mut task, rest));
            }
            next += 1;
        }
        task.range.end = size;
        task.functions.end = next;
        tasks.push(task);
    }
    tasks
}

struct Worker<'a> {
    task: &'a Task,
    functions: &'a [Function],
    finder: Finder<'a>,
    mnemonics: Mnemonics,
    /// The counts of all finished functions.
    done: Vec<Counts>,
    total: Counts,
    current: Counts,
    /// The end of `current`: the end of a function, or the start of the function after a gap.
    until: u64,
    in_function: bool,
}

impl<'a> Worker<'a> {
    fn new(task: &'a Task, functions: &'a [Function], patterns: &'a Patterns) -> Self {
        let functions = &functions[task.functions.clone()];
        Self {
            task,
            functions,
            finder: Finder::new(patterns),
            mnemonics: Mnemonics::new(),
            done: Vec::with_capacity(functions.len()),
            total: Counts::default(),
            current: Counts::default(),
            until: functions.first().map_or(task.range.end, |function| function.start),
            in_function: false,
        }
    }

    fn run(&mut self, source: &dyn Source, image: &Image<'_>, cuts: &[Cut]) -> io::Result<()> {
        let Range { start, end } = self.task.range;
        let from = cuts.partition_point(|cut| cut.offset < start);
        let to = cuts.partition_point(|cut| cut.offset < end);
        let file = image.code[self.task.region as usize].range.start;
        let mut window = Window::new(source, file + start..file + end);
        match image.arch {
            Arch::X86_64 => {
                sweep::x86_64(&mut window, (start, end), &cuts[from..to], |at, token| self.add(at, token))
            }
            Arch::Aarch64 => {
                sweep::aarch64(&mut window, (start, end), &cuts[from..to], |at, token| self.add(at, token))
            }
        }
    }

    #[inline]
    fn add(&mut self, offset: u64, token: Token) {
        while offset >= self.until && self.step() {}
        if token.widths != 0 {
            self.finder.add(self.current.instructions, offset, token);
            let row = usize::from(token.op);
            if row >= self.mnemonics.len() {
                self.mnemonics.resize(row + 1, [0; WIDTHS]);
            }
            self.mnemonics[row][widest(token.widths)] += 1;
        }
        self.current.add(token);
    }

    /// Continues with the next function, or with the gap before it. Returns whether there is one.
    fn step(&mut self) -> bool {
        self.finder.look();
        let counts = std::mem::take(&mut self.current);
        self.total += counts;
        if self.in_function {
            self.done.push(counts);
        }
        let next = self.functions.get(self.done.len());
        self.in_function = next.is_some_and(|next| next.start <= self.until);
        let before = self.until;
        self.until = match next {
            Some(next) if self.in_function => next.end,
            Some(next) => next.start,
            None => self.task.range.end,
        };
        self.until > before || next.is_some()
    }

    fn finish(mut self) -> Counted {
        while self.done.len() < self.functions.len() {
            self.step();
        }
        self.step();
        let region = self.task.region;
        Counted {
            total: self.total,
            functions: self.done,
            mnemonics: Mnemonics::new(),
            matches: self.finder.found.into_iter().map(|found| (region, found)).collect(),
        }
    }
}
