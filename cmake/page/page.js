'use strict';
// What all pages share: elements, figures, a note at the pointer, light and dark. Words from outside become text nodes, never markup.

const find = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === 'style') element.style.cssText = value;
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const digits = (value) => Number(value.toPrecision(3)).toString();
const percent = (share) => (100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1) + '%';
const sum = (list) => list.reduce((a, b) => a + b, 0);

function legend(target, entries) {
  for (const [name, text] of entries) {
    target.append(make('span', {}, make('i', {style: `background: var(--${name})`}), text));
  }
}

// --- hover

const hover = find('hover');
function showHover(event, text) {
  hover.hidden = !text;
  if (!text) return;
  hover.textContent = text;
  const box = hover.getBoundingClientRect();
  hover.style.left = Math.min(event.clientX + 14, innerWidth - box.width - 8) + 'px';
  hover.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + 'px';
}
function explain(element, text) {
  element.addEventListener('mousemove', (event) => showHover(event, text));
  element.addEventListener('mouseleave', () => { hover.hidden = true; });
}

// --- theme

// As the reader's machine has it, and the other by the button; painted() follows each change.
function haveTheme(painted = () => {}) {
  const set = (dark) => {
    document.documentElement.classList.toggle('dark', dark);
    painted();
  };
  set(matchMedia('(prefers-color-scheme: dark)').matches);
  find('theme').onclick = () => set(!document.documentElement.classList.contains('dark'));
}

