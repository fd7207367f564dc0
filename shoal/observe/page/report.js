// Draws the run described by the JSON above. Words from outside become text nodes, never markup.

const run = JSON.parse(document.getElementById('data').textContent);
const parts = ['forward', 'backward', 'optimizer', 'network', 'waiting', 'other'];
const says = {
  forward: 'forward', backward: 'backward', optimizer: 'optimizer', network: 'waiting for the network',
  waiting: 'waiting for a member', other: 'other',
};

// --- quantities

function time(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return '0 ms';
  if (size < 1e-3) return digits(seconds * 1e6) + ' µs';
  if (size < 1) return digits(seconds * 1e3) + ' ms';
  return (size < 100 ? digits(seconds) : seconds.toFixed(0)) + ' s';
}
function bytes(count) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['KB', 1e3]]) if (count >= size) return digits(count / size) + ' ' + unit;
  return count + ' B';
}
const mega = (rate) => (rate / 1e6).toFixed(1);

// --- head and tiles

function drawHead() {
  document.title = run.title + ' · Shoal';
  find('title').textContent = run.title;
  const hosts = new Set(run.ranks.map((rank) => rank.host)).size;
  const began = run.unix_begin > 1e9 ? new Date(run.unix_begin * 1e3).toISOString().slice(0, 16).replace('T', ' ') + ' UTC' : '';
  find('about').textContent = [
    `${run.size} member${run.size === 1 ? '' : 's'}`, `${hosts} host${hosts === 1 ? '' : 's'}`, `${run.steps} steps`, began,
  ].filter(Boolean).join(' · ');

  find('why').textContent = run.why;
  const exposed = run.mean[3] + run.mean[4];
  const whole = sum(run.mean);
  const perStep = Math.max(1, run.steps);
  const sentRates = run.links.map((link) => link[4]).filter((rate) => rate > 0);
  const tiles = [
    [time(run.seconds_a_step), 'a step'],
    [time(sum(run.mean.slice(0, 3)) / perStep), 'of it computing'],
    [time(exposed / perStep), `of it exposed (${percent(whole > 0 ? exposed / whole : 0)})`],
    [run.hidden === null ? '–' : percent(run.hidden), 'communication hidden'],
    [sentRates.length ? mega(sum(sentRates) / sentRates.length) + ' MB/s' : '–', 'a link at its fastest'],
  ];
  const loss = run.metrics.find((metric) => metric.name === 'loss');
  const last = loss && loss.points.filter((point) => point[1] !== null).pop();
  if (last) tiles.push([digits(last[1]), 'loss at the end']);
  for (const [figure, name] of tiles) find('tiles').append(make('div', {className: 'tile'}, make('b', {}, figure), make('span', {}, name)));
}

// --- where the time went

function drawShares() {
  legend(find('legend'), parts.map((part) => [part, says[part]]));
  const rows = run.ranks.map((rank) => [`rank ${rank.rank}`, rank.host, rank.spent, rank.waited_for]);
  if (rows.length > 1) rows.push(['mean', '', run.mean, []]);
  for (const [who, host, spent, waited] of rows) {
    const whole = sum(spent);
    const bar = make('div', {className: 'parts'});
    spent.forEach((seconds, i) => {
      if (!(seconds > 0)) return;
      const piece = make('div', {style: `width: ${100 * seconds / whole}%; background: var(--${parts[i]})`});
      explain(piece, `${says[parts[i]]}\n${time(seconds)} · ${percent(seconds / whole)}\n${time(seconds / Math.max(1, run.steps))} a step`);
      bar.append(piece);
    });
    const longest = [...waited].sort((a, b) => b[1] - a[1])[0];
    const waits = longest ? `longest wait: rank ${longest[0]}, ${time(longest[1])}` : `${time(whole)} in all`;
    find('shares').append(make('div', {className: 'share' + (who === 'mean' ? ' mean' : '')},
      make('div', {className: 'who', title: host}, host ? `${who} · ${host}` : who), bar, make('div', {className: 'waits quiet'}, waits)));
  }
}

