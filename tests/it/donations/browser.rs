//! A real browser: headless Chromium, told what to do by `chromedriver`.
//!
//! Of the WebDriver protocol (<https://www.w3.org/TR/webdriver2/>) it takes a dozen commands. The crates for it would change
//! what is tested (`thirtyfour` has serde_json keep the order of members, in the whole workspace) or are under another kind of
//! licence (what `fantoccini` is built on).

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::eventually;

/// Longer than any step takes.
const STEP: Duration = Duration::from_secs(30);
const LISTENS: &str = "was started successfully on port ";
/// The name of an element's id, section 12.1 of the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One that has seen nothing before.
pub(super) struct Browser {
    client: Client,
    session: String,
    _process: Process,
}

/// `chromedriver`, and what it starts: one process group of our own, ended when this is dropped or the test's process is gone.
struct Process {
    shell: Child,
    folder: TempDir,
}

impl Browser {
    /// `None`, and says so, where there is none.
    pub(super) async fn start() -> Option<Self> {
        if Command::new("chromedriver").arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("!! SKIPPED: no chromedriver (Debian: apt-get install chromium-driver)");
            return None;
        }
        let process = Process::start();
        let driver = format!("http://127.0.0.1:{}", process.port().await);
        let client = Client::builder().no_proxy().timeout(STEP).build().unwrap();
        let mut browser = Self { client, session: driver, _process: process };
        let told = browser.ask(Method::POST, "/session", &browser._process.wishes()).await.unwrap();
        browser.session = format!("{}/session/{}", browser.session, told["sessionId"].as_str().unwrap());
        Some(browser)
    }

    pub(super) async fn open(&self, url: &str) {
        self.ask(Method::POST, "/url", &json!({ "url": url })).await.unwrap();
    }

    pub(super) async fn url(&self) -> String {
        self.ask(Method::GET, "/url", &Value::Null).await.unwrap().as_str().unwrap().to_owned()
    }

    /// Its back button.
    pub(super) async fn back(&self) {
        self.ask(Method::POST, "/back", &json!({})).await.unwrap();
    }

    /// Its reload button.
    pub(super) async fn load_again(&self) {
        self.ask(Method::POST, "/refresh", &json!({})).await.unwrap();
    }

    /// Waits for a page of this title.
    pub(super) async fn shows(&self, title: &str) {
        eventually(async || self.ask(Method::GET, "/title", &Value::Null).await.is_ok_and(|shown| shown == title))
            .await;
    }

    pub(super) async fn value_of(&self, css: &str) -> String {
        let value = format!("/element/{}/property/value", self.find(css).await);
        self.ask(Method::GET, &value, &Value::Null).await.unwrap().as_str().unwrap().to_owned()
    }

    pub(super) async fn fill_in(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.ask(Method::POST, &format!("/element/{element}/clear"), &json!({})).await.unwrap();
        self.ask(Method::POST, &format!("/element/{element}/value"), &json!({ "text": text })).await.unwrap();
    }

    pub(super) async fn click(&self, css: &str) {
        let click = format!("/element/{}/click", self.find(css).await);
        self.ask(Method::POST, &click, &json!({})).await.unwrap();
    }

    /// As fast as a mouse can be.
    pub(super) async fn double_click(&self, css: &str) {
        let to =
            json!({"type": "pointerMove", "duration": 0, "origin": {ELEMENT: self.find(css).await}, "x": 0, "y": 0});
        let [down, up] = ["pointerDown", "pointerUp"].map(|what| json!({"type": what, "button": 0}));
        let mouse = json!({"type": "pointer", "id": "mouse", "actions": [to, down, up, down, up]});
        self.ask(Method::POST, "/actions", &json!({ "actions": [mouse] })).await.unwrap();
    }

    /// Runs it in the page, and does not wait for what it has set going.
    pub(super) async fn run(&self, script: &str) {
        self.ask(Method::POST, "/execute/sync", &json!({"script": script, "args": []})).await.unwrap();
    }

    pub(super) async fn quit(self) {
        self.ask(Method::DELETE, "", &Value::Null).await.unwrap();
    }

    async fn find(&self, css: &str) -> String {
        let wanted = json!({"using": "css selector", "value": css});
        let found = self.ask(Method::POST, "/element", &wanted).await.unwrap();
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    async fn ask(&self, method: Method, command: &str, with: &Value) -> Result<Value, String> {
        let mut request = self.client.request(method, format!("{}{command}", self.session));
        if !with.is_null() {
            request = request.json(with);
        }
        let response = request.send().await.map_err(|error| error.to_string())?;
        let well = response.status().is_success();
        let mut told: Value = response.json().await.map_err(|error| error.to_string())?;
        if well { Ok(told["value"].take()) } else { Err(format!("{command}: {told}")) }
    }
}

impl Process {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let shell = Command::new("sh")
            .args(["-c", "chromedriver --port=0 >log 2>&1 & read -r _; kill -KILL 0"]) // 0: all of the group
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { shell, folder }
    }

    /// Where it listens, a free port that it chose.
    async fn port(&self) -> u16 {
        let port = || {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            log.split_once(LISTENS)?.1.split_once('.')?.0.parse().ok()
        };
        eventually(async || port().is_some()).await;
        port().unwrap()
    }

    /// Each command waits for the page that is being loaded, if there is one.
    fn wishes(&self) -> Value {
        let profile = format!("--user-data-dir={}", self.folder.path().join("profile").display());
        let arguments = [
            "--headless=new",
            "--no-sandbox", // which root cannot have
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            // It talks to the server that is tested, and to nobody else.
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--disable-quic",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &profile,
        ];
        json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments},
        }}})
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
