// The timeline: rows of spans on a canvas. A view is [from, to] in seconds; rows are laid out once per choice of members.

class Timeline {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.left = 96;
    this.axis = 26;
    this.shown = data.members.slice(0, 8);
    this.view = this.firstView();
    this.layOut();
    this.listen();
  }

  // The whole window if it is a few steps; else about four steps in its middle.
  firstView() {
    const whole = [0, Math.max(this.data.seconds, 1e-6)];
    const begins = this.data.members.length ? this.data.members[0].compute.filter((span) => span[2] === 0).map((span) => span[0]) : [];
    if (begins.length <= 6) return whole;
    const middle = Math.floor(begins.length / 2) - 2;
    return [begins[middle], begins[middle + 4]];
  }

  // A row: what it is called, its place, its colour for a span, and what hovering over one says.
  layOut() {
    const kinds = ['forward', 'backward', 'optimizer'];
    const name = (id) => run.names[id] || 'a tensor';
    const step = (span) => (span[3] >= 0 ? ` · step ${span[3]}` : '');
    this.rows = [];
    this.heads = [];
    let y = this.axis;
    const row = (height, gap, spans, paint, tell) => {
      this.rows.push({y, height, spans, paint, tell});
      y += height + gap;
    };
    for (const member of this.shown) {
      const top = y;
      row(17, 1, member.compute, (span) => kinds[span[2]], (span) => `${kinds[span[2]]} ${time(span[1])}${step(span)}`);
      row(4, 2, member.produced, () => 'ink', (span) => `gradient of ${name(span[2])}\n${bytes(span[4])}${step(span)}`);
      row(9, 4, member.waits, (span) => (span[4] < 0 ? 'network' : 'waiting'),
        (span) => `waited ${time(span[1])} for ${span[4] < 0 ? name(span[2]) : 'rank ' + span[4] + ', before ' + name(span[2])}${step(span)}`);
      for (let lane = 0; lane < member.lanes; ++lane) {
        const mine = member.exchanges.filter((span) => span[5] === lane);
        row(7, 1, mine, () => 'exchange', (span) => `${name(span[2])}\n${bytes(span[4])} in ${time(span[1])}${step(span)}`);
      }
      if (member.lanes) y += 4;
      for (const [direction, spans] of [['sent', member.sent], ['received', member.received]]) {
        for (const peer of [...new Set(spans.map((span) => span[2]))].sort((a, b) => a - b)) {
          const mine = spans.filter((span) => span[2] === peer);
          row(5, 1, mine, () => direction, (span) => `${direction === 'sent' ? 'to' : 'from'} rank ${peer}\n${bytes(span[3])}` +
            (span[1] > 0 ? ` in ${time(span[1])}: ${mega(span[3] / span[1])} MB/s` : ''));
        }
      }
      this.heads.push({top, bottom: y, text: `rank ${member.rank}`});
      y += 16;
    }
    this.height = y;
    this.canvas.style.height = y + 'px';
  }

  x(seconds) { return this.left + (this.width - this.left) * (seconds - this.view[0]) / (this.view[1] - this.view[0]); }
  at(x) { return this.view[0] + (this.view[1] - this.view[0]) * (x - this.left) / (this.width - this.left); }

  paint() {
    const ratio = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    const pen = this.canvas.getContext('2d');
    pen.scale(ratio, ratio);
    pen.font = '12px system-ui, sans-serif';
    const colours = {};
    for (const key of ['forward', 'backward', 'optimizer', 'network', 'waiting', 'exchange', 'sent', 'received', 'quiet', 'line', 'ink', 'ground']) colours[key] = colour(key);
    this.paintAxis(pen, colours);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left, this.height);
    pen.clip();
    for (const row of this.rows) this.paintRow(pen, colours, row);
    pen.restore();
    for (const head of this.heads) {
      pen.fillStyle = colours.ink;
      pen.fillText(head.text, 2, head.top + 13);
      pen.fillStyle = colours.quiet;
      pen.fillText('waiting', 12, head.top + 34);
      if (head.bottom - head.top > 60) pen.fillText('exchange', 12, head.top + 48);
      if (head.bottom - head.top > 60) pen.fillText('links', 12, head.bottom - 6);
    }
  }

  paintAxis(pen, colours) {
    pen.textAlign = 'center';
    const begin = this.data.begin;  // the axis counts from the begin of the run, spans from that of the window
    for (const tick of ticks(begin + this.view[0], begin + this.view[1], Math.max(3, this.width / 130))) {
      const x = this.x(tick - begin);
      if (x < this.left) continue;
      pen.fillStyle = colours.line;
      pen.fillRect(x, this.axis - 6, 1, this.height - this.axis);
      pen.fillStyle = colours.quiet;
      pen.fillText(time(Number(tick.toFixed(9))), Math.min(x, this.width - 24), 13);
    }
    pen.textAlign = 'left';
  }

  // Spans thinner than a pixel are drawn as one pixel, and only the first of a pixel.
  paintRow(pen, colours, row) {
    pen.fillStyle = colours.ground;
    pen.fillRect(this.left, row.y, this.width - this.left, row.height);
    let covered = -1;
    for (const span of row.spans) {
      const begin = this.x(span[0]), end = this.x(span[0] + span[1]);
      if (end < this.left || begin > this.width) continue;
      const right = Math.max(end, begin + 1);
      if (right <= covered) continue;
      pen.fillStyle = colours[row.paint(span)];
      const gap = right - begin > 4 ? 0.5 : 0;
      pen.fillRect(begin, row.y, right - begin - gap, row.height);
      covered = Math.ceil(right - 1);
    }
  }

  spanAt(x, y) {
    const row = this.rows.find((one) => y >= one.y - 1 && y <= one.y + one.height);
    if (!row || x < this.left) return null;
    const from = this.at(x - 2), to = this.at(x + 2);
    const hit = row.spans.find((span) => span[0] <= to && span[0] + span[1] >= from);
    return hit ? row.tell(hit) : null;
  }

  zoom(factor, around = (this.left + this.width) / 2) {
    const middle = this.at(around);
    const length = Math.min(Math.max((this.view[1] - this.view[0]) * factor, 2e-6), this.data.seconds || 1);
    const share = (middle - this.view[0]) / (this.view[1] - this.view[0]);
    this.show(middle - share * length, length);
  }

  show(from, length) {
    const begin = Math.min(Math.max(0, from), Math.max(0, this.data.seconds - length));
    this.view = [begin, begin + length];
    this.paint();
  }

  move(share) { this.show(this.view[0] + share * (this.view[1] - this.view[0]), this.view[1] - this.view[0]); }
  all() { this.show(0, this.data.seconds || 1); }

  listen() {
    const canvas = this.canvas;
    let dragged = null;
    canvas.addEventListener('pointerdown', (event) => { dragged = event.clientX; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener('pointerup', () => { dragged = null; });
    canvas.addEventListener('pointermove', (event) => {
      if (dragged !== null) {
        this.move((dragged - event.clientX) / (this.width - this.left));
        dragged = event.clientX;
        return;
      }
      const box = canvas.getBoundingClientRect();
      showHover(event, this.spanAt(event.clientX - box.left, event.clientY - box.top));
    });
    canvas.addEventListener('pointerleave', () => { hover.hidden = true; });
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.clientX - canvas.getBoundingClientRect().left);
    }, {passive: false});
    canvas.addEventListener('dblclick', (event) => this.zoom(0.4, event.clientX - canvas.getBoundingClientRect().left));
    const keys = {ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), '+': () => this.zoom(0.6), '-': () => this.zoom(1.6)};
    canvas.addEventListener('keydown', (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    addEventListener('resize', () => this.paint());
  }

  choose(first) {
    this.shown = this.data.members.slice(first, first + 8);
    this.layOut();
    this.paint();
  }
}

const timeline = new Timeline(find('timeline'), run.timeline);

function drawTimeline() {
  legend(find('timeline-legend'), [...parts.slice(0, 5).map((part) => [part, says[part]]),
    ['exchange', 'a tensor on its way'], ['sent', 'slices sent'], ['received', 'slices received']]);
  if (run.timeline.left_out) find('left-out').textContent = `Shown: ${run.timeline.left_out}; everything is in trace.json.gz.`;
  const members = run.timeline.members;
  if (members.length > 8) {
    find('members-label').hidden = false;
    for (let first = 0; first < members.length; first += 8) {
      const last = Math.min(first + 8, members.length) - 1;
      find('members').append(make('option', {value: first}, `rank ${members[first].rank} to ${members[last].rank}`));
    }
    find('members').onchange = (event) => timeline.choose(Number(event.target.value));
  }
  find('zoom-in').onclick = () => timeline.zoom(0.5);
  find('zoom-out').onclick = () => timeline.zoom(2);
  find('zoom-all').onclick = () => timeline.all();
}

drawHead();
drawShares();
drawSteps();
drawTimeline();
drawTensors(false);
drawLinks();
drawMetrics();
drawRemarks();
haveTheme(() => timeline.paint());
