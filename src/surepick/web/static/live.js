// Live updates, and the slider without reloading. Everything else on the pages works without this file.
"use strict";

(() => {
  const board = document.querySelector("[data-live]");
  const light = document.querySelector("[data-light]");
  const voice = document.getElementById("voice");
  const first = document.querySelector("[data-answer]");
  let spoken = first ? first.dataset.answer : "", speakAgainAt = 0, speaking = 0;

  function say(state, text) {
    if (light) {
      light.dataset.state = state;
      light.textContent = text;
    }
  }

  function replace(name, html) {
    const part = document.getElementById("part-" + name);
    if (!part || part.innerHTML === html) return;
    const news = document.createElement("template");
    news.innerHTML = html;
    const form = part.querySelector("form"), next = news.content.querySelector("form");
    if (form && next && form.getAttribute("action") === next.getAttribute("action")) choose(form, next);
    else part.replaceChildren(news.content);
  }

  // A form that is there stays, with all that somebody has entered; only what can be chosen changes.
  function choose(form, next) {
    const list = form.querySelector("select"), news = next.querySelector("select");
    if (!list || !news || list === document.activeElement || list.innerHTML === news.innerHTML) return;
    const chosen = list.value;
    list.replaceChildren(...news.children);
    if ([...list.options].some((option) => option.value === chosen)) list.value = chosen;
  }

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
      for (const [name, html] of Object.entries(JSON.parse(event.data).parts)) replace(name, html);
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
