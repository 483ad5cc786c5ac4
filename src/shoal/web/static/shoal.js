// What the page does with a script; without one, every form works by its button.
"use strict";
document.documentElement.classList.add("script");
const keysOff = "shoal-keys-off"; // only this setting is stored, never a value
const waiting = []; // forms that are sent, one after another
const words = document.body.dataset; // what the script says, in the page's language
let sends = 0,
  leaving = null,
  showing = null,
  at = "",
  lastTold = 0;

// What may have the focus, in order; and what somebody has unfolded.
const controls = () => [
  ...document.querySelectorAll(
    "a, button, input, select, textarea, summary, [data-tree] tbody tr, pre[tabindex]",
  ),
];
const isChoice = (field) => /radio|checkbox/.test(field.type);
const nameOf = (control) =>
  control.id ||
  [
    control.closest("form")?.id,
    control.name,
    control.getAttribute("href"),
    !control.name
      ? control.textContent
      : isChoice(control) || control.type === "submit"
        ? control.value
        : "",
  ].join(" ");
const isThere = (element) => element && element.checkVisibility?.() !== false && !element.disabled;
const folds = () => [...document.querySelectorAll("details > summary")];

// Fields that somebody has typed into and that are not saved: no answer to another form loses them.
const isChanged = (field) =>
  field.options
    ? field.selectedIndex !==
      Math.max(
        [...field.options].findIndex((option) => option.defaultSelected),
        0,
      )
    : isChoice(field)
      ? field.checked !== field.defaultChecked
      : field.value !== field.defaultValue;
const changed = (place) =>
  [...place.querySelectorAll(":is(input:not([type=hidden]), textarea, select)[name]")].filter(
    isChanged,
  );
const unsaved = () =>
  changed(document.querySelector("main")).filter(
    (field) => field.form?.method === "post" && !field.form.matches("[data-auto], [data-look]"),
  );
addEventListener("beforeunload", (event) => {
  if (unsaved().length) event.preventDefault();
});
const isSent = (field, sent) =>
  field.form?.id === sent.id &&
  sent.data.getAll(field.name).includes(field.value) === (!isChoice(field) || field.checked);

function keep(typed) {
  const now = new Map(controls().map((one) => [nameOf(one), one]));
  for (const field of typed) {
    const own = now.get(nameOf(field));
    if (!own) continue;
    if (isChoice(field)) own.checked = field.checked;
    else if (!own.options || [...own.options].some((option) => option.value === field.value))
      own.value = field.value;
  }
}

