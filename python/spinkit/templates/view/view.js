// SPDX-License-Identifier: Apache-2.0
// Draws timelines: one panel for each file. Only the visible rows are drawn, and crowded slices as groups.
"use strict";

const LANE = 18, COUNTER = 40, HEAD = 22, AXIS = 26, LABELS = 150;
const KNOWN = { post: "#D55E00", poll: "#E69F00", match: "#cdbb00", put: "#0072B2", fetch: "#009E73", deposit: "#009E73" };
const MOST_ARROWS = 1500, ARROWS_SCANNED = 200000;

function escape(text) {
  return String(text).replace(/[&<>"]/g, (found) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[found]);
}

function time(ps, digits = 4) {
  const size = Math.abs(ps), units = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];
  const [scale, unit] = units.find(([one]) => size >= one) ?? units[4];
  return `${Number((ps / scale).toPrecision(Math.max(digits, 1)))} ${unit}`;
}

function color(name) {
  if (KNOWN[name]) return KNOWN[name];
  if (name.startsWith("wait")) return "#b7a9c9";
  let hash = 2166136261;
  // Digits do not count: "send 8b to 3" and "send 8b to 4" look equal.
  for (const letter of name) if (letter < "0" || letter > "9") hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
  return `hsl(${(hash >>> 0) % 360} 52% ${44 + ((hash >>> 9) % 14)}%)`;
}

class Panel {
  constructor(page, name, model) {
    this.page = page;
    this.model = model;
    this.element = document.createElement("section");
    this.element.className = "panel";
    const facts = `${model.start.length.toLocaleString("en")} slices, ${model.lanes.length} rows, ${model.counters.length} counters, `;
    this.element.innerHTML = `<h2>${escape(name)} <small>${facts}${time(model.length)}</small></h2>
      <div class="stage"><canvas tabindex="0" aria-label="timeline of ${escape(name)}"></canvas></div>`;
    this.canvas = this.element.querySelector("canvas");
    this.stage = this.element.querySelector(".stage");
    this.context = this.canvas.getContext("2d");
    this.folded = new Set();
    this.colors = model.names.map(color);
    this.found = null; // Uint8Array over names: 1 where the search matches
    this.selected = -1;
    this.range = null;
    const length = page.linked.checked ? page.length : model.length;
    [this.from, this.to] = [-0.02 * length, 1.02 * length || 1];
    this.scroll = 0;
    this.layOut();
    this.listen();
  }

  /** Places rows from top to bottom. */
  layOut() {
    this.rows = [];
    this.top = new Float64Array(this.model.lanes.length).fill(-1);
    let y = 0;
    this.model.processes.forEach((name, process) => {
      this.rows.push({ kind: "process", name, process, y, height: HEAD });
      const head = y;
      y += HEAD;
      const open = !this.folded.has(process);
      for (const index of this.model.rows) {
        const lane = this.model.lanes[index];
        if (lane.process !== process) continue;
        this.top[index] = open ? y : head;
        if (!open) continue;
        this.rows.push({ kind: "lane", name: lane.depth ? "" : lane.name, lane, y, height: LANE });
        y += LANE;
      }
      for (const counter of this.model.counters) {
        if (counter.process !== process || !open) continue;
        this.rows.push({ kind: "counter", name: `${counter.name} [${counter.unit}]`, counter, y, height: COUNTER });
        y += COUNTER;
      }
    });
    this.height = y;
  }

  get width() {
    return this.canvas.clientWidth - LABELS;
  }

  x(ps) {
    return LABELS + ((ps - this.from) / (this.to - this.from)) * this.width;
  }

  at(x) {
    return this.from + ((x - LABELS) / this.width) * (this.to - this.from);
  }

  show(from, to) {
    const least = 10, most = 1.2 * this.page.length + least;
    const span = Math.min(Math.max(to - from, least), most), middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, -0.1 * most), 1.1 * most - span);
    this.to = this.from + span;
    this.page.moved(this);
  }

  zoom(factor, x = LABELS + this.width / 2) {
    const fixed = this.at(x);
    this.show(fixed - (fixed - this.from) * factor, fixed + (this.to - fixed) * factor);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  scrollTo(y) {
    this.scroll = Math.max(0, Math.min(y, this.height - (this.canvas.clientHeight - AXIS)));
    this.page.redraw();
  }

  select(slice, center) {
    this.selected = slice;
    if (center) {
      const lane = this.model.lanes[this.model.lane[slice]];
      if (this.folded.delete(lane.process)) this.layOut();
      const from = this.model.start[slice], length = Math.max(this.model.end[slice] - from, 10);
      if (from < this.from || from + length > this.to || length < (this.to - this.from) / 400)
        this.show(from - 6 * length, from + 7 * length);
      const y = this.top[this.model.lane[slice]];
      if (y < this.scroll || y > this.scroll + this.canvas.clientHeight - AXIS - LANE) this.scrollTo(y - this.canvas.clientHeight / 2);
    }
    this.page.details(this, slice);
    this.page.redraw();
  }

  rowAt(y) {
    const wanted = y - AXIS + this.scroll;
    return y < AXIS ? undefined : this.rows.find((row) => wanted >= row.y && wanted < row.y + row.height);
  }

  sliceAt(x, y) {
    const row = this.rowAt(y);
    if (!row || row.kind !== "lane" || x < LABELS) return -1;
    const margin = ((this.to - this.from) / this.width) * 2, index = this.model.firstAfter(row.lane, this.at(x) - margin);
    const slice = row.lane.slices[index];
    return slice !== undefined && this.model.start[slice] <= this.at(x) + margin ? slice : -1;
  }

  listen() {
    const canvas = this.canvas;
    let pressed = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY / 300), event.offsetX);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.width);
      else if (this.height > canvas.clientHeight - AXIS) this.scrollTo(this.scroll + event.deltaY);
      else this.zoom(Math.exp(event.deltaY / 300), event.offsetX);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      pressed = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, scroll: this.scroll, moved: false };
      pressed.ranging = event.shiftKey || event.offsetY < AXIS || this.page.ranging;
      pressed.start = this.at(event.offsetX);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!pressed) {
        const slice = this.sliceAt(event.offsetX, event.offsetY);
        canvas.title = slice < 0 ? "" : `${this.model.names[this.model.name[slice]]}: ${time(this.model.end[slice] - this.model.start[slice])}`;
        return;
      }
      const [dx, dy] = [event.offsetX - pressed.x, event.offsetY - pressed.y];
      pressed.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
      if (!pressed.moved) return;
      if (pressed.ranging) {
        const now = this.at(event.offsetX);
        this.range = [Math.min(pressed.start, now), Math.max(pressed.start, now)];
        this.page.redraw();
      } else {
        const by = (dx / this.width) * (pressed.to - pressed.from);
        this.show(pressed.from - by, pressed.to - by);
        this.scrollTo(pressed.scroll - dy);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const was = pressed;
      pressed = null;
      if (!was) return;
      if (was.moved) {
        if (was.ranging) this.page.sum(this, this.range);
        return;
      }
      const row = this.rowAt(event.offsetY);
      if (row && row.kind === "process") {
        if (!this.folded.delete(row.process)) this.folded.add(row.process);
        this.layOut();
        this.scrollTo(this.scroll);
        return;
      }
      const slice = this.sliceAt(event.offsetX, event.offsetY);
      this.range = null;
      if (slice >= 0) this.select(slice, false);
    });
    canvas.addEventListener("dblclick", (event) => {
      const slice = this.sliceAt(event.offsetX, event.offsetY);
      if (slice < 0) return;
      const length = Math.max(this.model.end[slice] - this.model.start[slice], 10);
      this.show(this.model.start[slice] - length / 10, this.model.end[slice] + length / 10);
    });
    canvas.addEventListener("keydown", (event) => {
      const act = {
        w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.pan(-0.2), d: () => this.pan(0.2),
        ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
        ArrowUp: () => this.scrollTo(this.scroll - 3 * LANE), ArrowDown: () => this.scrollTo(this.scroll + 3 * LANE),
        f: () => this.selected >= 0 && this.select(this.selected, true), 0: () => this.show(0, this.model.length),
      }[event.key];
      if (!act) return;
      act();
      event.preventDefault();
    });
  }

  draw() {
    const { canvas, context } = this, ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const look = this.page.look;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.paper;
    context.fillRect(0, 0, width, height);
    this.drawn = 0;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const ticks = this.ticks();
    context.fillStyle = look.line;
    for (const tick of ticks) context.fillRect(Math.round(this.x(tick)), AXIS, 1, height - AXIS);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    for (const row of this.rows) {
      const y = row.y - this.scroll + AXIS;
      if (y + row.height < AXIS || y > height) continue;
      if (row.kind === "process") {
        context.fillStyle = look.head;
        context.fillRect(0, y, width, row.height - 1);
        this.label(`${this.folded.has(row.process) ? "▸" : "▾"} ${row.name}`, 8, y + row.height / 2, width - 16, look.ink, true);
        continue;
      }
      if (row.kind === "lane") this.drawLane(row.lane, y + 1, row.height - 2);
      else this.drawCounter(row.counter, y + 2, row.height - 4);
      context.fillStyle = look.paper;
      context.fillRect(0, y, LABELS, row.height);
      this.label(row.name, 20, y + row.height / 2, LABELS - 26, look.soft);
    }
    this.drawArrows(height);
    context.restore();
    if (this.range) {
      const [left, right] = this.range.map((one) => this.x(one));
      context.fillStyle = look.range;
      context.fillRect(left, 0, right - left, height);
    }
    context.fillStyle = look.paper;
    context.fillRect(0, 0, width, AXIS);
    for (const tick of ticks) this.label(time(tick, 6), this.x(tick) + 3, AXIS / 2, 120, look.soft);
    context.fillStyle = look.line;
    context.fillRect(0, AXIS - 1, width, 1);
    context.fillRect(LABELS - 1, AXIS, 1, height);
  }

  ticks() {
    const rough = ((this.to - this.from) / this.width) * 130, scale = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * scale).find((one) => one >= rough);
    const found = [];
    for (let tick = Math.ceil(this.from / step) * step; tick < this.to; tick += step) if (this.x(tick) >= LABELS) found.push(tick);
    return found;
  }

  label(text, x, y, room, ink, bold = false) {
    const context = this.context, letters = Math.floor(room / 6);
    if (letters < 2) return;
    context.fillStyle = ink;
    context.font = `${bold ? "600 " : ""}11px system-ui, sans-serif`;
    context.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, x, y);
  }

  drawLane(lane, y, height) {
    const { context, model } = this, first = model.firstAfter(lane, this.from), last = model.firstFrom(lane, this.to);
    const scale = this.width / (this.to - this.from), budget = this.width;
    let level = 0;
    while ((last - first) / 4 ** level > budget) level++;
    let style = "", edge = -1;
    const box = (slice, starts, ends, share) => {
      const left = Math.max(LABELS, LABELS + (starts - this.from) * scale);
      const right = Math.min(LABELS + this.width, LABELS + (ends - this.from) * scale);
      const wide = Math.max(right - left, 1);
      if (left + wide <= edge && wide <= 1) return; // the pixel is taken
      edge = left + wide;
      const number = model.name[slice], dim = this.found !== null && !this.found[number];
      const wanted = dim ? this.page.look.dim : this.colors[number];
      if (wanted !== style) context.fillStyle = style = wanted;
      context.globalAlpha = share;
      context.fillRect(left, y, wide > 4 ? wide - 1 : wide, height);
      this.drawn++;
      if (wide > 34 && share === 1) {
        this.label(model.names[number], left + 4, y + height / 2, wide - 6, dim ? this.page.look.soft : "#fff");
        style = "";
      }
      if (slice === this.selected) {
        context.strokeStyle = this.page.look.ink;
        context.lineWidth = 2;
        context.strokeRect(left, y, wide, height);
      }
    };
    if (level === 0) {
      for (let index = first; index < last; index++) box(lane.slices[index], model.start[lane.slices[index]], model.end[lane.slices[index]], 1);
    } else {
      const groups = model.groups(lane, level), size = 4 ** level;
      for (let index = Math.floor(first / size); index < Math.ceil(last / size); index++) {
        const span = groups.end[index] - groups.start[index];
        box(groups.longest[index], groups.start[index], groups.end[index], span > 0 ? Math.max(0.25, Math.min(1, groups.busy[index] / span)) : 1);
      }
    }
    context.globalAlpha = 1;
  }

  drawCounter(counter, y, height) {
    const { context } = this, { at, value } = counter;
    if (at.length === 0) return;
    counter.most ??= value.reduce((most, one) => Math.max(most, one), 1);
    let low = 0, high = at.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (at[middle] > this.from) high = middle;
      else low = middle + 1;
    }
    context.fillStyle = this.page.look.curve;
    // The largest value of each pixel is drawn.
    let pixel = LABELS, largest = low > 0 ? value[low - 1] : 0, now = largest;
    const bar = (until) => {
      if (until <= pixel) return;
      const tall = (Math.max(0, largest) / counter.most) * height;
      context.fillRect(pixel, y + height - tall, until - pixel, tall);
      this.drawn++;
      pixel = until;
      largest = now;
    };
    for (let index = low; index < at.length && at[index] < this.to; index++) {
      bar(Math.floor(this.x(at[index])));
      now = value[index];
      largest = Math.max(largest, now);
    }
    bar(LABELS + this.width);
    this.label(`max ${counter.most.toLocaleString("en")}`, LABELS + 4, y + 7, 120, this.page.look.soft);
  }

  drawArrows(height) {
    const { context, model } = this, { from, to } = model.arrows;
    const shown = [];
    if (from.length <= ARROWS_SCANNED || this.selected >= 0) {
      for (let index = 0; index < from.length; index++) {
        const mine = from[index] === this.selected || to[index] === this.selected;
        if (model.end[to[index]] < this.from || model.start[from[index]] > this.to) continue;
        if (mine || (this.selected < 0 && shown.length <= MOST_ARROWS)) shown.push(index);
      }
    }
    this.arrows = shown.length > MOST_ARROWS ? 0 : shown.length;
    if (this.arrows === 0) return;
    context.save();
    context.beginPath();
    context.rect(LABELS, AXIS, this.width, height);
    context.clip();
    context.strokeStyle = this.page.look.arrow;
    context.lineWidth = this.selected < 0 ? 1 : 2;
    context.globalAlpha = this.selected < 0 ? 0.45 : 1;
    for (const index of shown) {
      const [source, target] = [from[index], to[index]];
      const y = (slice) => this.top[model.lane[slice]] - this.scroll + AXIS + LANE / 2;
      const left = this.x(Math.min(model.end[source], model.start[target])), right = this.x(model.start[target]);
      const [above, below] = [y(source), y(target)];
      context.beginPath();
      context.moveTo(left, above);
      const bend = Math.max(8, (right - left) / 2);
      context.bezierCurveTo(left + bend, above, right - bend, below, right, below);
      context.moveTo(right - 5, below - 3);
      context.lineTo(right, below);
      context.lineTo(right - 5, below + 3);
      context.stroke();
    }
    context.restore();
  }
}

