//! What can go wrong between a program and Postgres, or a pooler before it: a wire that is slow, or is cut at a moment that
//! the test chooses. It knows of the protocol where a message ends and which reply ends a request, no more; `sslmode=disable`.

mod wire;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// All its connections end when this is dropped.
pub(crate) struct Proxy {
    addr: SocketAddr,
    told: Told,
    connections: Arc<Mutex<JoinSet<()>>>,
    listener: JoinHandle<()>,
}

/// Which side of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The message does not arrive.
    Before,
    /// It arrives with the rest of its request, and the server has answered; the answer does not arrive.
    After,
}

/// What a proxy did since it started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) connections: usize,
    pub(crate) refused: usize,
    /// By [`Proxy::cut`].
    pub(crate) cut: usize,
    /// By [`Proxy::cut_next`].
    pub(crate) before: usize,
    pub(crate) after: usize,
}

/// What the test said, and what has come of it.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    refuses: bool,
    next: Option<(Cut, Vec<u8>)>,
    slow_requests: Duration,
    slow_replies: Duration,
    counts: Counts,
}

impl Told {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// How to cut this message, if it is the one.
    fn cuts(&self, message: &[u8]) -> Option<Cut> {
        self.state().next.take_if(|(_, part)| contains(message, part)).map(|(cut, _)| cut)
    }
}

fn contains(message: &[u8], part: &[u8]) -> bool {
    part.is_empty() || message.windows(part.len()).any(|window| window == part)
}

impl Proxy {
    /// In front of this server, on a port of its own. Connects to it once per client.
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (told, connections) = (Told::default(), Arc::<Mutex<JoinSet<()>>>::default());
        let listener = tokio::spawn(accept(listener, server, told.clone(), Arc::clone(&connections)));
        Self { addr, told, connections, listener }
    }

    /// In front of the server that this URL names.
    pub(crate) async fn before(url: &str) -> Self {
        Self::start(authority(url).parse().unwrap()).await
    }

    /// This URL of the server, by way of the proxy.
    pub(crate) fn url(&self, of: &str) -> String {
        of.replacen(authority(of), &self.addr.to_string(), 1)
    }

    /// Ends all connections; when it returns, none is left. The clients see a reset, and so does the server.
    pub(crate) async fn cut(&self) {
        let mut connections = std::mem::take(&mut *self.connections.lock().unwrap());
        while connections.try_join_next().is_some() {} // those that are over
        self.told.state().counts.cut += connections.len();
        connections.shutdown().await;
    }

    /// Ends one connection at the next message of any client that contains these bytes, at the next message at all if there
    /// are none. Once; the last word counts. A prepared statement's text is in the message that prepares it, which is a
    /// request of its own; its arguments are in each that executes it.
    pub(crate) fn cut_next(&self, cut: Cut, containing: Option<&[u8]>) {
        self.told.state().next = Some((cut, containing.unwrap_or_default().to_vec()));
    }

    /// From now on new connections are closed at once, or are not any more. Those that are there go on.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.told.state().refuses = refuses;
    }

    /// From now on each way takes this long.
    pub(crate) fn slow(&self, by: Duration) {
        self.slow_requests(by);
        self.slow_replies(by);
    }

    pub(crate) fn slow_requests(&self, by: Duration) {
        self.told.state().slow_requests = by;
    }

    pub(crate) fn slow_replies(&self, by: Duration) {
        self.told.state().slow_replies = by;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.told.state().counts
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.connections.lock().unwrap().abort_all();
    }
}

/// Host and port.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").unwrap().1;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    rest[..end].rsplit('@').next().unwrap()
}

async fn accept(listener: TcpListener, server: SocketAddr, told: Told, connections: Arc<Mutex<JoinSet<()>>>) {
    while let Ok((client, _)) = listener.accept().await {
        if told.state().refuses {
            told.state().counts.refused += 1;
            continue;
        }
        told.state().counts.connections += 1;
        let told = told.clone();
        let mut connections = connections.lock().unwrap();
        while connections.try_join_next().is_some() {} // those that are over
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            wire::carry(client, server, &told).await;
        });
    }
}