// A form is sent and the answer takes the page's place where it has changed; the focus stays.
async function show(response, next, sent = []) {
  const refusal = next && next.body.dataset.screen === "problem" && next.getElementById("error");
  if (refusal) {
    // above what was typed, which stays; a control that saves by itself goes back
    const form = document.getElementById(sent.at(-1)?.id);
    [response, next] = await read(location.href);
    if (next) next.getElementById("status").after(refusal);
    if (!form?.dataset.auto) sent = sent.slice(0, -1);
  }
  if (!next) return;
  const hadArrived = document.querySelector("[data-arrival]"),
    hadShut = document.querySelector("[data-opens]:disabled") !== null,
    inTree =
      document.activeElement?.closest("[data-tree]") &&
      (document.querySelector("tr.chosen[id]")?.id || "node-0");
  // who has just come into a field of another form is about to type there
  const was = document.activeElement,
    focused = was?.id,
    form = was?.closest("form")?.id,
    wasInside = was?.closest("main"),
    place = controls().indexOf(was),
    open = folds().map((fold) => fold.parentElement.open && fold.textContent),
    top = scrollY,
    isSame = next.body.dataset.screen === document.body.dataset.screen;
  const typed = isSame
      ? changed(document.querySelector("main")).filter(
          (field) => !sent.some((one) => isSent(field, one)),
        )
      : [],
    isTyping =
      typed.includes(was) ||
      (isSame && was?.selectionStart != null && was.form?.id !== sent.at(-1)?.id),
    column = was?.closest("form")?.querySelector("[name=column]")?.value,
    caret = isTyping && was.selectionStart !== null && [was.selectionStart, was.selectionEnd];
  const name = was && nameOf(was),
    followers = controls()
      .slice(place + 1)
      .map(nameOf),
    told = document.getElementById("status");
  document.title = next.title;
  document.body.dataset.screen = next.body.dataset.screen;
  document.body.toggleAttribute("data-waits", next.body.hasAttribute("data-waits"));
  for (const part of ["header.top", "nav.steps", "main", "aside.recipe"]) {
    document.querySelector(part)?.replaceWith(document.importNode(next.querySelector(part), true));
  }
  // a recent notice stays, even if another answer comes after it
  const status = document.getElementById("status");
  if (status.children.length) lastTold = Date.now();
  else if (Date.now() - lastTold < 5000) {
    status.className = told.className;
    status.append(...told.children);
  }
  // a page that a form got without being led elsewhere has no address of its own
  if (response.redirected && response.url !== location.href)
    history[!isSame ? "pushState" : "replaceState"](null, "", response.url);
  const error = document.getElementById("error");
  if (isSame)
    folds().forEach((fold, number) => {
      if (open[number] === fold.textContent) fold.parentElement.open = true;
    });
  keep(typed);
  showSaved();
  // what somebody types into, what has arrived or the form has enabled, the same control, or another
  // one of its form; if the control is gone, whatever stands in its place
  const there = isSame && controls()[place],
    now = new Map(
      controls()
        .map((one) => [nameOf(one), one])
        .reverse(),
    );
  const same = there && nameOf(there) === name ? there : isTyping ? now.get(name) : null;
  const arrived = hadArrived ? null : document.querySelector("[data-arrival]"),
    opened = hadShut && document.querySelector("[data-opens]:enabled"),
    row = inTree && document.getElementById(inTree);
  const targets = [
    error,
    isTyping && same,
    arrived,
    opened,
    focused && document.getElementById(focused),
    same,
    form && document.getElementById(form)?.querySelector("button"),
    column && document.getElementById(`role-${column}`),
    row,
  ];
  const target = isSame || error ? targets.find(isThere) : null,
    heir = isSame && wasInside && followers.map((name) => now.get(name)).find(isThere);
  if (target) {
    target.focus({ preventScroll: target !== error && target !== arrived });
    if (!isTyping) target.select?.();
    else if (caret && target === same) target.setSelectionRange(...caret);
  } else if (isSame && wasInside)
    (heir?.closest("main") ? heir : document.getElementById("main")).focus({ preventScroll: true });
  else if (!isSame) {
    scrollTo(0, 0);
    document.getElementById("main").focus({ preventScroll: true });
  }
  if (isSame && !error && target !== arrived) scrollTo(0, top);
  begin();
}

async function read(address, asked) {
  const response = await fetch(address, { headers: { accept: "text/html" }, ...asked });
  const isPage = response.headers.get("content-type")?.startsWith("text/html"),
    text = await response.text();
  if (!isPage) say(text);
  return [response, isPage && new DOMParser().parseFromString(text, "text/html")];
}

// A form that waited is sent on the policy of the page that came meanwhile.
function rebase(data, page) {
  for (const name of ["base", "release_base"]) {
    const base = page.querySelector(`[name=${name}]`);
    if (base && data.has(name)) data.set(name, base.value);
  }
}

// Each form is sent when the one before has been answered, on the policy that it left. Only the last
// answer is shown, or the first that refuses: what was to follow is not sent then.
async function send(form, submitter) {
  const data = new URLSearchParams(new FormData(form));
  // what can't be read is not sent, stays as it was typed, and is said at its field
  if (form.noValidate)
    for (const field of form.querySelectorAll("input:invalid")) data.delete(field.name);
  if (submitter?.name) data.append(submitter.name, submitter.value);
  const sent = `${form.action} ${data}`;
  sends++;
  if (waiting.at(-1)?.sent === sent && form.id !== "undo") return; // Enter in a field is a change, and then a submit
  if (form.dataset.auto && waiting.length > 1 && waiting.at(-1).id === form.id) waiting.pop();
  const place = waiting.push({ sent, data, id: form.id, action: form.action });
  shutUnmarked();
  if (place > 1) return;
  if (showing) {
    await showing;
    rebase(data, document);
  }
  submitter?.setAttribute("aria-busy", "true"); // seen at once, however long the answer takes
  const sending = [],
    slow = setTimeout(() => document.getElementById("main").classList.add("stale"), 300);
  try {
    while (waiting.length) {
      sending.push(waiting[0]);
      const [response, next] = await read(waiting[0].action, {
        method: "POST",
        body: waiting[0].data,
      });
      const following = response.ok && next && waiting[1];
      // which of several sheets is meant is asked before a click opens any
      const isAsked = next && next.querySelector("#sheets") && !following?.data?.has("look");
      if (following && !isAsked) {
        rebase(following.data, next);
        waiting.shift();
        continue;
      }
      waiting.length = 0;
      showing = show(response, next, sending);
      await showing; // before the page is left, too: who is asked may stay
      const field = form.noValidate && document.querySelector("form[novalidate] input:invalid");
      if (leaving && response.ok) location.href = leaving;
      else if (field) {
        unfold(field);
        field.reportValidity();
      }
    }
  } catch {
    say(words.unreachable);
  }
  waiting.length = 0;
  leaving = showing = null;
  shutUnmarked();
  clearTimeout(slow);
  submitter?.removeAttribute("aria-busy");
  document.getElementById("main").classList.remove("stale");
}

