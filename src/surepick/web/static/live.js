// Live updates and small conveniences. The pages work without this file.
"use strict";

(() => {
  const board = document.querySelector("[data-live]");
  const light = document.querySelector("[data-light]");
  const voice = document.getElementById("voice");

  // Times are shown by the reader's clock; so parts differ from what was sent, which is kept here.
  const sent = new Map([...document.querySelectorAll("[id^='part-']")].map((part) => [part.id, part.innerHTML]));
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  function showLocalTimes(place) {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      time.title = time.dateTime;
      time.textContent = (moment.toDateString() === new Date().toDateString() ? clock : day).format(moment);
    }
  }
  showLocalTimes(document);

  function say(state, text) {
    if (light) { light.dataset.state = state; light.textContent = text; }
  }

  function replace(name, html) {
    const part = document.getElementById("part-" + name);
    if (!part || sent.get(part.id) === html) return;
    sent.set(part.id, html);
    const news = document.createElement("template");
    news.innerHTML = html;
    showLocalTimes(news.content);
    const form = part.querySelector("form.tell"), next = news.content.querySelector("form.tell");
    if (form && isInUse(form)) {
      if (next) offer(form, next); else notice(form, news.content.querySelector("[data-meanwhile]")?.textContent);
      refresh(part, news.content, ".last");
      return;
    }
    const open = new Set([...part.querySelectorAll("details[id][open]")].map((one) => one.id));
    if (part.querySelector("details[open] input:focus, details[open] form")?.closest("details:not(.fold)")) return;
    keepName(next);
    part.replaceChildren(news.content);
    for (const id of open) { const one = document.getElementById(id); if (one) one.open = true; }
    showReadings();
  }

  function isInUse(form) {
    const typed = [...form.querySelectorAll("input[type='text']")].some((one) => one.name !== "worker" && one.value.trim());
    return typed || form.contains(document.activeElement) || form.querySelector("[data-surprising]");
  }

  // A form in use stays as it is, with all that was entered and chosen; only what else can be chosen changes.
  function offer(form, next) {
    const list = form.querySelector("[data-choices]"), news = next.querySelector("[data-choices]");
    const chosen = form.querySelector("input[name='arm']:checked");
    if (!list || !news || list.contains(document.activeElement) && document.activeElement.tagName === "SELECT") return;
    const other = list.querySelector("select")?.value ?? "";
    const same = chosen && [...news.querySelectorAll("input[name='arm']")].find((one) => one.value === chosen.value);
    for (const one of news.querySelectorAll("input[name='arm']")) one.checked = one === same;
    if (chosen && !same) {
      news.querySelector("legend").after(chosen.closest("label"));
      notice(form, chosen.value + " needs no more values for now: it was recorded meanwhile. Your entry is unchanged. Recorded now, it is kept as an extra measurement.");
    }
    const select = news.querySelector("select");
    if (select && [...select.options].some((one) => one.value === other)) select.value = other;
    list.replaceWith(news);
  }

  function notice(form, text) {
    const place = form.querySelector("[data-notice]");
    if (place && text) { place.textContent = text; place.hidden = false; }
  }

  function refresh(part, news, selector) {
    const before = part.querySelector(selector), after = news.querySelector(selector);
    if (before && after) before.replaceWith(after);
  }

  // The name of the person is remembered by this browser.
  function keepName(form) {
    const field = form?.querySelector("input[name='worker']");
    if (field && !field.value) try { field.value = localStorage.getItem("surepick-by") ?? ""; } catch { /* not allowed */ }
  }
  keepName(document.querySelector("form.tell"));
  document.addEventListener("submit", (event) => {
    const field = event.target.querySelector("input[name='worker']");
    if (event.target.matches("form.tell") && field) try { localStorage.setItem("surepick-by", field.value); } catch { /* not allowed */ }
  });

  // A probe with several readings has a field for each; those of the others are out of the way.
  function showReadings() {
    const form = document.querySelector("form.tell");
    if (!form || !form.querySelector("[data-arm]")) return;
    const chosen = form.querySelector("input[name='arm']:checked")?.value || form.querySelector("select")?.value;
    let several = false;
    for (const set of form.querySelectorAll("[data-arm]")) {
      set.hidden = set.dataset.arm !== chosen;
      several ||= !set.hidden;
    }
    form.querySelector("[data-value]").hidden = several;
  }
  showReadings();

  document.addEventListener("change", (event) => {
    const target = event.target;
    if (target.matches("[data-choices] select")) target.closest("label").querySelector("input").checked = true;
    if (target.closest("[data-choices]")) {
      showReadings();
      const place = target.form.querySelector("[data-notice]");
      if (place) place.hidden = true;
    }
    if (target.matches("[data-new] input[type='file']") && target.files.length) target.form.querySelector("[data-check]").click();
  });

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.dataset?.fill) document.getElementById(target.dataset.fill).value = target.dataset.with;
    if (target.matches?.("[data-print]")) print();
    if (target.matches?.("[data-correct]")) {
      event.preventDefault();
      const field = target.form.querySelector("#tell-value");
      target.closest("[data-surprising]").replaceWith(Object.assign(document.createElement("button"), { textContent: "Record" }));
      field.focus();
      field.select();
    }
    const link = target.closest?.("a[href^='#menu-']");
    if (link) openMenu(link.hash);
    const menu = document.getElementById("menu");
    if (menu?.open && !menu.contains(target) && !link) menu.open = false;
  });
  function openMenu(hash) {
    const item = document.getElementById(hash.slice(1));
    if (!item) return;
    document.getElementById("menu").open = true;
    item.open = true;
    item.querySelector("input:not([type='hidden'])")?.focus();
  }
  document.addEventListener("keydown", (event) => {
    const menu = document.getElementById("menu");
    if (event.key === "Escape" && menu?.open) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  // Screen readers hear a new answer, but not every measurement.
  const first = document.querySelector("[data-answer]");
  let spoken = first ? first.dataset.answer : "";
  function announce() {
    const answer = document.querySelector("[data-answer]");
    if (!voice || !answer || answer.dataset.answer === spoken) return;
    spoken = answer.dataset.answer;
    voice.textContent = spoken;
  }

  if (board && window.EventSource) {
    const stream = new EventSource(board.dataset.live);
    stream.addEventListener("open", () => say("live", "live"));
    stream.addEventListener("error", () => say("lost", "not live"));
    stream.addEventListener("update", (event) => {
      for (const [name, html] of Object.entries(JSON.parse(event.data).parts)) replace(name, html);
      announce();
    });
    addEventListener("pagehide", () => stream.close());
  }

  // The list of sessions is read again now and then, while it is looked at.
  const list = document.querySelector("[data-refresh]");
  if (list) setInterval(async () => {
    if (document.hidden || list.contains(document.activeElement)) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const news = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-refresh]");
    if (!news) return;
    showLocalTimes(news);
    list.replaceChildren(...news.childNodes);
  }, 10000);

  // The link that `surepick serve` prints has the token after the #, which no server sees; it logs in once.
  const logIn = () => {
    const field = document.querySelector("form[action='/login'] input[name='token']");
    if (!field || !location.hash.startsWith("#token=")) return;
    field.value = decodeURIComponent(location.hash.slice("#token=".length));
    history.replaceState(null, "", location.pathname + location.search);
    field.form.submit();
  };
  addEventListener("hashchange", logIn);
  logIn();
  if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname + location.search);
})();