class Page {
  constructor(files) {
    this.main = document.querySelector("main");
    this.output = document.getElementById("output");
    this.linked = document.getElementById("linked");
    this.ranging = false;
    this.length = Math.max(...files.map(([, model]) => model.length));
    this.looks();
    this.panels = files.map(([name, model]) => new Panel(this, name, model));
    for (const panel of this.panels) this.main.append(panel.element);
    document.body.classList.toggle("pair", this.panels.length > 1);
    this.controls();
    new ResizeObserver(() => this.redraw()).observe(this.main);
    this.redraw();
  }

  looks() {
    const style = getComputedStyle(document.documentElement);
    const names = ["paper", "ink", "soft", "line", "head", "dim", "range", "curve", "arrow"];
    this.look = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  controls() {
    const search = document.getElementById("search"), hits = document.getElementById("hits");
    let last = -1, chosen = this.panels[0];
    const find = (step) => {
      const text = search.value.trim().toLowerCase();
      let count = 0;
      for (const panel of this.panels) {
        panel.found = text ? Uint8Array.from(panel.model.names, (name) => Number(name.toLowerCase().includes(text))) : null;
        if (panel.found) for (const name of panel.model.name) count += panel.found[name];
      }
      hits.textContent = text ? `${count.toLocaleString("en")} slices` : "";
      if (step !== 0 && count > 0) {
        for (let tries = 0; tries <= this.panels.length; tries++) {
          const { name } = chosen.model;
          for (last += step; last >= 0 && last < name.length; last += step) if (chosen.found[name[last]]) return chosen.select(last, true);
          chosen = this.panels[(this.panels.indexOf(chosen) + 1) % this.panels.length];
          last = step > 0 ? -1 : chosen.model.name.length;
        }
      }
      this.redraw();
    };
    search.addEventListener("input", () => {
      last = -1;
      find(0);
    });
    search.addEventListener("keydown", (event) => event.key === "Enter" && find(event.shiftKey ? -1 : 1));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && event.target !== search) {
        event.preventDefault();
        search.focus();
      }
    });
    const act = {
      in: () => this.panels.forEach((panel) => panel.zoom(0.6)), out: () => this.panels.forEach((panel) => panel.zoom(1 / 0.6)),
      all: () => this.panels.forEach((panel) => panel.show(0, this.linked.checked ? this.length : panel.model.length)),
      range: () => document.getElementById("range").setAttribute("aria-pressed", String((this.ranging = !this.ranging))),
      theme: () => {
        const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
        document.documentElement.dataset.theme = dark ? "light" : "dark";
        this.looks();
        this.redraw();
      },
    };
    for (const [name, call] of Object.entries(act)) document.getElementById(name).addEventListener("click", call);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.looks();
      this.redraw();
    });
    this.output.addEventListener("click", (event) => {
      const place = event.target.dataset.slice;
      if (place === undefined) return;
      this.panels[Number(event.target.dataset.panel)].select(Number(place), true);
    });
  }

  /** Lets the other panels follow. */
  moved(panel) {
    if (this.linked.checked)
      for (const other of this.panels ?? []) [other.from, other.to] = [panel.from, panel.to];
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const begin = performance.now();
    for (const panel of this.panels ?? []) panel.draw();
    this.frame = performance.now() - begin;
    const data = document.documentElement.dataset;
    data.drawn = this.panels.reduce((sum, panel) => sum + panel.drawn, 0);
    data.arrows = this.panels.reduce((sum, panel) => sum + (panel.arrows ?? 0), 0);
  }

  details(panel, slice) {
    const { model } = panel, lane = model.lanes[model.lane[slice]], number = this.panels.indexOf(panel);
    const link = (one) => {
      const of = model.lanes[model.lane[one]];
      const text = `${model.names[model.name[one]]}, ${model.processes[of.process]} ${of.name}, ${time(model.start[one])}`;
      return `<button class="link" data-panel="${number}" data-slice="${one}">${escape(text)}</button>`;
    };
    const { before, after } = model.neighbours(slice);
    const rows = [
      ["row", escape(`${model.processes[lane.process]} · ${lane.name}`)],
      ["start", `${time(model.start[slice], 7)} <small>${model.start[slice].toLocaleString("en")} ps</small>`],
      ["duration", `${time(model.end[slice] - model.start[slice], 7)}`],
      ...model.arguments(slice).map(([name, value]) => [escape(name), escape(value.toLocaleString?.("en") ?? value)]),
      ...(before.length ? [["caused by", before.slice(0, 20).map(link).join("<br>")]] : []),
      ...(after.length ? [["leads to", after.slice(0, 20).map(link).join("<br>")]] : []),
    ];
    this.output.innerHTML = `<h3>${escape(model.names[model.name[slice]])}</h3><table>${rows
      .map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`).join("")}</table>`;
  }

  sum(panel, [from, to]) {
    const { names, lanes } = panel.model.summary(from, to), span = to - from;
    const row = (cells) => `<tr>${cells.map((cell, index) => (index ? `<td class="number">${cell}</td>` : `<td>${cell}</td>`)).join("")}</tr>`;
    const place = (lane) => escape(`${panel.model.processes[lane.process]} · ${lane.name}${lane.depth ? `, level ${lane.depth + 1}` : ""}`);
    this.output.innerHTML = `<h3>${time(from, 6)} to ${time(to, 6)}: ${time(span, 6)}</h3><div class="columns">
      <table><thead>${row(["slices", "number", "time", "mean", "longest"])}</thead>${names.slice(0, 40)
        .map((one) => row([escape(one.name), one.count.toLocaleString("en"), time(one.time), time(one.time / one.count), time(one.longest)])).join("")}</table>
      <table><thead>${row(["row", "busy", "share"])}</thead>${lanes.slice(0, 40)
        .map((one) => row([place(one.lane), time(one.busy), `${((100 * one.busy) / span).toFixed(1)} %`])).join("")}</table></div>`;
  }
}

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Zooms and pans for `count` frames; sets the median times between frames, and of drawing one, in ms. */
async function measure(page, count) {
  const between = [], drawing = [], panel = page.panels[0], data = document.documentElement.dataset;
  let last = 0;
  for (let frame = 0; frame < count; frame++) {
    const now = await new Promise((resolve) => requestAnimationFrame(resolve)), phase = frame / count;
    if (frame > 0) between.push(now - last);
    last = now;
    const span = panel.model.length * 0.001 ** Math.abs(Math.sin(3 * phase)), from = phase * (panel.model.length - span);
    panel.show(from, from + span);
    page.draw();
    drawing.push(page.frame);
  }
  const median = (times) => times.sort((a, b) => a - b)[times.length >> 1].toFixed(2);
  [data.between, data.drawing] = [median(between), median(drawing)];
}

async function begin() {
  const output = document.getElementById("output"), data = document.documentElement.dataset, files = [];
  try {
    for (const script of document.querySelectorAll("script[type='text/x-trace']")) {
      output.textContent = `reading ${script.dataset.name}…`;
      const model = new Model(await unpack(script.textContent.trim()));
      script.textContent = "";
      files.push([script.dataset.name, model]);
    }
  } catch (error) {
    output.textContent = `The timeline cannot be read: ${error.message}`;
    throw error;
  }
  output.innerHTML = document.getElementById("help").innerHTML;
  data.slices = files.map(([, model]) => model.start.length).join(" ");
  const page = (window.page = new Page(files));
  page.draw();
  if (location.hash.startsWith("#measure=")) await measure(page, Number(location.hash.slice(9)));
  data.ready = "true";
}

begin();