// What is typed and not saved is said where it stands that all is saved.
function showSaved() {
  for (const place of document.querySelectorAll("#saved, #answers-saved")) {
    place.dataset.saved ??= place.textContent;
    place.dataset.look ??= place.className;
    const isOpen = unsaved().length > 0;
    place.textContent = isOpen ? words.unsaved : place.dataset.saved;
    place.className = isOpen ? "warn" : place.dataset.look;
  }
}

const unfold = (element) => element?.closest("details")?.setAttribute("open", "");

// Answers that are not saved yet are saved before anything else is done, or the page is left.
function saveFirst(other) {
  for (const form of document.querySelectorAll("form[data-first]"))
    if (form !== other && changed(form).length) send(form, form.querySelector("[name=kept]"));
}

async function again() {
  const isTyping =
    document.querySelector("main :is(input, textarea, select):focus") &&
    Date.now() - lastKey < 1500;
  if (waiting.length || isTyping) {
    setTimeout(again, 1500);
    return;
  }
  try {
    const before = sends,
      [response, next] = await read(location.href);
    if (sends === before) await show(response, next); // else what a form got is newer than this
  } catch {
    say(words.unreachable);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.dataset.whole) return;
  event.preventDefault();
  if (form.dataset.sent) return; // a double click
  if (form.dataset.once) form.dataset.sent = "1";
  if (form.id !== "undo") saveFirst(form); // what is saved just before would be what undo takes back
  send(form, event.submitter);
});
document.addEventListener("change", (event) => {
  const form = event.target.matches("[data-log]")
    ? document.getElementById("k-form")
    : event.target.closest("form[data-auto], form[data-look]");
  const row = event.target.closest(".why");
  for (const own of row ? document.querySelectorAll(".why:has(.same :checked)") : []) {
    const above = own.previousElementSibling.querySelectorAll("[name^=why], select");
    own.querySelectorAll("[name^=why], select").forEach((field, place) => {
      field.value ||= above[place].value; // what is answered stays
    });
  }
  if (form?.dataset.look && event.target.matches("[name=typed], textarea")) return;
  if (form?.reportValidity()) send(form, form.querySelector("[name=look]"));
});
document.addEventListener("input", (event) => {
  shutUnmarked();
  showSaved();
  if (event.target.closest("[data-k], [data-log]")) echo(event.target);
});
// who scrolls over a number means the page
document.addEventListener("wheel", () => document.querySelector("[type=number]:focus")?.blur(), {
  passive: true,
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const target =
    link?.hash &&
    link.pathname === location.pathname &&
    document.getElementById(link.hash.slice(1));
  if (target) {
    // who is led to a question goes on there
    unfold(target);
    const own = link.dataset.field && target.querySelector(`[name^="${link.dataset.field}"]`);
    setTimeout(() =>
      (own || target.querySelector("input:not([type=hidden]), select, textarea"))?.focus(),
    );
  } else if (link && !document.getElementById("error")) saveFirst(null); // what was refused keeps nobody here
  if (
    link &&
    !link.target &&
    waiting.length &&
    !event.ctrlKey &&
    !event.metaKey &&
    !event.shiftKey
  ) {
    event.preventDefault();
    leaving = link.href;
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const lines = [...document.querySelectorAll(`#${copy.dataset.copy} .line:not(.less)`)].map(
      (line) => line.textContent.replace(/^\+ /, ""),
    );
    const text = lines.length
      ? lines.join("\n") + "\n"
      : document.getElementById(copy.dataset.copy).textContent;
    navigator.clipboard?.writeText(text).then(() => say(words.copied));
  }
  const step = event.target.closest("[data-step]");
  if (step) {
    const field = document.getElementById(step.dataset.for);
    field.value = Math.max(Number(field.min), Number(field.value) + Number(step.dataset.step));
    field.form.requestSubmit();
  }
});

