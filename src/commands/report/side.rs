//! A recording that a page shows, or that it is compared with.

use analyzer::annotate::{Annotation, LoopTable, Query, SourceTexts, annotate};
use analyzer::calls::Calls;
use analyzer::counting::{Detail, GroupBy, TaskGroups};
use analyzer::mix::{InnermostLoops, Places, Tasks, Taxonomies};
use analyzer::{Analysis, Origin};
use formats::phase_mark;
use perfdata::RecordType;

use super::Args;
use super::composed::{Composed, MOST_RUNS, TASKS, TaskTimes, task_times, too_many_runs};
use super::data::Data;
use crate::commands::export::contexts::{describe, without_branches};
use crate::input::{Input, require_samples};
use crate::output::{self, Head, Precision, count};

/// Functions whose code is in the page, where no number was asked for, and their instructions together: more would make it large.
const MOST_FUNCTIONS: usize = 500;
const MOST_INSTRUCTIONS: usize = 100_000;
/// Threads with samples, of so many of which executions are told apart.
const MOST_THREADS: u64 = 1000;

/// Calling contexts, with what was inlined if lines of the source are read, and how far they reach; or why there are none.
pub type FoundContexts = Result<(Calls, Vec<String>), String>;

/// What is known of it.
pub struct Side<'a> {
    pub title: String,
    pub analysis: Analysis,
    annotation: Annotation,
    head: Head,
    input: &'a Input<'a>,
}

impl<'a> Side<'a> {
    /// Analyses it in such detail, with the code that is shown.
    pub fn of(args: &Args, input: &'a Input<'a>, title: String, detail: Detail) -> anyhow::Result<Self> {
        let mut analysis = input.analyze_in_detail(GroupBy::default(), detail)?;
        require_samples(&analysis)?;
        let is_chosen = args.after.is_some() && args.input.analysis.chooses();
        if is_chosen && analysis.origin == Origin::Recording {
            analysis.count_flow_by_choice();
        }
        let top = match args.top {
            None => MOST_FUNCTIONS,
            Some(0) => usize::MAX,
            Some(top) => top,
        };
        let threads = args.input.analysis.threads();
        let most_instructions = args.top.is_none().then_some(MOST_INSTRUCTIONS);
        let source = !args.no_source;
        let annotation =
            annotate(&analysis, &Query { functions: None, among: None, top, most_instructions, source, threads });
        annotation.notes.iter().for_each(output::say);
        let mut head = Head::of(&analysis);
        head.precision = Precision::of(&analysis, annotation.ranked.iter().map(|of| (of.share, of.share_interval)));
        Ok(Side { title, analysis, annotation, head, input })
    }

    /// What was said of it.
    pub fn said(&self) -> Vec<String> {
        self.annotation.notes.clone()
    }

    /// What its mix is added up from.
    pub fn composed(&self, args: &Args, taxonomies: &Taxonomies) -> anyhow::Result<Composed> {
        let mut composed = Composed::of(&self.analysis, &self.annotation.ranked, taxonomies);
        if !args.no_source {
            let places = Places::of(&self.analysis, args.input.analysis.threads());
            composed.said = places.notes.iter().filter(|note| !self.annotation.notes.contains(note)).cloned().collect();
            composed.said.iter().for_each(output::say);
            composed.add_places(&self.analysis, &places);
        }
        let loops = match args.no_source {
            true => LoopTable::without_lines(&self.analysis),
            false => LoopTable::of(&self.analysis, args.input.analysis.threads()),
        };
        composed.add_loops(&self.analysis, &InnermostLoops::of(&self.analysis, &loops));
        match self.tasks()? {
            Ok(tasks) => composed.add_tasks(&self.analysis, &tasks, args.after.is_some()),
            Err(why) => composed.without.push(format!("{TASKS} are no keys: {why}")),
        }
        Ok(composed)
    }

    /// Who executed what, with its time, or why that is not in the page. The recording is analysed once more for it: where there are many threads, counts by
    /// thread take much memory.
    fn tasks(&self) -> anyhow::Result<Result<(Tasks, TaskTimes), String>> {
        match self.analysis.origin {
            Origin::Exact => return Ok(Err("exact counts do not tell them apart".to_owned())),
            Origin::Flow => return Ok(Err("a file of `hbbp merge` does not tell them apart".to_owned())),
            Origin::Recording => {}
        }
        let of_type = |kind| self.analysis.summary.records.by_type.get(&kind).copied().unwrap_or(0);
        let tasks = of_type(RecordType::COMM).saturating_add(of_type(RecordType::FORK));
        if tasks <= 1 && of_type(RecordType(phase_mark::RECORD_TYPE)) == 0 {
            return Ok(Err("one thread ran, and no phase was marked".to_owned()));
        }
        if self.analysis.summary.records.threads > MOST_THREADS {
            let most = count(MOST_THREADS as f64);
            return Ok(Err(format!("more than {most} threads have samples; `hbbp mix --rows thread` has them")));
        }
        let least = self.analysis.summary.least_by_process;
        if least > MOST_RUNS as u64 {
            return Ok(Err(format!("more than {}", too_many_runs(MOST_RUNS))));
        }
        let by = GroupBy { tasks: TaskGroups::Thread, phases: true, cgroups: true };
        let analysis = self.input.analyze_again(by, Detail::Blocks)?;
        Ok(Ok((Tasks::of(&analysis), task_times(&analysis))))
    }

    /// What a page shows of it.
    pub fn data<'b>(&'b self, args: &Args, composed: Composed) -> anyhow::Result<Data<'b>> {
        let texts = SourceTexts::below(args.input.analysis.search().symfs);
        let features = self.input.features()?;
        Ok(Data::of(&self.analysis, &self.annotation, &self.head, composed, texts).named(self.title.clone(), features))
    }

    /// Its calling contexts as they were found, or why there are none. They are there once.
    pub fn take_calls(&mut self) -> anyhow::Result<Result<Calls, String>> {
        let calls = self.analysis.calls.take().filter(|calls| calls.walks > 0 && calls.instructions > 0.0);
        if let Some(calls) = calls {
            return Ok(Ok(calls));
        }
        Ok(Err(match self.analysis.origin {
            Origin::Exact => "exact counts do not say who called whom".to_owned(),
            Origin::Flow => {
                "a file of `hbbp merge` does not keep who called whom: make the page of a recording".to_owned()
            }
            Origin::Recording => without_branches(self.input.recording()?),
        }))
    }

    /// What `make` makes while another thread looks for what was inlined into the functions of these contexts of its own.
    pub fn beside_contexts<T>(
        &self,
        args: &Args,
        calls: Result<Calls, String>,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(FoundContexts, T)> {
        let (analysis, threads, no_source) = (&self.analysis, args.input.analysis.threads(), args.no_source);
        let contexts = move || {
            let calls = calls?;
            let mut notes = describe(&calls);
            if no_source {
                return Ok((calls, notes));
            }
            let (calls, more) = calls.with_inlined(analysis, threads);
            notes.extend(more);
            Ok((calls, notes))
        };
        if threads <= 1 {
            return Ok((contexts(), make()?));
        }
        std::thread::scope(|scope| {
            let contexts = scope.spawn(contexts);
            let made = make();
            Ok((contexts.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), made?))
        })
    }
}
