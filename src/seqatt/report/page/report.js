"use strict";
// Tables that sort and filter, and values under the pointer or reached with the arrow keys. The page is complete
// without this script.
(() => {
  const textOf = new Map();
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const spoken = document.createElement("div");
  spoken.className = "hidden";
  spoken.setAttribute("aria-live", "polite");
  document.body.append(spoken);

  const show = (text, box) => {
    tip.textContent = text;
    tip.hidden = false;
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
    tip.style.top = `${(above > 0 ? above : box.bottom + 8) + scrollY}px`;
  };
  const hide = () => {
    tip.hidden = true;
    for (const mark of document.querySelectorAll(".m.on")) mark.classList.remove("on");
  };

  const cellText = (cell) => {
    const row = cell.parentElement, table = cell.closest("table");
    const names = JSON.parse(table.dataset.columns);
    const place = [...row.querySelectorAll("td")].indexOf(cell);
    const value = cell.dataset.value || cell.textContent.trim() || "no value";
    return `${row.querySelector("th").textContent.trim()}, ${names[place]}: ${value}`;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest(".m");
    if (mark) return show(textOf.get(mark), mark.getBoundingClientRect());
    const cell = event.target.closest("table.heat td");
    if (cell) return show(cellText(cell), cell.getBoundingClientRect());
    return hide();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

  for (const title of document.querySelectorAll(".m > title")) {
    textOf.set(title.parentElement, title.textContent);
    title.remove();
  }
  for (const chart of document.querySelectorAll("figure.chart > svg")) {
    const marks = [...chart.querySelectorAll(".m")];
    if (!marks.length) continue;
    let at = -1;
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      hide();
      at = (at + step + marks.length) % marks.length;
      marks[at].classList.add("on");
      show(textOf.get(marks[at]), marks[at].getBoundingClientRect());
      spoken.textContent = textOf.get(marks[at]);
    });
    chart.addEventListener("blur", hide);
  }

  const keyOf = (cell) => {
    const value = cell.dataset.sort;
    return value === undefined ? cell.textContent.trim() : value === "" ? null : Number(value);
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
        keyed.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return down ? compare(b, a) : compare(a, b);
        });
        body.append(...keyed.map(([, row]) => row));
      });
    });
    if (body.rows.length <= 12) continue;
    const input = document.createElement("input");
    input.type = "search";
    input.className = "filter";
    input.placeholder = "Filter";
    input.setAttribute("aria-label", `Filter the table: ${table.caption.textContent}`);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.closest(".scroll").before(input);
  }

  // A table that is wider than the screen can be scrolled with the keyboard.
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.scrollWidth <= box.clientWidth) continue;
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", box.querySelector("caption").textContent);
  }

  // What is folded away on a screen is printed.
  const folded = document.querySelectorAll("details.print");
  addEventListener("beforeprint", () => folded.forEach((each) => { each.open = true; }));
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));
})();
