import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FRAMING_CASES } from './framing-cases.ts'
import { type FramingServer, nodeServer, ownServer, proxyServer } from './framing-servers.ts'

/** `npm run fuzz:differential`: writes how four servers read the same bytes into docs/security-tests.md. */

const PAGE = join(import.meta.dirname, '../../docs/security-tests.md')
const BEGIN = '<!-- Written by npm run fuzz:differential, from here -->'
const END = '<!-- to here -->'

const servers: FramingServer[] = [await ownServer(), await nodeServer()]
for (const name of ['nginx', 'haproxy'] as const) {
  const proxy = await proxyServer(name)
  if (proxy) servers.push(proxy)
  else console.log(`${name} is not installed: its column is left out`)
}
const columns = await Promise.all(servers.map(columnOf))
for (const server of servers) server.stop()

const rows = FRAMING_CASES.map(([name], i) => [name, ...columns.map((column) => column[i] ?? '')])
const head = ['Case', ...servers.map(({ title }) => title)]
const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
const page = readFileSync(PAGE, 'utf8')
const [before, after] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
writeFileSync(PAGE, `${page.slice(0, before)}\n\n${table}\n\n${page.slice(after)}`)
console.log(
  `${rows.length} cases, ${servers.length} servers: ${servers.map(({ title }) => title).join(', ')}`,
)

/** Runs the cases in sequence, so that no response is taken for that of another case. */
async function columnOf(server: FramingServer): Promise<string[]> {
  const column: string[] = []
  for (const [, bytes] of FRAMING_CASES) column.push(await server.interpret(bytes))
  return column
}