// --- axes of the SVG charts

function ticks(low, high, wanted) {
  const step = Math.pow(10, Math.floor(Math.log10((high - low) / wanted || 1)));
  const factor = [1, 2, 5, 10].find((f) => (high - low) / (step * f) <= wanted) || 10;
  const result = [];
  for (let at = Math.ceil(low / (step * factor)) * step * factor; at <= high + 1e-12; at += step * factor) result.push(at);
  return result;
}

function frame(width, height, xs, ys, showX, showY) {
  const left = 58, bottom = 22, top = 8, right = 10;
  const x = (value) => left + (width - left - right) * (value - xs[0]) / (xs[1] - xs[0] || 1);
  const y = (value) => height - bottom - (height - bottom - top) * (value - ys[0]) / (ys[1] - ys[0] || 1);
  const svg = draw('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img'});
  for (const tick of ticks(ys[0], ys[1], 4)) {
    svg.append(draw('line', {x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: 'var(--line)'}),
      draw('text', {x: left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, showY(tick)));
  }
  for (const tick of ticks(xs[0], xs[1], 8)) svg.append(draw('text', {x: x(tick), y: height - 5, 'text-anchor': 'middle'}, showX(tick)));
  return {svg, x, y};
}

// --- step by step

function drawSteps() {
  const bins = run.per_step;
  if (bins.length < 2) { find('steps-section').hidden = true; return; }
  const per = bins[1][0] - bins[0][0];
  find('steps-about').textContent = per > 1 ? `Means over the members and over ${per} steps a column.` : 'Means over the members.';
  const heights = bins.map((bin) => sum(bin.slice(1)));
  const sorted = [...heights].sort((a, b) => a - b);
  // A first step that takes ten times as long would flatten all others: columns above the limit are cut.
  const limit = Math.min(sorted[sorted.length - 1], 2.5 * sorted[Math.floor(sorted.length / 2)] || 1) * 1.05;
  const width = 1160, height = 200;
  const {svg, x, y} = frame(width, height, [bins[0][0], bins[bins.length - 1][0] + per], [0, limit], (v) => digits(v), time);
  bins.forEach((bin, i) => {
    const column = draw('g', {});
    let base = 0;
    for (let part = 0; part < 5; ++part) {
      const top = Math.min(limit, base + bin[part + 1]);
      if (top > base) {
        const wide = x(bin[0] + per) - x(bin[0]);
        column.append(draw('rect', {x: x(bin[0]), width: Math.max(0.6, wide > 4 ? wide - 1 : wide), y: y(top), height: y(base) - y(top), fill: `var(--${parts[part]})`}));
      }
      base = top;
    }
    explain(column, `step ${bin[0]}${per > 1 ? ' to ' + (bin[0] + per - 1) : ''}: ${time(heights[i])}\n` +
      parts.slice(0, 5).map((part, k) => `${says[part]} ${time(bin[k + 1])}`).join('\n'));
    svg.append(column);
  });
  find('steps').append(svg);
}

// --- tables

