//! What this thread logs. A `#[tokio::test]` runs server, bodies and client on its one thread, so that is all of a test.

use std::{
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
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// Collects until dropped.
pub(crate) struct Logs {
    lines: Lines,
    _until_dropped: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) target: String,
    pub(crate) text: String,
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
        self.lines.0.lock().unwrap().iter().filter(ours).cloned().collect()
    }

    /// What an operator would be woken by.
    pub(crate) fn alarming(&self) -> Vec<Line> {
        self.all().into_iter().filter(|line| line.level <= Level::WARN).collect()
    }
}

impl Lines {
    fn keep(&self, metadata: &tracing::Metadata<'_>, record: impl FnOnce(&mut Text)) {
        let mut text = Text(metadata.name().to_owned());
        record(&mut text);
        let line = Line { level: *metadata.level(), target: metadata.target().to_owned(), text: text.0 };
        self.0.lock().unwrap().push(line);
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.keep(event.metadata(), |text| event.record(text));
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
        self.keep(attributes.metadata(), |text| attributes.record(text));
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
