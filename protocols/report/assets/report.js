"use strict";
(() => {
  // Names come from outside: they are only ever set as text, never as markup.
  // DRIVERS: see the constant of the same name in case_pages.py.
  const ROW = 38, EXTRA = 12, PRINTED = 100, DRIVERS = 8;
  const SVG = "http://www.w3.org/2000/svg";

  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const shape = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const isolated = (text) => make("bdi", {}, text);
  const shorten = (text, limit) => text.length > limit ? text.slice(0, limit - 1) + "…" : text;
  const fixed = (value, digits) => value === null ? "none" : value.toFixed(digits);
  const signed = (value, digits) => {
    const text = value.toFixed(digits);
    const shown = value !== 0 && Number(text) === 0 ? value.toExponential(1) : text;
    return (value > 0 ? "+" : "") + shown;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b));
  };
  const title = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
  const fill = (select, options) => {
    select.replaceChildren(...options.map(([value, text]) => make("option", { value }, shorten(text, 80))));
  };

  // Sorts the rows of a small table; empty values stay last in both orders.
  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const keyOf = (row, i) => {
      const cell = row.cells[i];
      const text = cell.dataset.value ?? cell.textContent.trim();
      if (text === "") return null;
      const value = Number(text);
      return Number.isNaN(value) ? text : value;
    };
    heads.forEach((head, i) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [keyOf(row, i), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return down ? compare(b, a) : compare(a, b);
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  // The table of cases: only the rows in view are in the document.
  function makeCases(run, data) {
    const card = document.getElementById(`${run}-cases`);
    const role = (name) => card.querySelector(`[data-role="${name}"]`);
    const table = role("cases"), head = table.tHead, body = table.tBodies[0];
    const view = card.querySelector(".viewport");
    const fields = [
      { label: "Case", width: 260, left: true, key: (r) => r[1] },
      { label: "System", width: 170, left: true, key: (r) => data.systems[r[0]] },
      { label: "Status", width: 115, left: true, key: (r) => data.statuses[r[2]] },
      ...data.columns.map((c, i) => ({ label: c.label, width: 112, digits: c.digits,
        title: `${c.about} ${c.lower_is_better ? "Lower" : "Higher"} is better.`, key: (r) => r[5][i] })),
      ...(data.reasons.length ? [{ label: "Reason", width: 320, left: true, key: (r) => r[3] < 0 ? null : data.reasons[r[3]] }] : []),
      ...data.groups.map((g, i) => ({ label: title(g.name), width: 160, left: true, key: (r) => g.values[r[4][i]] })),
    ];
    table.style.minWidth = `${fields.reduce((sum, field) => sum + field.width, 0)}px`;
    const state = { sort: -1, down: false, rows: data.rows.map((_, i) => i) };

    const heads = fields.map((field, i) => {
      const button = make("button", { type: "button" }, field.label);
      if (field.title) button.title = field.title;
      const cell = make("th", { scope: "col" }, button);
      if (field.left) cell.className = "left";
      cell.style.width = `${field.width}px`;
      button.addEventListener("click", () => {
        state.down = state.sort === i ? !state.down : false;
        state.sort = i;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        refresh();
      });
      return cell;
    });
    head.append(make("tr", { "aria-rowindex": "1" }, ...heads));

    fill(role("status"), [["", "All statuses"], ...data.statuses.map((s, i) => [i, s])]);
    fill(role("system"), [["", "All systems"], ...data.systems.map((s, i) => [i, s])]);
    const groups = data.groups.map((group) => {
      const select = make("select", {});
      fill(select, [["", `All: ${group.name}`], ...group.values.map((v, i) => [i, v || "(none)"])]);
      role("groups").append(make("label", {}, title(group.name), " ", select));
      return select;
    });

    const rowOf = (position) => {
      const index = state.rows[position], row = data.rows[index];
      const line = make("tr", { class: "row", "aria-rowindex": String(position + 2) });
      fields.forEach((field, i) => {
        const value = field.key(row), cell = make("td");
        if (field.left) cell.className = "left";
        if (i === 0) {
          const link = make("a", { href: `${data.pages}/${index}.html` }, isolated(shorten(value, 160)));
          link.title = value;
          cell.append(link);
        } else if (i === 2) {
          cell.append(make("span", { class: `chip ${value}` }, value));
        } else if (value === null) {
          cell.append(make("span", { class: "none" }, i < 3 + data.columns.length ? "none" : ""));
        } else if (typeof value === "number") {
          cell.textContent = fixed(value, field.digits);
        } else {
          cell.append(isolated(shorten(value, 160)));
          cell.title = value;
        }
        line.append(cell);
      });
      return line;
    };
    const space = () => make("tr", { class: "space", "aria-hidden": "true" }, make("td", { colspan: String(fields.length) }));
    const above = space(), below = space();
    const drawn = new Map();

    function draw(first, last) {
      // Rows that stay keep their elements, so that focus is not lost.
      for (const [position, line] of drawn) {
        if (position < first || position >= last) { line.remove(); drawn.delete(position); }
      }
      let after = above;
      for (let position = first; position < last; position++) {
        let line = drawn.get(position);
        if (!line) {
          line = rowOf(position);
          drawn.set(position, line);
          after.after(line);
        }
        after = line;
      }
      above.firstChild.style.height = `${first * ROW}px`;
      below.firstChild.style.height = `${(state.rows.length - last) * ROW}px`;
      above.hidden = first === 0;
      below.hidden = last === state.rows.length;
    }
    function scrolled() {
      const first = Math.max(0, Math.floor(view.scrollTop / ROW) - EXTRA);
      const last = Math.min(state.rows.length, Math.ceil((view.scrollTop + view.clientHeight) / ROW) + EXTRA);
      draw(Math.min(first, last), last);
    }
    function refresh() {
      const text = role("search").value.trim().toLowerCase();
      const status = role("status").value, system = role("system").value;
      const wanted = groups.map((select) => select.value);
      state.rows = [];
      data.rows.forEach((row, i) => {
        if (status !== "" && row[2] !== Number(status)) return;
        if (system !== "" && row[0] !== Number(system)) return;
        if (wanted.some((value, g) => value !== "" && row[4][g] !== Number(value))) return;
        if (text && !row[1].toLowerCase().includes(text) && !(row[3] >= 0 && data.reasons[row[3]].toLowerCase().includes(text))) return;
        state.rows.push(i);
      });
      if (state.sort >= 0) {
        const key = fields[state.sort].key, down = state.down;
        const keys = new Map(state.rows.map((i) => [i, key(data.rows[i])]));
        state.rows.sort((a, b) => {
          const x = keys.get(a), y = keys.get(b);
          if (x === null || y === null) return (x === null) - (y === null) || a - b;
          return (down ? compare(y, x) : compare(x, y)) || a - b;
        });
      }
      table.setAttribute("aria-rowcount", String(state.rows.length + 1));
      role("count").textContent = `${state.rows.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} cases`;
      for (const line of drawn.values()) line.remove();
      drawn.clear();
      view.scrollTop = 0;
      scrolled();
    }
    body.append(above, below);
    view.addEventListener("scroll", () => requestAnimationFrame(scrolled), { passive: true });
    window.addEventListener("resize", scrolled);
    window.addEventListener("beforeprint", () => draw(0, Math.min(PRINTED, state.rows.length)));
    window.addEventListener("afterprint", scrolled);
    role("search").addEventListener("input", refresh);
    for (const select of [role("status"), role("system"), ...groups]) select.addEventListener("change", refresh);
    role("reset").addEventListener("click", () => {
      role("search").value = "";
      for (const select of [role("status"), role("system"), ...groups]) select.value = "";
      refresh();
    });
    refresh();
  }

  // Paired differences of two systems over the cases that both have.
  function makeComparison(run, data) {
    const card = document.getElementById(`${run}-compare`);
    const role = (name) => card.querySelector(`[data-role="${name}"]`);
    const a = role("a"), b = role("b"), metric = role("metric"), out = role("comparison");
    if (data.systems.length < 2) {
      card.querySelector(".filters").remove();
      out.replaceChildren(make("p", { class: "muted" }, "This run has a single system."));
      return;
    }
    for (const select of [a, b]) fill(select, data.order.map((i) => [i, data.systems[i]]));
    a.value = String(data.order[0]);
    b.value = String(data.order[1]);
    fill(metric, data.columns.map((column, i) => [i, column.label]));
    metric.value = String(data.main);
    const ok = data.statuses.indexOf("ok");
    const cases = new Map();
    data.rows.forEach((row, i) => {
      if (!cases.has(row[1])) cases.set(row[1], new Map());
      cases.get(row[1]).set(row[0], i);
    });

    const drivers = (title, pairs, column) => {
      const body = make("tbody");
      for (const pair of pairs) {
        const link = (index, text) => make("a", { href: `${data.pages}/${index}.html` }, text);
        const name = make("td", { class: "left" }, isolated(shorten(pair.name, 90)));
        name.title = pair.name;
        body.append(make("tr", {}, name,
          make("td", {}, link(pair.i, fixed(pair.x, column.digits))),
          make("td", {}, link(pair.j, fixed(pair.y, column.digits))),
          make("td", {}, signed(pair.d, column.digits))));
      }
      const head = make("thead", {}, make("tr", {},
        ...["Case", "First", "Second", "Difference"].map((t, i) => make("th", i ? { scope: "col" } : { scope: "col", class: "left" }, t))));
      const empty = make("p", { class: "muted" }, "No such case.");
      return make("div", {}, make("h4", {}, title), pairs.length
        ? make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, make("table", {}, make("caption", { class: "hidden-text" }, title), head, body)) : empty);
    };

    // Frames of one case, the two systems beside one another.
    const frames = (pairs, first, second) => {
      const both = pairs.filter((p) => data.shots[p.i] && data.shots[p.j]);
      if (!both.length) {
        return make("p", { class: "small muted" }, Object.keys(data.shots).length
          ? "No frames of both systems were drawn for these cases; --pictures=-1 draws all that can be reached."
          : "No frames stand here: none could be reached, or they lie inside the case pages (--embed).");
      }
      both.sort((p, q) => Math.abs(q.gain) - Math.abs(p.gain));
      const select = make("select", {}), grid = make("div", { class: "versus" });
      fill(select, both.slice(0, 200).map((p, k) => [k, p.name]));
      const draw = () => {
        const p = both[Number(select.value)], sides = [[p.i, first], [p.j, second]];
        grid.replaceChildren(...sides.map(([, name]) => make("p", { class: "name" }, isolated(name))));
        const count = Math.max(...sides.map(([row]) => data.shots[row].length));
        for (let k = 0; k < count; k++) {
          for (const [row, name] of sides) {
            const shot = data.shots[row][k];
            grid.append(shot ? make("figure", {},
              make("img", { loading: "lazy", src: `${data.pages}/${shot[0]}`, alt: `${shot[1]}, of ${name}` }),
              make("figcaption", {}, isolated(shot[1]))) : make("p", { class: "none" }, "no such frame"));
          }
        }
      };
      select.addEventListener("change", draw);
      draw();
      return make("div", {}, make("h4", {}, "Frames side by side"),
        make("div", { class: "filters" }, make("label", {}, "Case, largest difference first ", select)), grid);
    };

    const waterfall = (pairs, words) => {
      const top = Math.max(...pairs.map((p) => Math.abs(p.d)), 1e-12), step = 700 / pairs.length;
      const svg = shape("svg", { class: "waterfall", viewBox: "0 0 700 150", preserveAspectRatio: "none", role: "img", "aria-label": words });
      const better = [], worse = [];
      pairs.forEach((p, k) => {
        const x = (k * step).toFixed(2), h = (-70 * p.d / top).toFixed(2), w = Math.max(step * 0.9, 0.3).toFixed(2);
        (p.gain > 0 ? better : worse).push(`M${x} 75h${w}v${h}h-${w}z`);
      });
      svg.append(shape("path", { d: better.join(""), fill: "var(--s2)" }), shape("path", { d: worse.join(""), fill: "var(--s1)" }),
        shape("line", { x1: 0, x2: 700, y1: 75, y2: 75, stroke: "var(--muted)", "vector-effect": "non-scaling-stroke" }));
      return svg;
    };

    function refresh() {
      const first = Number(a.value), second = Number(b.value), m = Number(metric.value);
      const column = data.columns[m], sign = column.lower_is_better ? -1 : 1;
      const pairs = [];
      let without = 0;
      for (const [name, found] of cases) {
        if (!found.has(first) || !found.has(second)) continue;
        const i = found.get(first), j = found.get(second), p = data.rows[i], q = data.rows[j];
        if (p[2] !== ok || q[2] !== ok || p[5][m] === null || q[5][m] === null) { without++; continue; }
        const d = p[5][m] - q[5][m];
        pairs.push({ name, i, j, x: p[5][m], y: q[5][m], d, gain: sign * d });
      }
      if (first === second || !pairs.length) {
        out.replaceChildren(make("p", { class: "muted" }, first === second ? "Choose two different systems." : "No case has this score for both systems."));
        return;
      }
      pairs.sort((p, q) => q.gain - p.gain);
      const wins = pairs.filter((p) => p.gain > 0).length, losses = pairs.filter((p) => p.gain < 0).length;
      const mean = pairs.reduce((sum, p) => sum + p.d, 0) / pairs.length;
      const nameA = shorten(data.systems[first], 40), nameB = shorten(data.systems[second], 40);
      const summary = make("p", {}, isolated(nameA), ` is better on ${wins} and worse on ${losses} of ${pairs.length} shared cases in ${column.label}; mean difference ${signed(mean, column.digits)} (first minus second, ${column.lower_is_better ? "lower" : "higher"} is better).`);
      const children = [summary];
      if (without) children.push(make("p", { class: "small muted" }, `${without} shared cases are left out: one of the two has no score.`));
      const contrast = data.paired[`${data.systems[first]} - ${data.systems[second]}`];
      for (const row of contrast || []) {
        children.push(make("p", { class: "small" }, `Paired study, ${row.score}: ${row.point.toFixed(4)}, interval ${row.low.toFixed(4)} to ${row.high.toFixed(4)}.`));
      }
      children.push(waterfall(pairs, `Differences of ${pairs.length} cases, sorted: ${wins} where the first system is better, ${losses} where it is worse.`),
        make("p", { class: "small muted" }, "One bar for each case, best for the first system on the left. Green: the first is better; orange: worse."),
        make("div", { class: "compare" },
          drivers("Cases where the first is better", pairs.filter((p) => p.gain > 0).slice(0, DRIVERS), column),
          drivers("Cases where the second is better", pairs.filter((p) => p.gain < 0).slice(-DRIVERS).reverse(), column)),
        frames([...pairs], nameA, nameB));
      out.replaceChildren(...children);
    }
    for (const select of [a, b, metric]) select.addEventListener("change", refresh);
    refresh();
  }

  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  document.querySelectorAll("script[data-run]").forEach((node) => {
    const data = JSON.parse(node.textContent);
    makeCases(node.dataset.run, data);
    makeComparison(node.dataset.run, data);
  });
})();
