// Copyright 2026 The worldgauge Authors
// SPDX-License-Identifier: Apache-2.0
// WCAG 2.1 contrast of every visible text against what is painted behind it.
// Returns the number of texts and those below 4.5 (3 for large text).
() => {
  const parse = (text) => {
    const n = (text.match(/[\d.]+/g) || []).map(Number);
    return n.length >= 3 ? [n[0], n[1], n[2], n.length > 3 ? n[3] : 1] : null;
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  };
  const behind = (node) => {
    const layers = [];
    for (let e = node; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c && c[3] > 0) { layers.push(c); if (c[3] === 1) break; }
    }
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const bad = [];
  let checked = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, holder = node.parentElement;
    if (!node.textContent.trim() || holder.closest("script, style, svg, option, .hidden-text, .skip")) continue;
    if (!holder.getClientRects().length) continue;
    const style = getComputedStyle(holder), size = parseFloat(style.fontSize);
    const under = behind(holder), ink = over(parse(style.color), under);
    const a = light(ink), b = light(under), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    checked += 1;
    if (ratio < (large ? 3 : 4.5)) bad.push([node.textContent.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return { checked, bad };
}