mod on_postgres {
    use std::time::{Duration, Instant};

    use sqlx::{AssertSqlSafe, Connection, PgConnection};

    use super::{Counts, Cut, Proxy};
    use crate::support::{eventually, server};

    async fn connect(proxy: &Proxy) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect(&proxy.url(server::shared())).await
    }

    async fn direct() -> PgConnection {
        PgConnection::connect(server::shared()).await.unwrap()
    }

    async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop)
    }

    async fn count(sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut direct().await).await.unwrap()
    }

    fn unique() -> String {
        format!("proxied_{}", fastrand::u64(..))
    }

    #[tokio::test]
    async fn a_wire_is_cut_on_the_side_of_a_commit_that_the_test_says() {
        let (proxy, table) = (Proxy::before(server::shared()).await, unique());
        let rows = format!("select count(*) from {table}");
        run(&mut direct().await, &format!("create table {table} (n int)")).await.unwrap();
        let insert = async || {
            let mut connection = connect(&proxy).await.unwrap();
            run(&mut connection, &format!("begin; insert into {table} values (1)")).await.unwrap();
            run(&mut connection, "COMMIT").await
        };
        proxy.cut_next(Cut::Before, Some(b"COMMIT"));
        insert().await.unwrap_err();
        assert_eq!((count(&rows).await, proxy.counts().before), (0, 1));

        proxy.cut_next(Cut::After, Some(b"COMMIT"));
        insert().await.unwrap_err();
        assert_eq!((count(&rows).await, proxy.counts().after), (1, 1), "it is there when the wire is cut");

        insert().await.unwrap();
        assert_eq!(proxy.counts(), Counts { connections: 3, before: 1, after: 1, ..Counts::default() });
        run(&mut direct().await, &format!("drop table {table}")).await.unwrap();
    }

    #[tokio::test]
    async fn a_prepared_statement_is_cut_by_its_arguments() {
        let (proxy, table) = (Proxy::before(server::shared()).await, unique());
        run(&mut direct().await, &format!("create table {table} (name text)")).await.unwrap();
        let mut connection = connect(&proxy).await.unwrap();
        let insert = format!("insert into {table} values ($1)");
        let mut insert = async |name: &str| {
            sqlx::query(AssertSqlSafe(insert.clone())).bind(name.to_owned()).execute(&mut connection).await
        };
        insert("first").await.unwrap();
        proxy.cut_next(Cut::After, Some(b"third"));
        insert("second").await.unwrap();
        insert("third").await.unwrap_err();
        insert("fourth").await.unwrap_err();
        assert_eq!((count(&format!("select count(*) from {table}")).await, proxy.counts().after), (3, 1));
        run(&mut direct().await, &format!("drop table {table}")).await.unwrap();
    }

    #[tokio::test]
    async fn all_connections_are_cut_and_new_ones_refused() {
        let (proxy, name) = (Proxy::before(server::shared()).await, unique());
        let mut connections = [connect(&proxy).await.unwrap(), connect(&proxy).await.unwrap()];
        for connection in &mut connections {
            run(connection, &format!("set application_name = '{name}'")).await.unwrap();
        }
        proxy.refuse(true);
        connections[0].ping().await.unwrap();
        connect(&proxy).await.map(drop).unwrap_err();
        proxy.cut().await;
        for connection in &mut connections {
            connection.ping().await.unwrap_err();
        }
        proxy.refuse(false);
        let mut again = connect(&proxy).await.unwrap();
        assert_eq!(proxy.counts(), Counts { connections: 3, refused: 1, cut: 2, ..Counts::default() });
        let sessions = format!("select count(*) from pg_stat_activity where application_name = '{name}'");
        eventually(async || count(&sessions).await == 0).await;
        again.ping().await.unwrap();
        drop(proxy);
        again.ping().await.unwrap_err();
    }

    #[tokio::test]
    async fn a_slow_wire_takes_its_time_each_way() {
        let proxy = Proxy::before(server::shared()).await;
        let mut connection = connect(&proxy).await.unwrap();
        proxy.slow(Duration::from_millis(20));
        let began = Instant::now();
        connection.ping().await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(40));
    }
}
