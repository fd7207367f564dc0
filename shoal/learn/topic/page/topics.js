// Draws the model described by the JSON above.

const model = JSON.parse(find('data').textContent);
const topics = model.shown;
const words = model.words.map(([name, frequency, row]) => ({name, frequency, row: pairs(row)}));
const count = (number) => number.toLocaleString('en');
const kRows = 30;
let chosen = 0;
let wanted = null;  // the word whose topics the map shows, by its number on the page

function pairs(flat) {
  const list = [];
  for (let i = 0; i < flat.length; i += 2) list.push([flat[i], flat[i + 1]]);
  return list;
}
for (const topic of topics) topic.words = pairs(topic.words);

const name = (topic) => topic.words.slice(0, 5).map(([word]) => words[word].name).join(', ');

// --- the map

const side = 560, rim = 14;
const whole = Math.max(1, sum(topics.map((topic) => topic.tokens)));
const filled = 0.3;  // of the map's area by all circles together
const radius = (share) => Math.max(3, Math.min(64, side * Math.sqrt((filled / Math.PI) * share)));
const circles = [];

// The model's points in the same scale both ways, moved apart where circles would cover each other.
function placed() {
  const reach = [0, 1].map((axis) => topics.map((topic) => topic.at[axis])).map((list) => [Math.min(...list), Math.max(...list)]);
  const scale = (side - 8 * rim) / Math.max(1e-9, ...reach.map(([low, high]) => high - low));
  const points = topics.map((topic) => ({
    x: side / 2 + (topic.at[0] - (reach[0][0] + reach[0][1]) / 2) * scale,
    y: side / 2 - (topic.at[1] - (reach[1][0] + reach[1][1]) / 2) * scale,
    r: radius(topic.tokens / whole) + 1,
  }));
  const inside = (value, r) => Math.max(r, Math.min(side - r, value));
  for (let turn = 0; turn < 120; turn++) {
    for (let i = 0; i < points.length; i++) {
      for (let j = 0; j < i; j++) {
        const a = points[i], b = points[j];
        let dx = a.x - b.x, dy = a.y - b.y;
        if (dx === 0 && dy === 0) [dx, dy] = [Math.cos(i), Math.sin(i)];
        const apart = Math.hypot(dx, dy), over = a.r + b.r - apart;
        if (over <= 0) continue;
        const share = 0.5 * over * b.r / (a.r + b.r) / apart, other = 0.5 * over * a.r / (a.r + b.r) / apart;
        a.x += dx * share; a.y += dy * share;
        b.x -= dx * other; b.y -= dy * other;
      }
    }
    for (const point of points) {
      point.x = inside(point.x, point.r);
      point.y = inside(point.y, point.r);
    }
  }
  return points;
}

function drawMap() {
  const map = find('map'), labels = [];
  placed().forEach(({x, y, r}, i) => {
    const topic = topics[i];
    const circle = draw('circle', {cx: x, cy: y, r: 3, role: 'button', 'aria-label': `topic ${topic.id}: ${name(topic)}`});
    circle.addEventListener('click', () => choose(i));
    explain(circle, `topic ${topic.id}, ${percent(topic.tokens / model.tokens)} of all tokens\n${name(topic)}`);
    circles.push(circle);
    map.append(circle);
    if (r > 11) labels.push(draw('text', {x, y: y + 4}, String(topic.id)));
  });
  map.append(...labels);
}

// Areas are shares of tokens; of a word's tokens while one is wanted.
function sizeMap() {
  const shares = wanted === null ? null : new Map(words[wanted].row);
  circles.forEach((circle, i) => {
    const share = shares === null ? topics[i].tokens / whole : (shares.get(i) || 0) / sum([...shares.values()]);
    circle.setAttribute('r', radius(share));
    circle.classList.toggle('chosen', i === chosen);
    circle.classList.toggle('dim', shares !== null && share === 0);
  });
  find('map-legend').textContent = wanted === null ? '' : `The tokens of “${words[wanted].name}” by topic. `;
  if (wanted !== null) find('map-legend').append(make('button', {type: 'button', onclick: () => want(null)}, 'all tokens'));
}

// --- the words of a topic

// lambda ln phi + (1 - lambda) ln(phi / p): what is the same for all words of the topic is left out.
const relevance = (lambda) => ([word, tokens]) => Math.log(tokens) - (1 - lambda) * Math.log(words[word].frequency);

