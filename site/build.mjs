// Builds the documentation site into site/built: `npm run site`. The pages are those of docs/, with a landing page, the changelog and the
// OpenAPI reference. Links to files that are not pages lead to the repository.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { build } from 'vitepress'
import { openApi, referenceTexts } from './reference.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const pages = join(root, 'site/pages')
const repository = process.env.SITE_REPOSITORY ?? 'https://github.com/OWNER/sluice'

/** Pages by their paths in the repository, with their paths on the site. */
const placed = new Map([
  ['CHANGELOG.md', 'changelog.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md'))
    .map((path) => [`docs/${path}`, path.replace(/README\.md$/, 'overview.md')]),
])

rmSync(pages, { recursive: true, force: true })
for (const [source, target] of placed) write(target, pageText(source, target))
for (const [name, text] of referenceTexts())
  write(`reference/${name}.md`, `---\nsource: src/api/openapi.ts\n---\n\n${text}`)
write('index.md', landingPage())
write('public/openapi.json', JSON.stringify(openApi()))
cpSync(join(root, 'docs/console.png'), join(pages, 'public/console.png'))
await build(join(root, 'site'))

function write(path, text) {
  mkdirSync(dirname(join(pages, path)), { recursive: true })
  writeFileSync(join(pages, path), text)
}

// A page with its links as they are on the site, and without words that only tests read.
function pageText(source, target) {
  const text = readFileSync(join(root, source), 'utf8')
  const parts = text.split(/^(```.*?^```)$/gms)
  const linked = parts.map((part) =>
    part.startsWith('```') ? part.replace(/^```(\w+) .*$/m, '```$1') : linkedText(part, source, target),
  )
  return `---\nsource: ${source}\n---\n\n${linked.join('')}`
}

function linkedText(text, source, target) {
  return text
    .replace(/!\[[^\]]*\]\(performance\.svg\)/, () => charts())
    .replaceAll(/\]\((?!https?:|#|\/)([^)#\s]+)(#[^)\s]*)?\)/g, (_, path, anchor = '') => {
      const file = posix.normalize(posix.join(posix.dirname(source), path))
      const page = placed.get(file)
      if (page === undefined) return `](${repository}/blob/main/${file}${anchor})`
      const relative = posix.relative(posix.dirname(target), page)
      return `](${relative.startsWith('.') ? relative : `./${relative}`}${anchor})`
    })
}

// Bars from the table of docs/performance.md, in colours of the theme.
function charts() {
  const table = tableOf('docs/performance.md', 'Scenario')
  const shown = [
    ['whole answer, 2 KB, µs a request', 'Whole answer of 2 KB, µs of CPU time a request'],
    ['stream passed on, 200 events at once, µs an event', 'Stream passed on, µs of CPU time an event'],
    ['the same, converted for a chat client', 'Stream converted for a chat client, µs of CPU time an event'],
  ]
  return shown
    .map(([row, title]) =>
      chart(
        title,
        ['forwarder', 'Sluice', 'Portkey'].map((name) => [name, table(row, name)]),
      ),
    )
    .join('\n')
}

// Bars from the table of docs/comparison.md.
function fidelityCharts() {
  const table = tableOf('docs/comparison.md', 'Client to provider')
  return ['messages', 'gemini']
    .map((provider) =>
      chart(`Answers of ${provider} that reach a chat client with every fact, %`, [
        ['Sluice', table(`chat to ${provider}`, 'with every fact, Sluice')],
        ['Portkey', table(`chat to ${provider}`, 'Portkey')],
      ]),
    )
    .join('\n')
}

// A table of a page: returns the cell of a row and a column, without its unit.
function tableOf(page, title) {
  const rows = readFileSync(join(root, page), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const names = rows.find(([, first]) => first === title) ?? []
  return (row, name) => rows.find(([, first]) => first === row)?.[names.indexOf(name)]?.replace(' %', '')
}

function chart(title, figures) {
  const largest = Math.max(...figures.map(([, figure]) => Number(figure)))
  const bars = figures.map(
    ([program, figure]) =>
      `<dt>${program}</dt><dd><span class="bar${program === 'Sluice' ? ' own' : ''}" style="width: ${(Number(figure) / largest) * 80}%"></span>${figure}</dd>`,
  )
  return `<figure class="chart"><figcaption>${title}</figcaption><dl>${bars.join('')}</dl></figure>`
}

function landingPage() {
  return `---
title: A gateway in front of language models
sidebar: false
aside: false
source: site/build.mjs
---

<div class="landing">

# Sluice, a gateway in front of language models

Clients call it with keys that you issue; it calls the providers with keys that only it knows. Each call is charged exactly, even if the process is killed in between.

[Start](#three-ways-to-start) [Documentation](./overview.md)

</div>

<div class="points">

**Exact accounts.** What a call may cost is held before it is sent, and what it cost is on the disk before its response ends. Several nodes never overspend together.

**Faithful conversion.** Chat completions, messages, responses and Gemini in every direction, with exact tool arguments and signed reasoning. What is left out is listed.

**Low cost.** A quarter of the CPU time of Portkey for a whole answer, a fifth for an event of a burst, 24 KB for an idle stream.

</div>

## Three ways to start

Try it, with simulated providers and no vendor key:

\`\`\`sh
npx sluice demo
\`\`\`

Use it on one machine, with a vendor's key. \`gateway.yaml\` is optional ([Configuration](./configuration.md)):

\`\`\`sh
npm i -g sluice
OPENAI_API_KEY=sk-… sluice start
\`\`\`

Run it as a service, in a container, in Kubernetes or under systemd ([Deployment](./deployment.md)):

\`\`\`sh
docker compose up --build --wait
\`\`\`

![The console of Sluice: spend, calls and tokens of the last 30 days by model](/console.png)

## What a call costs

${charts()}

The forwarder is the minimum of a gateway and keeps no accounts. [Comparison](./comparison.md) has more figures, and the commands that repeat them.

## What reaches the other side

${fidelityCharts()}

Recorded answers of providers, replayed; of all pairs of protocols in [Comparison](./comparison.md#what-reaches-the-client), with the command that repeats it.

| Client \\ channel | chat | messages | responses | gemini |
|---|---|---|---|---|
${['chat', 'messages', 'responses', 'gemini']
  .map(
    (client) =>
      `| **${client}** | ${['chat', 'messages', 'responses', 'gemini'].map((channel) => (client === channel ? 'bytes unchanged' : 'converted')).join(' | ')} |`,
  )
  .join('\n')}

Where both sides speak the same protocol, requests and responses keep their bytes: signatures, unknown fields, large integers, the order of keys. Elsewhere they are
converted, and the header \`x-gateway-dropped\` lists what the other side cannot express ([The API](./api.md#messages)).
`
}
