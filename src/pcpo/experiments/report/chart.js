"use strict";
// Draws the charts of a report from the JSON in the same page. Nothing else is loaded, and no text from a run is ever
// read as HTML: everything goes through textContent.
(() => {
  const DATA = JSON.parse(document.getElementById("report-data").textContent);
  const SPACE = document.getElementById("sprite").namespaceURI;
  const AXES = {
    update: "updates",
    steps: "steps of the environment, per seed",
    hours: "hours of wall clock",
    violations: "violations so far, mean over seeds",
  };

  const MANY = 16; // lines that a reader can tell apart in a list

  // Numbers and small things.

  const at = (column, i) => (Array.isArray(column) ? column[i] : column);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const minus = (text) => text.replace(/^-/, "\u2212");

  function trimmed(text) {
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function short(value, digits = 4) {
    if (value === null || value === undefined) return "not measured";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
      const [mantissa, power] = value.toExponential(digits - 1).split("e");
      return minus(`${trimmed(mantissa)}e${Number(power)}`);
    }
    const decimals = size === 0 ? 0 : clamp(digits - 1 - Math.floor(Math.log10(size)), 0, 9);
    const [whole, part] = trimmed(value.toFixed(decimals)).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return minus(part ? `${grouped}.${part}` : grouped);
  }

  function tickLabel(value, step) {
    const size = Math.abs(value);
    if (size >= 1e15) return short(value, 2);
    for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= unit && step >= unit / 100) return minus(trimmed((value / unit).toFixed(2)) + name);
    }
    if (size !== 0 && size < 1e-4) return short(value, 2);
    return minus(trimmed(value.toFixed(clamp(1 - Math.floor(Math.log10(step || 1)), 0, 9))));
  }

  function linearTicks(low, high, count) {
    const raw = (high - low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
    return { step, values: found };
  }

  function logTicks(low, high) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) / 6));
    const found = [];
    for (let power = first; power <= last; power += every) found.push(10 ** power);
    if (found.length < 2) {
      for (let power = first - 1; power <= last; power += 1) {
        for (const m of [2, 5]) if (m * 10 ** power >= low && m * 10 ** power <= high) found.push(m * 10 ** power);
      }
      found.sort((a, b) => a - b);
    }
    return { step: 0, values: found };
  }

  function power(value) {
    const whole = Math.round(Math.log10(value));
    if (whole > -3 && whole < 5) return tickLabel(value, value);
    const digits = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
    return "10" + (whole < 0 ? "\u207b" : "") + [...String(Math.abs(whole))].map((digit) => digits[digit]).join("");
  }

  function drawn(name, attributes = {}, parent = null, text = null) {
    const node = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function made(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") node.className = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  function button(label, title, act) {
    const node = made("button", { type: "button", title }, label);
    node.addEventListener("click", act);
    return node;
  }

  function save(name, kind, text) {
    const link = made("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /** The row whose x is nearest to a place; rows rise. */
  function nearest(column, n, x) {
    if (!Array.isArray(column)) return 0;
    let low = 0, high = n - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (column[middle] <= x) low = middle; else high = middle;
    }
    return Math.abs(column[high] - x) < Math.abs(column[low] - x) ? high : low;
  }

  // What charts that belong together share: which lines are hidden, the horizontal axis, the band; and the zoom.

  class Group {
    constructor() {
      Object.assign(this, { charts: [], hidden: new Set(), axis: "update", band: "std" });
    }

    draw() {
      for (const chart of this.charts) chart.draw();
    }
  }

  /** The part of the horizontal axis that some charts show; null for all of it. */
  class Zoom {
    constructor() {
      Object.assign(this, { domain: null, charts: [] });
    }

    to(domain) {
      this.domain = domain;
      for (const chart of this.charts) chart.draw();
    }
  }

  class Chart {
    constructor(figure, spec, group, zoom, name) {
      Object.assign(this, { figure, spec, group, zoom, name });
      this.cursor = null;
      group.charts.push(this);
      zoom.charts.push(this);
      this.plot = made("div", {
        class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
        "aria-label": this.described(), "aria-describedby": "chart-keys",
      });
      this.svg = drawn("svg", { "aria-hidden": "true", focusable: "false" }, this.plot);
      this.tip = made("div", { class: "tip", hidden: "" });
      this.said = made("div", { class: "unseen", "aria-live": "polite" });
      this.plot.append(this.tip, this.said);
      this.reset = button("reset zoom", "show all again", () => this.zoom.to(null));
      this.reset.className = "reset";
      const tools = made("div", { class: "tools" }, this.reset,
        button("CSV", `save the numbers of ${spec.title}`, () => save(`${name}.csv`, "text/csv", this.csv())),
        button("SVG", `save the picture of ${spec.title}`, () => save(`${name}.svg`, "image/svg+xml", this.picture())));
      figure.querySelector("figcaption").append(tools);
      figure.append(this.plot, this.numbers());
      this.listen();
      new ResizeObserver(() => {
        if (this.plot.clientWidth !== this.width) this.draw();
      }).observe(this.plot);
    }

    // To be told apart by what is drawn: lines, or statuses.

    get lines() {
      return this.spec.lines.filter((line) => !this.group.hidden.has(line.key));
    }

    get kind() {
      return this.spec.axis ?? this.group.axis;
    }

    axis(line) {
      return line.x[this.kind] ?? line.x.update;
    }

    described() {
      const names = this.spec.lines.map((line) => line.name);
      const all = names.length > 6 ? `${names.length} lines` : names.join(", ");
      return `${this.spec.title}: ${this.spec.about}. ${all}.`;
    }

    extent() {
      let low = Infinity, high = -Infinity;
      for (const line of this.lines.length ? this.lines : this.spec.lines) {
        const column = this.axis(line), n = line.x.update.length;
        low = Math.min(low, at(column, 0));
        high = Math.max(high, at(column, n - 1));
      }
      return low < high ? [low, high] : [low - 0.5, low + 0.5];
    }

    reach(line, i) {
      const mean = at(line.mean, i);
      if (mean === null || line.low === undefined || this.spec.bands === false || this.group.band === "none") return null;
      if (line.std === undefined || this.group.band === "range") return [at(line.low, i), at(line.high, i)];
      const width = at(line.std, i) * (this.group.band === "interval" ? at(line.student, i) : 1);
      return [mean - width, mean + width];
    }

    heights(domain) {
      let low = Infinity, high = -Infinity;
      const take = (value) => {
        if (value === null || value === undefined || (this.spec.log && value <= 0)) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      };
      for (const line of this.lines) {
        const column = this.axis(line), n = line.x.update.length;
        for (let i = 0; i < n; i += 1) {
          if (at(column, Math.min(i + 1, n - 1)) < domain[0] || at(column, Math.max(i - 1, 0)) > domain[1]) continue;
          take(at(line.mean, i));
          const reach = this.reach(line, i);
          if (reach) reach.forEach(take);
        }
      }
      const measured = low <= high;
      const least = low;
      const limits = this.limits().flatMap((limit) => limit.heights);
      [...limits, ...this.spec.marks.map((mark) => mark.value)].forEach(take);
      this.measured = measured;
      if (low > high) return this.spec.log ? [0.1, 1] : [0, 1];
      if (this.spec.log) return [low / 1.4, Math.max(high, 3 * low) * 1.4];
      let span = high - low || Math.abs(high) || 1;
      if (limits.length) span = Math.max(span, 0.4 * Math.max(...limits.map(Math.abs)));
      let bottom = low - 0.06 * span, top = high + 0.08 * span;
      for (const limit of limits) {
        bottom = Math.min(bottom, limit - 0.2 * span);
        top = Math.max(top, limit + 0.2 * span);
      }
      if (measured && least >= 0 && (limits.length || low < 0.3 * high) && limits.every((limit) => limit >= 0)) bottom = 0;
      return [bottom, top];
    }

    /** The limits in force: one for all lines where they agree, otherwise each in its line's colour. */
    limits() {
      const found = new Map();
      for (const line of this.lines) {
        if (line.limit === undefined) continue;
        const key = JSON.stringify(Array.isArray(line.limit) ? [line.limit, line.x.update] : line.limit);
        if (!found.has(key)) found.set(key, { line, heights: [line.limit].flat() });
      }
      const limits = [...found.values()];
      for (const limit of limits) limit.single = limits.length === 1;
      return limits;
    }

    // Drawing.

    draw() {
      this.width = this.plot.clientWidth;
      if (!this.width) return;
      this.height = clamp(0.58 * this.width, 210, 300);
      this.svg.replaceChildren();
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      this.full = this.extent();
      this.domain = this.zoom.domain ?? this.full;
      this.reset.hidden = this.zoom.domain === null;
      this.frame();
      const clip = drawn("clipPath", { id: `${this.name}-clip` }, drawn("defs", {}, this.svg));
      drawn("rect", { x: this.left - 5, y: this.top - 1, width: this.right - this.left + 10, height: this.bottom - this.top + 2 }, clip);
      this.inside = drawn("g", { "clip-path": `url(#${this.name}-clip)` }, this.svg);
      this.fill();
      this.over = drawn("g", {}, this.svg);
      this.mark();
    }

    frame() {
      [this.low, this.high] = this.heights(this.domain);
      const scale = this.spec.log ? logTicks(this.low, this.high) : linearTicks(this.low, this.high, 6);
      const powers = this.spec.log && scale.values.every((value) => Math.abs(Math.log10(value) % 1) < 1e-9);
      const labels = scale.values.map((value) => (powers ? power(value) : tickLabel(value, scale.step || value)));
      const widest = Math.max(...labels.map((label) => label.length), 2);
      Object.assign(this, { left: 14 + 6.6 * widest, right: this.width - 10, top: 10, bottom: this.height - 38 });
      scale.values.forEach((value, i) => {
        const y = this.y(value);
        drawn("line", { class: "rule", x1: this.left, x2: this.right, y1: y, y2: y }, this.svg);
        drawn("text", { class: "tick", x: this.left - 6, y: y + 4, "text-anchor": "end" }, this.svg, labels[i]);
      });
      this.horizontal();
    }

    horizontal() {
      const room = Math.max(2, Math.floor((this.right - this.left) / 70));
      const scale = linearTicks(this.domain[0], this.domain[1], room);
      const whole = this.kind === "update";
      for (const value of scale.values) {
        if (whole && Math.abs(value - Math.round(value)) > 1e-9) continue;
        const x = this.x(value);
        drawn("line", { class: "edge", x1: x, x2: x, y1: this.bottom, y2: this.bottom + 4 }, this.svg);
        drawn("text", { class: "tick", x: clamp(x, this.left + 4, this.right - 8), y: this.bottom + 17, "text-anchor": "middle" },
          this.svg, tickLabel(value, scale.step));
      }
      drawn("line", { class: "edge", x1: this.left, x2: this.right, y1: this.bottom, y2: this.bottom }, this.svg);
      drawn("text", { class: "name", x: (this.left + this.right) / 2, y: this.height - 4, "text-anchor": "middle" },
        this.svg, AXES[this.kind]);
    }

    x(value) {
      return this.left + ((value - this.domain[0]) / (this.domain[1] - this.domain[0])) * (this.right - this.left);
    }

    y(value) {
      const share = this.spec.log
        ? Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low)
        : (value - this.low) / (this.high - this.low);
      return this.bottom - share * (this.bottom - this.top);
    }

    fill() {
      this.drawLimits();
      for (const line of this.lines) this.drawBand(line);
      const broken = (line) => Number(Boolean(line.dash)); // on top, where it is seen although it covers another one
      for (const line of [...this.lines].sort((a, b) => broken(a) - broken(b))) this.drawLine(line);
      for (const mark of this.spec.marks) {
        const y = this.y(mark.value);
        drawn("line", { class: "limit", x1: this.left, x2: this.right, y1: y, y2: y }, this.inside);
        drawn("text", { class: "limit-name", x: this.right - 4, y: y - 5, "text-anchor": "end" }, this.inside, mark.name);
      }
      if (!this.measured) {
        drawn("text", { class: "name", x: (this.left + this.right) / 2, y: this.height / 2, "text-anchor": "middle" },
          this.inside, this.lines.length ? "not measured here" : "all lines are hidden");
      }
    }

    drawLimits() {
      for (const { line, heights, single } of this.limits()) {
        const column = this.axis(line), n = line.x.update.length;
        let path = `M${this.left},${this.y(heights[0]).toFixed(1)}`;
        if (heights.length > 1) {
          for (let i = 1; i < n; i += 1) {
            if (heights[i] !== heights[i - 1]) path += `H${this.x(at(column, i)).toFixed(1)}V${this.y(heights[i]).toFixed(1)}`;
          }
        }
        path += `H${single ? this.right : this.x(at(column, n - 1)).toFixed(1)}`;
        if (single) {
          drawn("path", { class: "forbidden", d: `${path}V${this.top - 1}H${this.left}Z` }, this.inside);
          const last = heights[heights.length - 1], low = this.y(last) > this.bottom - 24;
          drawn("text", { class: "limit-name", x: this.right - 4, y: this.y(last) + (low ? -5 : 14), "text-anchor": "end" },
            this.inside, heights.every((each) => each === last) ? `limit ${short(last)}` : "limit, changed on the way");
          drawn("text", { class: "limit-name", x: this.right - 4, y: this.top + 13, "text-anchor": "end" },
            this.inside, "limit violated");
        }
        const style = single ? "limit" : `limit k${line.color}`;
        drawn("path", { class: style, d: path, ...(single ? {} : { stroke: "currentColor" }) }, this.inside);
      }
    }

    points(line) {
      const column = this.axis(line), stretches = [];
      let stretch = [];
      for (let i = 0; i < line.x.update.length; i += 1) {
        const mean = at(line.mean, i), x = at(column, i);
        if (mean === null || x === null || (this.spec.log && mean <= 0)) {
          if (stretch.length) stretches.push(stretch);
          stretch = [];
        } else stretch.push({ i, x: this.x(x).toFixed(1), y: this.y(mean).toFixed(1) });
      }
      if (stretch.length) stretches.push(stretch);
      return stretches;
    }

    drawBand(line) {
      for (const stretch of this.points(line)) {
        if (stretch.length < 2 || line.points || !this.reach(line, stretch[0].i)) continue;
        const edges = stretch.map(({ i }) => this.reach(line, i));
        const up = stretch.map(({ x }, j) => `${x},${this.y(edges[j][1]).toFixed(1)}`);
        const down = stretch.map(({ x }, j) => `${x},${this.y(edges[j][0]).toFixed(1)}`).reverse();
        drawn("path", { class: `band k${line.color}`, d: `M${up.join("L")}L${down.join("L")}Z` }, this.inside);
      }
    }

    drawLine(line) {
      for (const stretch of this.points(line)) {
        if (stretch.length > 1 && !line.points) {
          drawn("path", {
            class: `line k${line.color}`, d: `M${stretch.map(({ x, y }) => `${x},${y}`).join("L")}`,
            ...(line.dash ? { "stroke-dasharray": line.dash } : {}),
          }, this.inside);
        } else {
          for (const { x, y } of stretch) drawn("circle", { class: `dot k${line.color}`, cx: x, cy: y, r: line.points ? 3 : 2 }, this.inside);
        }
      }
      if (this.spec.axis) this.drawEnd(line);
      for (const i of line.refused ?? []) {
        let known = i;
        while (known > 0 && at(line.mean, known) === null) known -= 1;
        const value = at(line.mean, known);
        if (value === null) continue;
        const x = this.x(at(this.axis(line), i)), y = this.y(value);
        drawn("path", { class: "refused", d: `M${x - 4},${y - 4}l8,8m0,-8l-8,8` }, this.inside);
      }
    }

    drawEnd(line) {
      const last = this.points(line).pop()?.pop();
      if (last) drawn("circle", { class: `spot k${line.color}`, cx: last.x, cy: last.y, r: 4.5 }, this.inside);
    }

    // The cursor: what every line says at an update.

    targets() {
      let longest = null;
      for (const line of this.lines) {
        if (!longest || line.x.update.length > longest.x.update.length) longest = line;
      }
      return longest;
    }

    /** To the measured place next to the pointer; among those at hand, the one that most lines have. */
    move(x) {
      const places = this.lines.map((line) => {
        const column = this.axis(line);
        return at(column, nearest(column, line.x.update.length, x));
      });
      const gaps = places.map((place) => Math.abs(place - x));
      const hand = Math.max(Math.min(...gaps), 0.01 * (this.domain[1] - this.domain[0]));
      const votes = (place) => places.filter((other) => other === place).length;
      let best = null;
      places.forEach((place, i) => {
        if (gaps[i] > hand) return;
        const better = best === null || votes(place) - votes(places[best]) || gaps[best] - gaps[i];
        if (better === true || better > 0) best = i;
      });
      this.cursor = best === null ? null : places[best];
      this.mark();
    }

    step(count) {
      const line = this.targets();
      if (!line) return;
      const column = this.axis(line), n = line.x.update.length;
      let i = this.cursor === null ? (count > 0 ? -1 : n) : nearest(column, n, this.cursor);
      if (this.cursor !== null && !Array.isArray(column)) i = 0;
      i = clamp(i + count, 0, n - 1);
      this.cursor = clamp(at(column, i), this.domain[0], this.domain[1]);
      this.mark();
      this.said.textContent = this.tip.textContent;
    }

    leave() {
      this.cursor = this.pointer = null;
      this.said.textContent = "";
      this.mark();
    }

    readings() {
      return this.lines.map((line) => {
        const column = this.axis(line), i = nearest(column, line.x.update.length, this.cursor);
        return { line, i, x: at(column, i), beyond: this.cursor > at(column, line.x.update.length - 1) };
      });
    }

    mark() {
      this.over.replaceChildren();
      const seen = this.cursor !== null && this.cursor >= this.domain[0] && this.cursor <= this.domain[1] && this.lines.length;
      this.tip.hidden = !seen;
      if (!seen) return;
      const x = this.x(this.cursor);
      drawn("line", { class: "cursor", x1: x, x2: x, y1: this.top, y2: this.bottom }, this.over);
      const rows = this.readings();
      const told = this.told(rows);
      for (const { line, i, beyond } of rows) {
        const mean = at(line.mean, i), place = at(this.axis(line), i);
        if (mean === null || beyond || (this.spec.log && mean <= 0)) continue;
        if (place < this.domain[0] || place > this.domain[1]) continue;
        drawn("circle", { class: `spot k${line.color}`, cx: this.x(place), cy: this.y(mean), r: 3.5 }, this.over);
      }
      this.tell(x, this.heading(), told.map((row) => this.reading(row)), rows.length - told.length);
    }

    /** All lines; of too many, those next to the pointer. */
    told(rows) {
      if (rows.length <= MANY) return rows;
      const away = (row) => {
        const mean = at(row.line.mean, row.i);
        return mean === null || row.beyond ? Infinity : Math.abs(this.y(mean) - (this.pointer ?? this.top));
      };
      const near = new Set([...rows].sort((a, b) => away(a) - away(b)).slice(0, MANY));
      return rows.filter((row) => near.has(row));
    }

    heading() {
      const value = short(this.cursor, 6);
      return { update: `update ${value}`, steps: `${value} steps`, hours: `${value} hours`, violations: `violations ${value}` }[this.kind];
    }

    reading({ line, i, x, beyond }) {
      if (beyond) return [line.color, line.name, `ended at ${short(x, 6)}`];
      const reach = this.reach(line, i);
      let text = short(at(line.mean, i));
      if (reach && line.std !== undefined && this.group.band !== "range") text += ` \u00b1 ${short(reach[1] - at(line.mean, i), 2)}`;
      else if (reach) text += ` (${short(reach[0], 3)} to ${short(reach[1], 3)})`;
      if (line.limit !== undefined && at(line.mean, i) > at(line.limit, i)) text += " \u25b2";
      if (x !== this.cursor) text += this.kind === "update" ? ` at ${short(x, 6)}` : "";
      return [line.color, line.name, text];
    }

    tell(x, heading, rows, others = 0) {
      const body = rows.map(([color, name, text]) =>
        made("tr", {}, made("td", {}, made("i", { class: `swatch k${color}` })), made("th", { scope: "row" }, `${name} `), made("td", {}, `${text}; `.slice(0, -2))));
      this.tip.replaceChildren(made("strong", {}, heading), made("table", {}, made("tbody", {}, ...body)),
        others ? `nearest ${rows.length} lines; ${others} more: hide some in the legend to read them` : "");
      const room = this.plot.clientWidth, scale = room / this.width, wide = this.tip.offsetWidth;
      const right = x * scale + 14 + wide <= room;
      this.tip.style.left = `${right ? x * scale + 14 : Math.max(0, x * scale - 14 - wide)}px`;
    }

    // Pointer and keys.

    place(event) {
      const box = this.plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) * this.width) / box.width;
      return this.domain[0] + ((clamp(x, this.left, this.right) - this.left) / (this.right - this.left)) * (this.domain[1] - this.domain[0]);
    }

    point(event) {
      const x = this.place(event), box = this.plot.getBoundingClientRect();
      this.pointer = ((event.clientY - box.top) * this.width) / box.width;
      this.move(x);
      return x;
    }

    zoomAbout(x, factor) {
      const [low, high] = this.domain;
      const wanted = [x - (x - low) * factor, x + (high - x) * factor];
      const [first, last] = this.full;
      if (wanted[1] - wanted[0] >= last - first) this.zoom.to(null);
      else if (wanted[1] - wanted[0] > 1e-4 * (last - first)) this.zoom.to([Math.max(wanted[0], first), Math.min(wanted[1], last)]);
    }

    listen() {
      const plot = this.plot;
      let from = null;
      plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        from = this.place(event);
        plot.setPointerCapture(event.pointerId);
        this.point(event);
      });
      plot.addEventListener("pointermove", (event) => {
        const x = this.point(event);
        if (from !== null && Math.abs(this.x(x) - this.x(from)) > 4) {
          const [a, b] = [this.x(from), this.x(x)].sort((p, q) => p - q);
          drawn("rect", { class: "brush", x: a, y: this.top, width: b - a, height: this.bottom - this.top }, this.over);
        }
      });
      plot.addEventListener("pointerup", (event) => {
        const x = this.place(event), start = from;
        from = null;
        if (start !== null && Math.abs(this.x(x) - this.x(start)) > 8) this.zoom.to([Math.min(start, x), Math.max(start, x)]);
      });
      plot.addEventListener("pointercancel", () => { from = null; this.leave(); });
      // A finger that is lifted leaves too, but what it pointed at is to be read; touching something else ends that.
      plot.addEventListener("pointerleave", (event) => { if (from === null && event.pointerType !== "touch") this.leave(); });
      plot.addEventListener("dblclick", () => this.zoom.to(null));
      // A page that cannot be scrolled past its charts is a trap: the wheel is ours once the chart was clicked.
      plot.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && document.activeElement !== plot) return;
        event.preventDefault();
        this.zoomAbout(this.place(event), event.deltaY < 0 ? 0.8 : 1.25);
      }, { passive: false });
      plot.addEventListener("blur", () => this.leave());
      plot.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const middle = this.cursor ?? (this.domain[0] + this.domain[1]) / 2;
      const acts = {
        ArrowRight: () => this.step(event.shiftKey ? 10 : 1),
        ArrowLeft: () => this.step(event.shiftKey ? -10 : -1),
        Home: () => this.step(-Infinity),
        End: () => this.step(Infinity),
        "+": () => this.zoomAbout(middle, 0.5),
        "=": () => this.zoomAbout(middle, 0.5),
        "-": () => this.zoomAbout(middle, 2),
        0: () => this.zoom.to(null),
        Escape: () => (this.cursor === null ? this.zoom.to(null) : this.leave()),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    }

    // The same in numbers.

    numbers() {
      const details = made("details", { class: "numbers" }, made("summary", {}, `${this.spec.title} in numbers`));
      details.addEventListener("toggle", () => {
        if (details.open && details.childElementCount === 1) details.append(this.table());
      });
      return details;
    }

    table() {
      const { lines } = this.spec;
      const updates = [...new Set(lines.flatMap((line) => line.x.update))].sort((a, b) => a - b);
      const has = lines.map((line) => new Set(line.x.update));
      const ends = lines.map((line) => line.x.update[line.x.update.length - 1]);
      const common = updates.filter((update) => lines.every((_, i) => has[i].has(update) || update > ends[i]));
      const every = Math.ceil(common.length / 100);
      const shown = common.filter((_, i) => i % every === 0 || i === common.length - 1);
      const head = made("tr", {}, made("th", { scope: "col" }, "update"),
        ...this.spec.lines.map((line) => made("th", { scope: "col" }, line.name)));
      const rows = shown.map((update) => made("tr", {}, made("th", { scope: "row" }, short(update, 9)), ...this.spec.lines.map((line) => {
        const i = line.x.update.indexOf(update);
        return made("td", {}, i < 0 ? "" : short(at(line.mean, i)));
      })));
      const said = shown.length < updates.length
        ? `${shown.length} of ${updates.length} updates that are drawn; CSV saves all of them.` : "All updates that are drawn.";
      const table = made("table", {}, made("caption", {}, `Means over seeds. ${said}`), made("thead", {}, head), made("tbody", {}, ...rows));
      return made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${this.spec.title} in numbers` }, table);
    }

    csv() {
      const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
      const columns = ["mean", "std", "low", "high", "limit"].filter((name) => this.spec.lines.some((line) => line[name] !== undefined));
      const axes = Object.keys(this.spec.lines[0].x);
      const rows = [["line", ...axes, ...columns].join(",")];
      for (const line of this.spec.lines) {
        for (let i = 0; i < line.x.update.length; i += 1) {
          const cells = [...axes.map((axis) => at(line.x[axis], i)), ...columns.map((name) => at(line[name], i))];
          rows.push([quoted(`${line.name} [${line.key}]`), ...cells.map((cell) => cell ?? "")].join(","));
        }
      }
      return rows.join("\n") + "\n";
    }

    picture() {
      const copy = this.svg.cloneNode(true);
      const theirs = this.svg.querySelectorAll("*"), ours = copy.querySelectorAll("*");
      theirs.forEach((node, i) => {
        const style = getComputedStyle(node);
        for (const key of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "font-size", "font-family", "color"]) {
          ours[i].setAttribute(key, style.getPropertyValue(key));
        }
        ours[i].removeAttribute("class");
      });
      copy.setAttribute("width", this.width);
      copy.setAttribute("height", this.height);
      return new XMLSerializer().serializeToString(copy);
    }
  }

  /** Which share of the updates in each stretch had which status: one row of bars for each. */
  class Statuses extends Chart {
    get lines() {
      return [];
    }

    described() {
      return `${this.spec.title}: ${this.spec.names.join(", ")}.`;
    }

    extent() {
      return [this.spec.from[0] - 0.5, this.spec.to[this.spec.to.length - 1] + 0.5];
    }

    heights() {
      return [0, this.spec.names.length];
    }

    total(j) {
      return this.spec.counts.reduce((sum, counts) => sum + counts[j], 0);
    }

    frame() {
      [this.low, this.high] = this.heights();
      const widest = Math.max(...this.spec.names.map((name) => name.length), 4);
      Object.assign(this, { left: Math.min(14 + 6.4 * widest, 0.45 * this.width), right: this.width - 10, top: 10, bottom: this.height - 38 });
      const { names } = this.spec;
      names.forEach((name, row) => {
        const y = this.y(names.length - 1 - row + 0.5);
        drawn("text", { class: "tick", x: this.left - 8, y: y + 4, "text-anchor": "end" }, this.svg, name);
      });
      this.horizontal();
    }

    fill() {
      const { names, counts, severity, from, to } = this.spec;
      const tall = (this.bottom - this.top) / names.length;
      names.forEach((_, row) => {
        const middle = this.y(names.length - 1 - row + 0.5);
        counts[row].forEach((count, j) => {
          if (!count) return;
          const height = Math.max(1.5, 0.8 * Math.min(tall, 60) * (count / this.total(j)));
          const x = this.x(from[j] - 0.5), width = this.x(to[j] + 0.5) - x;
          drawn("rect", { class: `status s${severity[row]}`, x, width: Math.max(0.5, width - (width > 4 ? 1 : 0)), y: middle - height / 2, height }, this.inside);
        });
      });
    }

    move(x) {
      this.cursor = clamp(x, this.full[0], this.full[1]);
      this.mark();
    }

    stretch() {
      const j = this.spec.to.findIndex((last) => this.cursor <= last + 0.5);
      return j < 0 ? this.spec.to.length - 1 : j;
    }

    step(count) {
      const last = this.spec.to.length - 1;
      const j = clamp((this.cursor === null ? (count > 0 ? -1 : last + 1) : this.stretch()) + count, 0, last);
      this.cursor = clamp((this.spec.from[j] + this.spec.to[j]) / 2, this.domain[0], this.domain[1]);
      this.mark();
      this.said.textContent = this.tip.textContent;
    }

    mark() {
      this.over.replaceChildren();
      this.tip.hidden = this.cursor === null;
      if (this.cursor === null) return;
      const j = this.stretch(), { from, to, names, counts, severity } = this.spec;
      const x = this.x((from[j] + to[j]) / 2);
      drawn("line", { class: "cursor", x1: x, x2: x, y1: this.top, y2: this.bottom }, this.over);
      const heading = from[j] === to[j] ? `update ${short(from[j], 9)}` : `updates ${short(from[j], 9)} to ${short(to[j], 9)}`;
      const rows = names.map((name, row) => [`s${severity[row]}`, name, `${short(counts[row][j], 9)} of ${short(this.total(j), 9)}`]);
      this.tell(clamp(x, this.left, this.right), heading, rows.filter((_, row) => counts[row][j]));
    }

    table() {
      const { from, to, names, counts } = this.spec;
      const head = made("tr", {}, made("th", { scope: "col" }, "updates"), ...names.map((name) => made("th", { scope: "col" }, name)));
      const rows = from.map((first, j) => made("tr", {}, made("th", { scope: "row" }, first === to[j] ? String(first) : `${first} to ${to[j]}`),
        ...names.map((_, row) => made("td", {}, String(counts[row][j])))));
      const table = made("table", {}, made("caption", {}, "Updates of all seeds."), made("thead", {}, head), made("tbody", {}, ...rows));
      return made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${this.spec.title} in numbers` }, table);
    }

    csv() {
      const { from, to, names, counts } = this.spec;
      return [["from", "to", ...names].join(","), ...from.map((first, j) => [first, to[j], ...counts.map((each) => each[j])].join(","))].join("\n") + "\n";
    }
  }

  // Legends and controls.

  function legend(place, group, lines) {
    if (lines.length < 2) return;
    const show = (keys) => {
      group.hidden = new Set(lines.map((line) => line.key).filter((key) => !keys.has(key)));
      for (const each of buttons) each.setAttribute("aria-pressed", String(!group.hidden.has(each.dataset.key)));
      group.draw();
    };
    const shown = () => new Set(lines.map((line) => line.key).filter((key) => !group.hidden.has(key)));
    const buttons = lines.map((line) => {
      const swatch = drawn("svg", { class: `key k${line.color}`, viewBox: "0 0 26 8", "aria-hidden": "true" });
      drawn("line", { x1: 1, x2: 25, y1: 4, y2: 4, stroke: "currentColor", "stroke-width": 3, ...(line.dash ? { "stroke-dasharray": line.dash } : {}) }, swatch);
      const node = made("button", { type: "button", "aria-pressed": "true", title: "click: show or hide; Shift and click: only this one" }, swatch, made("bdi", {}, line.name));
      node.dataset.key = line.key;
      node.addEventListener("click", (event) => {
        const keys = shown();
        if (!event.shiftKey) show(keys.delete(line.key) ? keys : keys.add(line.key));
        else show(keys.size === 1 && keys.has(line.key) ? new Set(lines.map((each) => each.key)) : new Set([line.key]));
      });
      return node;
    });
    const all = lines.length > 4
      ? [button("all", "show all lines", () => show(new Set(lines.map((line) => line.key)))), button("none", "hide all lines", () => show(new Set()))]
      : [];
    for (const each of all) each.className = "at-once";
    place.replaceChildren(...buttons, ...all);
  }

  function begin(part) {
    if (part.dataset.begun) return;
    part.dataset.begun = "yes";
    const shared = part.dataset.charts === "curves" ? new Group() : null;
    const zoom = new Zoom();
    for (const figure of part.querySelectorAll("figure[data-chart]")) {
      const number = Number(figure.dataset.chart), spec = { ...DATA[number] };
      if (spec.same) spec.lines = DATA[number + spec.same].lines;
      const group = shared ?? new Group(), kind = spec.kind === "status" ? Statuses : Chart;
      const chart = new kind(figure, spec, group, spec.axis ? new Zoom() : zoom, `chart-${number}`);
      if (!shared && spec.kind !== "status") legend(figure.insertBefore(made("div", { class: "legend", role: "group", "aria-label": "Lines that are shown" }), chart.plot), group, spec.lines);
      chart.draw();
    }
    if (!shared) return;
    legend(part.querySelector(".legend"), shared, shared.charts[0].spec.lines);
    for (const select of part.querySelectorAll("select")) {
      select.addEventListener("change", () => {
        shared[select.name] = select.value;
        if (select.name === "axis") {
          zoom.domain = null;
          for (const chart of shared.charts) chart.cursor = null;
        }
        shared.draw();
      });
    }
  }

  for (const part of document.querySelectorAll("[data-charts]")) {
    const hidden = part.closest("details:not([open])");
    if (hidden) hidden.addEventListener("toggle", () => begin(part));
    else begin(part);
  }
  document.documentElement.classList.add("drawn");
})();