function drawWords() {
  const lambda = Number(find('lambda').value);
  find('lambda-value').textContent = lambda.toFixed(2);
  const of = relevance(lambda);
  const rows = [...topics[chosen].words].sort((a, b) => of(b) - of(a)).slice(0, kRows);
  const height = 19, left = 150, width = 560;
  const most = Math.max(1, ...rows.map(([word]) => words[word].frequency));
  const long = (tokens) => (tokens / most) * (width - left - 70);
  const svg = find('words');
  svg.setAttribute('viewBox', `0 0 ${width} ${rows.length * height + 6}`);
  svg.replaceChildren(...rows.map(([word, tokens], i) => {
    const y = i * height;
    const row = draw('g', {class: 'row'},
      draw('rect', {x: 0, y, width, height, 'fill-opacity': 0}),
      draw('text', {class: 'name', x: left - 8, y: y + 14}, words[word].name),
      draw('rect', {class: 'all', x: left, y: y + 3, width: long(words[word].frequency), height: height - 5, rx: 2}),
      draw('rect', {class: 'here', x: left, y: y + 3, width: Math.max(1, long(tokens)), height: height - 5, rx: 2}),
      draw('text', {x: left + long(words[word].frequency) + 6, y: y + 14}, count(tokens)));
    row.addEventListener('click', () => want(wanted === word ? null : word));
    explain(row, `${words[word].name}: ${count(tokens)} of its ${count(words[word].frequency)} tokens have this topic\nClick to see its topics on the map.`);
    return row;
  }));
}

// --- the documents

function drawExamples() {
  const own = new Set(topics[chosen].words.map(([word]) => words[word].name));
  find('examples-section').hidden = topics[chosen].examples.length === 0;
  find('examples').replaceChildren(...topics[chosen].examples.map(([document, share, text]) => {
    const line = make('p');
    for (const word of text.split(' ')) line.append(own.has(word) ? make('mark', {}, word) : word, ' ');
    return make('div', {className: 'example'}, make('b', {}, document), make('span', {}, `${percent(share)} of it`), line);
  }));
}

// --- choosing and searching

function choose(i) {
  chosen = i;
  const topic = topics[i];
  find('topic-title').textContent = `Topic ${topic.id}`;
  find('topic-about').textContent = `${percent(topic.tokens / model.tokens)} of all tokens; α ${digits(topic.alpha)}. Towards λ = 1 the most frequent words come first, towards 0 those that are this topic's own.`;
  location.replace('#topic-' + topic.id);
  sizeMap();
  drawWords();
  drawExamples();
}

function want(word) {
  wanted = word;
  sizeMap();
}

// By number, or by a word: the topic that has most of it, and the map shows them all.
function search(text) {
  const asked = text.trim().toLowerCase();
  find('found').textContent = '';
  if (asked === '') return want(null);
  const byNumber = topics.findIndex((topic) => String(topic.id) === asked);
  if (byNumber >= 0) return choose(byNumber);
  const best = words.reduce((found, word, i) => {
    const at = word.name.toLowerCase();
    const rank = at === asked ? 3 : at.startsWith(asked) ? 2 : at.includes(asked) ? 1 : 0;
    return rank > found.rank || (rank === found.rank && rank > 0 && word.frequency > words[found.i].frequency) ? {rank, i} : found;
  }, {rank: 0, i: -1});
  if (best.i < 0) {
    find('found').textContent = 'is no word of the topics shown';
    return want(null);
  }
  const row = words[best.i].row;
  find('found').textContent = `“${words[best.i].name}”: ${count(words[best.i].frequency)} tokens, most of them in topic ${topics[row[0][0]].id}`;
  wanted = best.i;
  choose(row[0][0]);
}

const step = (by) => topics.length > 0 && choose((chosen + by + topics.length) % topics.length);

function begin() {
  document.title = model.title + ' · topics';
  find('title').textContent = model.title;
  const left = model.topics - topics.length;
  find('about').textContent = [
    model.about, `${count(model.topics)} topics of ${count(model.vocabulary)} words, ${count(model.tokens)} tokens`,
    left > 0 ? `the ${count(topics.length)} with most tokens are shown` : '',
  ].filter(Boolean).join(' · ');
  legend(find('words-legend'), [['network', 'tokens with this topic'], ['forward', 'all of the word’s tokens']]);
  find('lambda').oninput = drawWords;
  find('search').oninput = (event) => search(event.target.value);
  find('before').onclick = () => step(-1);
  find('next').onclick = () => step(1);
  addEventListener('keydown', (event) => {
    if (event.target.tagName === 'INPUT' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowLeft') step(-1);
    if (event.key === 'ArrowRight') step(1);
  });
  haveTheme();
  if (topics.length === 0) return;
  drawMap();
  const asked = topics.findIndex((topic) => '#topic-' + topic.id === location.hash);
  choose(Math.max(0, asked));
}
begin();
