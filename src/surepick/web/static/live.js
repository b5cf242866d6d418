// Live updates, and the slider without reloading. Everything else on the pages works without this file.
"use strict";

(() => {
  const board = document.querySelector("[data-live]");
  const light = document.querySelector("[data-light]");
  const voice = document.getElementById("voice");
  const first = document.querySelector("[data-answer]");
  let spoken = first ? first.dataset.answer : "", speakAgainAt = 0, speaking = 0;

  // On a telephone the form and the answer come first, at the end with what can be downloaded; the rest is a tap away.
  if (matchMedia("(max-width: 30rem)").matches) {
    for (const part of document.querySelectorAll(".fold:not(.stays)")) part.open = false;
  }

  function say(state, text) {
    if (light) {
      light.dataset.state = state;
      light.textContent = text;
    }
  }

  // Times are shown as the reader's clock shows them; so parts differ from what was sent, which is kept here.
  const sent = new Map([...document.querySelectorAll("[id^='part-']")].map((part) => [part.id, part.innerHTML]));
  const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  function showLocalTimes(place) {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      time.title = time.textContent;
      time.textContent = clock.format(moment);
    }
  }
  showLocalTimes(document);

  function replace(name, html) {
    const part = document.getElementById("part-" + name);
    if (!part || part.innerHTML === html) return;
    if (!part.querySelector("form") && sent.get(part.id) === html) return;
    sent.set(part.id, html);
    const news = document.createElement("template");
    news.innerHTML = html;
    const form = part.querySelector("form"), next = news.content.querySelector("form");
    if (form && next && form.getAttribute("action") === next.getAttribute("action")) offer(form, next);
    else if (form && holdsInput(form)) notice(form, news.content.querySelector("[data-meanwhile]")?.textContent);
    else {
      showLocalTimes(news.content);
      part.replaceChildren(news.content);
    }
  }

  // A form that is there stays, with all that somebody has entered and chosen; only what else can be chosen
  // changes. What was chosen stays even when another has recorded it meanwhile: then the form says so.
  function offer(form, next) {
    const list = form.querySelector("select"), news = next.querySelector("select");
    if (!list || !news) return;
    const chosen = list.selectedOptions[0];
    const same = [...news.options].find((option) => option.value === chosen?.value);
    if (chosen && !same) askWhatBecame(form, chosen.value);
    if (list === document.activeElement) return;
    if (same) same.selected = true;
    list.replaceChildren(...(chosen && !same ? [chosen] : []), ...news.children);
    if (chosen) list.value = chosen.value;
  }

  function holdsInput(form) {
    return [...form.querySelectorAll("#value, .readings input")].some((typed) => typed.value.trim() !== "");
  }

  function notice(form, text) {
    const place = form.querySelector("[data-notice]");
    if (!place || !text) return;
    if (place.textContent !== text) place.textContent = text;
    place.hidden = false;
  }

  async function askWhatBecame(form, choice) {
    const token = choice.split(" ")[0];
    const answer = await fetch(form.dataset.told + "?token=" + encodeURIComponent(token), { credentials: "same-origin" });
    const text = answer.ok ? (await answer.json()).text : "";
    if (!text || form.querySelector("select").value !== choice) return;
    notice(form, text + " Your choice and what you have entered are unchanged, and nothing was sent. Choose what you measured.");
  }

  // A probe with several readings has a field for each; those of the others are out of the way.
  function showReadings() {
    const list = document.querySelector("form.tell select#token");
    const probe = list?.selectedOptions[0]?.dataset.probe;
    if (probe === undefined) return;
    let several = false;
    for (const set of list.form.querySelectorAll("[data-readings]")) {
      set.hidden = set.dataset.readings !== probe;
      several ||= !set.hidden;
    }
    list.form.querySelector("[data-value]").hidden = several;
  }
  showReadings();

  document.addEventListener("change", (event) => {
    if (event.target.matches("select#token")) showReadings();
    const place = event.target.closest("form")?.querySelector("[data-notice]");
    if (place && event.target.matches("select")) place.hidden = true;
  });

  // Keypads for numbers lack the space and, on some, the minus.
  document.addEventListener("click", (event) => {
    const field = document.getElementById(event.target.dataset?.keyboard);
    if (!field) return;
    field.inputMode = "text";
    event.target.hidden = true;
    field.focus();
  });

  // Screen readers hear a new answer, but not every measurement, and nothing twice within a few seconds.
  function announce() {
    const answer = document.querySelector("[data-answer]");
    if (!voice || !answer || answer.dataset.answer === spoken) return;
    clearTimeout(speaking);
    if (Date.now() < speakAgainAt) {
      speaking = setTimeout(announce, speakAgainAt - Date.now() + 1);
      return;
    }
    spoken = answer.dataset.answer;
    voice.textContent = answer.textContent;
    speakAgainAt = Date.now() + 3000;
  }

  if (board && window.EventSource) {
    const stream = new EventSource(board.dataset.live);
    stream.addEventListener("open", () => say("live", "live"));
    stream.addEventListener("error", () => say("lost", stream.readyState === 2 ? "not live: reload" : "reconnecting …"));
    stream.addEventListener("update", (event) => {
      const parts = JSON.parse(event.data).parts;
      if ("reload" in board.dataset && "answer" in parts) location.reload();  // what it waited for is there
      for (const [name, html] of Object.entries(parts)) replace(name, html);
      showReadings();
      announce();
    });
    window.addEventListener("pagehide", () => stream.close());
  }

  let asked = 0, timer = 0;
  async function showPast(form) {
    const mine = ++asked;
    const at = form.elements.at.value;
    const answer = await fetch(form.dataset.part + "?at=" + encodeURIComponent(at), { credentials: "same-origin" });
    const place = document.getElementById("past");
    if (answer.ok && place && mine === asked) place.innerHTML = await answer.text();
  }
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-part]");
    if (!form) return;
    clearTimeout(timer);
    timer = setTimeout(() => showPast(form), 80);
  });
})();

// The link that `surepick serve` prints: its token follows the #, which no server sees, and logs in once. Whoever
// pastes it while the form is open changes the # alone, and no page is loaded.
(() => {
  const logIn = () => {
    const field = document.querySelector("form[action='/login'] input[name='token']");
    if (!field || !location.hash.startsWith("#token=")) return;
    field.value = decodeURIComponent(location.hash.slice("#token=".length));
    history.replaceState(null, "", location.pathname);
    field.form.submit();
  };
  addEventListener("hashchange", logIn);
  logIn();
})();
