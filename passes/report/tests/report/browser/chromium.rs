//! Chromium without a window: it loads a page, runs a script on it, and prints the document.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any page takes on a slow machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(180);

/// First in the page: whatever goes wrong after it is written down.
const FIRST: &str = "
    const results = {errors: []};
    window.addEventListener('error', (event) => results.errors.push(String(event.message)));
    window.addEventListener('unhandledrejection', (event) => results.errors.push(String(event.reason)));
    for (const kind of ['error', 'warn']) console[kind] = (...words) => results.errors.push(words.join(' '));
    document.addEventListener('securitypolicyviolation', (event) => results.errors.push(`refused: ${event.blockedURI}`));
    // Made-up pointers cannot be captured.
    Element.prototype.setPointerCapture = () => {};
";

/// Last in the page: what scripts need to move the mouse and read the tooltip, and what is looked at on every page.
const LAST: &str = "
    function hover(target, x, y) {
      target.scrollIntoView({block: 'center'});
      const box = target.getBoundingClientRect();
      target.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
    }
    function tip() {
      const made = document.getElementById('tooltip');
      if (made.hidden) return null;
      const words = (tag) => [...made.querySelectorAll(tag)].map((part) => part.textContent);
      const values = words('dd');
      const facts = Object.fromEntries(words('dt').map((name, index) => [name, values[index]]));
      return {name: words('strong')[0], facts};
    }
    results.lanes = [...document.querySelectorAll('[data-lane]')].map((lane) => lane.dataset.lane);
    results.rows = Number(document.getElementById('transfers').dataset.rows);
";

/// What the script has put into `results`, after a while in which the page has painted itself again.
const FINISH: &str = "
    const picture = () => [...document.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL()).join();
    const before = picture();
    window.dispatchEvent(new Event('resize'));
    setTimeout(() => {
      results.repainted = picture() === before;
      results.fetched = performance.getEntriesByType('resource').length;
      const bytes = new TextEncoder().encode(JSON.stringify(results));
      const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
      const made = document.createElement('pre');
      made.id = 'results';
      made.textContent = `RESULTS<${text}>`;
      document.body.append(made);
    }, 1000);
";

/// Loads a page and runs a script at its end; gives back what the script has put into `results`.
pub(super) fn visit(name: &str, html: &str, script: &str) -> Value {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    let last = format!("<script>{{{LAST}\n{script}\n{FINISH}}}</script>\n</body>\n</html>");
    let page = html.replacen("<head>", &format!("<head><script>{FIRST}</script>"), 1);
    let page = page.trim_end().strip_suffix("</body>\n</html>").expect("the page ends so").to_owned() + &last;
    fs::write(folder.join("page.html"), page).expect("so can those in it");
    let printed = dump(&folder).expect("files and processes are there");
    let results = printed.split_once("RESULTS&lt;").and_then(|(_, rest)| rest.split_once("&gt;"));
    let Some((hex, _)) = results else {
        panic!("{name}: the script did not come to its end; see {}", folder.display());
    };
    let bytes: Result<Vec<u8>, _> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
    serde_json::from_slice(&bytes.expect("two digits a byte")).expect("JSON as the browser writes it")
}

/// The document after ten seconds of the page's own time, which go by as fast as it is idle.
fn dump(folder: &Path) -> io::Result<String> {
    let output = folder.join("document.html");
    let profile = folder.join("profile");
    let mut browser = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--window-size=1280,900",
            "--virtual-time-budget=10000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", folder.join("page.html").display()))
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(folder.join("stderr.txt"))?)
        .spawn()
        .unwrap_or_else(|error| panic!("chromium does not start ({error}): run tools/setup, which installs it"));
    let started = Instant::now();
    while browser.try_wait()?.is_none() {
        if started.elapsed() > PATIENCE {
            browser.kill()?;
            browser.wait()?;
            panic!("chromium was not done after {PATIENCE:?}; see {}", folder.display());
        }
        thread::sleep(Duration::from_millis(50));
    }
    // Several megabytes, and of no use once the browser has gone.
    fs::remove_dir_all(profile)?;
    fs::read_to_string(output)
}
