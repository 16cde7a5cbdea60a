//! What this thread logs. A `#[tokio::test]` runs server, bodies and client on its one thread, so that is all of a test.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

/// Collects until dropped.
pub(crate) struct Logs {
    lines: Lines,
    _until_dropped: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    lines: Vec<Line>,
    spans: Vec<Span>,
    /// Where an open span stands among them.
    open: HashMap<u64, usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) target: String,
    pub(crate) text: String,
    /// The spans around it, the innermost first.
    pub(crate) within: Vec<&'static str>,
}

/// A span with what was recorded, all of it, in the order of the fields.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) target: String,
    pub(crate) fields: BTreeMap<&'static str, String>,
    pub(crate) closed: bool,
}

impl Logs {
    pub(crate) fn collect() -> Self {
        let lines = Lines::default();
        let until_dropped = tracing_subscriber::registry().with(lines.clone()).set_default();
        Self { lines, _until_dropped: until_dropped }
    }

    /// Every line of ours and of the database driver, whatever its level; not those of the HTTP client and server.
    pub(crate) fn all(&self) -> Vec<Line> {
        let ours = |line: &&Line| line.target.starts_with("idem") || line.target.starts_with("sqlx");
        self.lines.0.lock().unwrap().lines.iter().filter(ours).cloned().collect()
    }

    /// What an operator would be woken by.
    pub(crate) fn alarming(&self) -> Vec<Line> {
        self.all().into_iter().filter(|line| line.level <= Level::WARN).collect()
    }

    /// The spans of ours, in the order in which they were opened.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let spans = &self.lines.0.lock().unwrap().spans;
        spans.iter().filter(|span| span.target.starts_with("idem")).cloned().collect()
    }
}

impl Lines {
    fn keep(&self, metadata: &tracing::Metadata<'_>, within: Vec<&'static str>, record: impl FnOnce(&mut Text)) {
        let mut text = Text(metadata.name().to_owned());
        record(&mut text);
        let line = Line { level: *metadata.level(), target: metadata.target().to_owned(), text: text.0, within };
        self.0.lock().unwrap().lines.push(line);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let within = context.event_scope(event).into_iter().flatten().map(|span| span.name()).collect();
        self.keep(event.metadata(), within, |text| event.record(text));
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        self.keep(attributes.metadata(), Vec::new(), |text| attributes.record(text));
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let target = attributes.metadata().target().to_owned();
        let mut all = self.0.lock().unwrap();
        let place = all.spans.len();
        all.open.insert(id.into_u64(), place);
        all.spans.push(Span { target, fields: fields.0, closed: false });
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let metadata = context.metadata(id).unwrap();
        self.keep(metadata, Vec::new(), |text| values.record(text));
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut all = self.0.lock().unwrap();
        let place = all.open[&id.into_u64()];
        for (name, value) in fields.0 {
            let before = all.spans[place].fields.insert(name, value);
            assert!(before.is_none(), "{name} is recorded twice, and a subscriber would show both");
        }
    }

    fn on_close(&self, id: span::Id, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        if let Some(place) = all.open.remove(&id.into_u64()) {
            all.spans[place].closed = true;
        }
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

struct Text(String);

impl Visit for Text {
    /// With its sources, as the usual subscribers print it.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        write!(self.0, " {}={value}", field.name()).unwrap();
        let mut source = value.source();
        while let Some(error) = source {
            write!(self.0, ": {error}").unwrap();
            source = error.source();
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