// After another of our screens, focus continues in the content, not at the top again.
if (document.referrer.startsWith(location.origin) && !location.hash)
  document.getElementById("main")?.focus({ preventScroll: true });

// Keys, which rest while somebody types.
let lastKey = 0;
document.addEventListener("keydown", (event) => {
  lastKey = Date.now();
  // not every browser takes Alt alone for access keys
  const step =
    event.altKey &&
    !event.ctrlKey &&
    !event.metaKey &&
    /^Digit[1-7]$/.test(event.code) &&
    document.querySelector(`.steps [accesskey="${event.code.at(-1)}"]`);
  if (step) {
    event.preventDefault();
    step.click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  const tree = event.target.matches("[data-tree] tr") && event.target.closest("[data-tree]");
  if (tree) {
    treeKey(event, tree);
    return;
  }
  const lattice = event.target.closest("[data-lattice]");
  if (lattice && event.key.startsWith("Arrow")) {
    latticeKey(event, lattice);
    return;
  }
  if (localStorage.getItem(keysOff)) return;
  const undo = document.getElementById("undo");
  if (event.key === "?") document.getElementById("help").click();
  else if (event.key === "u" && undo && confirm(undo.textContent.trim().replace(/\s+/g, " ") + "?"))
    send(undo, null);
  else if (event.key === "v") document.documentElement.classList.toggle("veiled");
  else if (event.key === "/" && document.querySelector("[type=search]")) {
    event.preventDefault();
    document.querySelector("[type=search]").focus();
  }
});

// A tree by keys, as screen readers know treegrids: arrows walk and fold. M moves and G groups; other
// letters find a label, and so do these two behind another letter, or where single keys are off.
const shownRows = (tree) => [...tree.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
const depth = (row) => Number(row.getAttribute("aria-level") || 2);
let typed = "",
  lastTyped = 0;

function fold(row, open) {
  row.setAttribute("aria-expanded", String(open));
  let closed = open ? 99 : depth(row);
  for (
    let next = row.nextElementSibling;
    next?.hasAttribute("aria-level") && depth(next) > depth(row);
    next = next.nextElementSibling
  ) {
    if (depth(next) <= closed)
      closed = next.getAttribute("aria-expanded") === "false" ? depth(next) : 99;
    next.hidden = open ? depth(next) > closed : true;
  }
}

function walk(tree, row) {
  for (const other of tree.querySelectorAll("tbody tr[tabindex='0']")) other.tabIndex = -1;
  row.tabIndex = 0;
  row.focus();
}

function treeKey(event, tree) {
  const row = event.target,
    rows = shownRows(tree),
    at = rows.indexOf(row),
    open = row.getAttribute("aria-expanded");
  const above = () =>
    rows
      .slice(0, at)
      .reverse()
      .find((other) => depth(other) < depth(row));
  const inside = () => row.querySelector("select, a, .acts button");
  const change = (field) => {
    const link = row.querySelector("a.button");
    if (link) location.href = link.href.replace(/#.*/, field || "$&");
    else inside()?.focus();
  };
  const to = {
    ArrowDown: () => rows[at + 1],
    ArrowUp: () => rows[at - 1],
    Home: () => rows[0],
    End: () => rows.at(-1),
    ArrowRight: () =>
      open === "false"
        ? void fold(row, true)
        : open === "true"
          ? rows[at + 1]
          : void inside()?.focus(),
    ArrowLeft: () => (open === "true" && depth(row) > 1 ? void fold(row, false) : above()),
    " ": () => void row.querySelector("[type=checkbox]")?.click(),
    Enter: () => void change(),
    F2: () => void change(),
    ...((typed && Date.now() - lastTyped < 800) || localStorage.getItem(keysOff)
      ? {}
      : {
          m: () => void change("#move-to"),
          g: () => void document.getElementById("group-to")?.focus(),
        }),
  }[event.key];
  if (to) {
    typed = "";
    const next = to();
    if (next) walk(tree, next);
  } else if (event.key.length === 1) {
    typed = Date.now() - lastTyped < 800 ? typed + event.key : event.key;
    lastTyped = Date.now();
    const order = [...rows.slice(at + (typed.length === 1 ? 1 : 0)), ...rows.slice(0, at)];
    const next = order.find((other) =>
      other.querySelector(".label")?.textContent.toLowerCase().startsWith(typed.toLowerCase()),
    );
    if (next) walk(tree, next);
  } else return;
  event.preventDefault();
}

// By mouse, too: a value goes onto a group; two values together wait for the name of theirs. Nothing
// is written into what is dragged, which other windows could read.
let dragged = null;
const markOf = (row) => row?.querySelector("[name=of]");
const dropOf = (event) => {
  const row = event.target.closest?.("[data-tree] tr");
  return dragged && row !== dragged && markOf(row) && row;
};

document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-tree] tr");
  event.dataTransfer.setData("text/plain", "");
});
document.addEventListener("dragover", (event) => {
  if (dropOf(event)) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  const row = dropOf(event),
    form = document.getElementById("drop-form");
  if (!row) return;
  event.preventDefault();
  if (row.hasAttribute("aria-expanded")) {
    form.value.value = markOf(dragged).value;
    form.under.value = markOf(row).value;
    form.requestSubmit();
  } else {
    markOf(row).checked = markOf(dragged).checked = true;
    document.getElementById("group-to").focus();
  }
});

