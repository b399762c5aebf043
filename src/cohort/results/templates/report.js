"use strict";

/* The page's colours: as the system has them until the reader chooses. */
const scheme = matchMedia("(prefers-color-scheme: dark)");
let chosen = "";

const isDark = () => (chosen || (scheme.matches ? "dark" : "light")) === "dark";

/* Draws on each side the map that was taken last before the slider's launch. */
function showMaps(data) {
  const $ = (id) => document.getElementById(id);
  const sides = ["a", "b"].slice(0, data.runs.length);
  const launches = [...new Set(data.runs.flatMap((run) => run.launches))].sort((x, y) => x - y);
  const slider = $("map-launch");
  const legend = $("map-legend");
  let only = "";

  const read = () => document.querySelector('input[name="map-by"]:checked')?.value ?? "kind";
  const runOf = (side) => data.runs[$(`map-run-${side}`).value];
  const mapOf = (run) => Math.max(0, run.launches.findLastIndex((n) => n <= launches[slider.value]));

  /* Of each letter, which entry of the legend it belongs to; strange letters to the last. */
  const entryOf = (entries) => {
    const index = {};
    entries.forEach((entry, i) => [...entry.letters].forEach((letter) => (index[letter] = i)));
    return (letter) => index[letter] ?? entries.length - 1;
  };

  function paint(side, entries) {
    const run = runOf(side);
    const cells = run.cells[read()][mapOf(run)];
    const canvas = $(`map-${side}`);
    canvas.width = run.columns;
    canvas.height = Math.ceil(cells.length / run.columns);
    const context = canvas.getContext("2d");
    const entry = entryOf(entries);
    const counts = entries.map(() => 0);
    [...cells].forEach((letter, i) => {
      const { label, day, night } = entries[entry(letter)];
      counts[entry(letter)] += 1;
      context.globalAlpha = only && label !== only ? 0.12 : 1;
      context.fillStyle = isDark() ? night : day;
      context.fillRect(i % run.columns, Math.floor(i / run.columns), 1, 1);
    });
    const n = run.launches[mapOf(run)];
    $(`map-title-${side}`).textContent = n ? `after launch ${n}` : "booted";
    const memory = cells.length - cells.split("-").length + 1;
    return counts.map((count) => count / memory);
  }

  function list(entries, shares) {
    legend.replaceChildren();
    entries.forEach((entry, i) => {
      if (!shares.some((share) => share[i]) || entry.letters === "-") return;
      const button = document.createElement("button");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = isDark() ? entry.night : entry.day;
      const parts = shares.map((share) => `${(100 * share[i]).toFixed(1)} %`);
      button.append(swatch, `${entry.label} ${parts.join(" | ")}`);
      button.type = "button";
      button.ariaPressed = String(entry.label === only);
      button.onclick = () => {
        only = entry.label === only ? "" : entry.label;
        draw();
        /* The list is made anew: a reader with a keyboard goes on where the press was. */
        [...legend.children].find((other) => other.dataset.label === entry.label)?.focus();
      };
      button.dataset.label = entry.label;
      legend.append(button);
    });
  }

  function draw() {
    const entries = data.legends[read()];
    list(entries, sides.map((side) => paint(side, entries)));
    slider.ariaValueText = $("map-at").textContent = launches[slider.value]
      ? `launch ${launches[slider.value]}` : "boot";
  }

  slider.max = launches.length - 1;
  slider.value = slider.max;
  slider.oninput = draw;
  sides.forEach((side, i) => {
    const select = $(`map-run-${side}`);
    data.runs.forEach((run, number) => select.add(new Option(run.name, number)));
    select.value = i;
    select.onchange = draw;
  });
  document.querySelectorAll('input[name="map-by"]').forEach((input) => {
    input.onchange = () => {
      only = "";
      draw();
    };
  });
  $("map").hidden = false;
  draw();
  return draw;
}

const maps = document.getElementById("map-data");
const redraw = maps ? showMaps(JSON.parse(maps.textContent)) : () => {};

const theme = document.getElementById("theme");
theme.hidden = false;
theme.onclick = () => {
  chosen = isDark() ? "light" : "dark";
  document.documentElement.style.colorScheme = chosen;
  redraw();
};
scheme.onchange = redraw;