function drawTensors(all) {
  const most = 60;
  const table = find('tensors');
  table.replaceChildren();
  if (run.tensors.length === 0) { find('tensors-section').hidden = true; return; }
  const widest = Math.max(1e-9, ...run.tensors.map((tensor) => Math.max(tensor.exposed, tensor.predicted || 0)));
  const head = ['tensor', 'way', 'size', 'sent', 'on its way', 'predicted exposed', 'exposed', '', 'waited for members', 'hidden'];
  table.append(make('thead', {}, make('tr', {}, ...head.map((word, i) => make('th', {className: i < 2 ? 'text' : ''}, word)))));
  const body = make('tbody');
  let rows = run.tensors;
  if (!all && rows.length > most) {
    const bound = [...rows].sort((a, b) => b.exposed - a.exposed)[most - 1].exposed;
    rows = rows.filter((tensor) => tensor.exposed >= bound).slice(0, most);
  }
  for (const tensor of rows) {
    const meter = make('span', {className: 'meter'}, make('i', {style: `width: ${100 * tensor.exposed / widest}%`}),
      tensor.predicted === null ? null : make('u', {style: `left: ${100 * tensor.predicted / widest}%`}));
    explain(meter, `exposed ${time(tensor.exposed)}` + (tensor.predicted === null ? '' : `\npredicted ${time(tensor.predicted)} (the line)`));
    const seen = tensor.exchanges > 0;
    const cells = [tensor.name, tensor.way || '–', tensor.bytes > 0 ? bytes(tensor.bytes) : '–', seen ? bytes(tensor.sent) : '–', seen ? time(tensor.seconds) : '–',
      tensor.predicted === null ? '–' : time(tensor.predicted), time(tensor.exposed), meter, time(tensor.waited), seen ? percent(tensor.hidden) : '–'];
    body.append(make('tr', {}, ...cells.map((cell, i) => make('td', {className: i < 2 ? 'text' : ''}, cell))));
  }
  table.append(body);
  const button = find('all-tensors');
  button.hidden = rows.length === run.tensors.length;
  button.textContent = `all ${run.tensors.length} tensors`;
  button.onclick = () => drawTensors(true);
}

function drawLinks() {
  if (run.links.length === 0) { find('links-section').hidden = true; return; }
  const from = [...new Set(run.links.map((link) => link[0]))].sort((a, b) => a - b);
  const to = [...new Set(run.links.map((link) => link[1]))].sort((a, b) => a - b);
  const fastest = Math.max(...run.links.map((link) => link[4]), 1);
  const table = find('links');
  table.append(make('thead', {}, make('tr', {}, make('th', {}, 'from ↓  to →'), ...to.map((rank) => make('th', {}, `rank ${rank}`)))));
  const body = make('tbody');
  for (const sender of from) {
    const row = make('tr', {}, make('td', {}, `rank ${sender}`));
    for (const receiver of to) {
      const link = run.links.find((one) => one[0] === sender && one[1] === receiver);
      const cell = make('td', {className: 'cell'});
      if (link) {
        cell.append(mega(link[4]), make('small', {}, mega(link[3])));
        cell.style.background = `color-mix(in srgb, var(--sent) ${Math.round(45 * link[4] / fastest)}%, transparent)`;
        explain(cell, `rank ${sender} → rank ${receiver}\n${bytes(link[2])}\n${mega(link[4])} MB/s at its fastest\n${mega(link[3])} MB/s of the whole time`);
      }
      row.append(cell);
    }
    body.append(row);
  }
  table.append(body);
}

// --- metrics and remarks

function drawMetrics() {
  const drawable = run.metrics.filter((metric) => metric.points.filter((point) => point[1] !== null).length > 1);
  if (drawable.length === 0) { find('metrics-section').hidden = true; return; }
  for (const metric of drawable) {
    const finite = metric.points.filter((point) => point[1] !== null);
    const values = finite.map((point) => point[1]);
    const {svg, x, y} = frame(520, 190, [metric.points[0][0], metric.points[metric.points.length - 1][0]],
      [Math.min(0, ...values), Math.max(...values) || 1], digits, digits);
    let path = '', pen = false;
    for (const [at, value] of metric.points) {
      if (value === null) { pen = false; continue; }
      path += `${pen ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = true;
    }
    svg.append(draw('path', {d: path, fill: 'none', stroke: 'var(--backward)', 'stroke-width': 1.8, 'stroke-linejoin': 'round'}));
    svg.addEventListener('mousemove', (event) => {
      const share = (event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width * 520;
      const nearest = finite.reduce((a, b) => Math.abs(x(a[0]) - share) < Math.abs(x(b[0]) - share) ? a : b);
      showHover(event, `${digits(nearest[0])}: ${digits(nearest[1])}`);
    });
    svg.addEventListener('mouseleave', () => { hover.hidden = true; });
    find('metrics').append(make('div', {className: 'chart'}, make('h3', {}, metric.name), svg));
  }
}

function drawRemarks() {
  for (const line of [...run.remarks, ...run.notes, run.clocks]) if (line) find('remarks').append(make('li', {}, line));
}