// Levels of a recoding: arrows go between boxes and rows, Enter follows as links do.
function latticeKey(event, place) {
  const rows = [...place.querySelectorAll(".lattice > *")]
    .map((row) => (row.matches(".here") ? [row] : [...row.querySelectorAll("a")]))
    .filter((row) => row.length);
  const y = rows.findIndex((row) => row.includes(event.target)),
    x = y < 0 ? -1 : rows[y].indexOf(event.target);
  const next = {
    ArrowLeft: rows[y]?.[x - 1],
    ArrowRight: rows[y]?.[x + 1],
    ArrowUp: rows[y - 1]?.[Math.min(x, rows[y - 1].length - 1)],
    ArrowDown: rows[y + 1]?.[Math.min(x, rows[y + 1].length - 1)],
  }[event.key];
  if (next) {
    next.focus();
    event.preventDefault();
  }
}

function say(text) {
  const status = document.getElementById("status");
  status.className = "said";
  status.replaceChildren(Object.assign(document.createElement("p"), { textContent: text }));
}

// The slider says at once what the counts know: who hides among k already, how many groups there can be.
function echo(slider) {
  const card = slider.closest("[data-sets]");
  const k = slider.dataset.log ? Math.round(2 * 25 ** (slider.value / 1000)) : Number(slider.value);
  if (slider.dataset.log)
    slider.setAttribute("aria-valuetext", slider.dataset.people.replace("{k}", k));
  for (const field of card.querySelectorAll("[data-k]")) field.value = k;
  for (const place of card.querySelectorAll("[data-say=k]")) place.textContent = k;
  const sets = JSON.parse(card.dataset.sets),
    rows = Number(card.dataset.rows);
  const hidden = sets.filter((set) => set[0] >= k).reduce((sum, set) => sum + set[1], 0);
  for (const place of card.querySelectorAll("[data-say=hidden]"))
    place.textContent = hidden ? hidden.toLocaleString("en") : card.dataset.nobody;
  for (const place of document.querySelectorAll("[data-say=groups]"))
    place.textContent = Math.floor(rows / k).toLocaleString("en");
}

// Events of the job that is shown; a number tells where to go on after a break.
const listening = new Map();
let spoken = 0;
function listen(job) {
  const id = job.dataset.job,
    name = `shoal-job-${id}`;
  if (listening.has(id)) return;
  const radio = new BroadcastChannel(name);
  listening.set(id, radio);
  radio.onmessage = (message) => heard(id, message.data);
  // one window listens for all, since browsers allow only six connections to a server
  const source = () =>
    listening.has(id) &&
    new Promise((done) => {
      const events = new EventSource(`/jobs/${id}/events`);
      events.onmessage = (message) => {
        const event = JSON.parse(message.data);
        radio.postMessage(event);
        if (event.state) {
          events.close();
          done();
        }
        heard(id, event);
      };
      events.onerror = () => {
        // refused for good, else the browser asks again by itself
        if (events.readyState !== EventSource.CLOSED) return;
        radio.close();
        listening.delete(id);
        done();
      };
    });
  if (navigator.locks) navigator.locks.request(name, source);
  else source();
}

function heard(id, event) {
  const shown = document.querySelector(`[data-job="${id}"]`);
  if (event.state) {
    listening.get(id)?.close();
    listening.delete(id);
    again();
    return;
  }
  if (event.part) {
    clearTimeout(listen.later);
    listen.later = setTimeout(again, 400);
    return;
  }
  if (!shown) return;
  const bar = shown.querySelector("progress");
  let text = event.compiling ? words.compiling.replace("{stage}", event.stage) : event.stage;
  if (event.total) {
    bar.max = event.total;
    bar.value = event.done;
    text += ` · ${words.progress.replace("{done}", event.done).replace("{total}", event.total)}`;
  } else {
    bar.removeAttribute("value");
    text += ` · ${Math.round(event.seconds)} s`;
  }
  shown.querySelector(".stage").textContent = text;
  if (Date.now() - spoken > 10000) {
    spoken = Date.now();
    shown.querySelector(".stage").setAttribute("aria-live", "polite");
  }
}

// What opens a table is shut while none is marked or named.
function shutUnmarked() {
  const button = document.querySelector("[data-off]");
  if (!button) return;
  const form = button.form,
    isLooking = waiting.some((one) => one.id === form.id && one.data.has("look")),
    isNamed = Boolean(form.querySelector("[name=path]:checked") || form.typed.value.trim());
  document.getElementById("looking").hidden = !isLooking;
  document.getElementById("unmarked").hidden = isLooking || isNamed;
  button.disabled = !isNamed;
}

// On a narrow screen the steps are one line that scrolls: the one where somebody is stands in sight.
function showStep() {
  const here = document.querySelector(".steps ol [aria-current]"),
    list = here?.closest("ol");
  if (list?.scrollWidth > list?.clientWidth) list.scrollLeft = here.offsetLeft - 40;
}
addEventListener("resize", showStep);

function begin() {
  at = location.pathname + location.search;
  shutUnmarked();
  showStep();
  for (const tree of document.querySelectorAll("[data-tree]")) {
    const rows = shownRows(tree),
      at = Math.max(rows.indexOf(document.activeElement), 0);
    rows.forEach((row, place) => {
      row.tabIndex = place === at ? 0 : -1;
      row.draggable = Boolean(markOf(row));
    });
    tree.querySelectorAll(".fold").forEach(
      (sign) =>
        (sign.onclick = () => {
          const row = sign.closest("tr");
          fold(row, row.getAttribute("aria-expanded") === "false");
        }),
    );
  }
  for (const job of document.querySelectorAll("[data-job]")) listen(job);
  for (const button of document.querySelectorAll("form[data-auto] .without-script"))
    button.hidden = true;
  if (document.body.hasAttribute("data-waits")) setTimeout(again, 700);
  const every = Number(document.querySelector("[data-every]")?.dataset.every || 0);
  if (every) setTimeout(again, every * 1000);
  const keys = document.getElementById("keys");
  if (keys) {
    keys.checked = !localStorage.getItem(keysOff);
    keys.onchange = () =>
      keys.checked ? localStorage.removeItem(keysOff) : localStorage.setItem(keysOff, "1");
  }
}
addEventListener("popstate", () => {
  if (location.pathname + location.search !== at) location.reload();
}); // not for a link within
begin();
// what somebody chose before the script was there is sent, too; what a browser brings back is only
// looked at
const isNew = performance.getEntriesByType("navigation")[0]?.type === "navigate";
for (const field of changed(document.querySelector("main")))
  if (field.form?.matches(isNew ? "[data-auto], [data-look]" : "[data-look]"))
    field.dispatchEvent(new Event("change", { bubbles: true }));
