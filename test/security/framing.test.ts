import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { FRAMING_CASES } from './framing-cases.ts'
import { type FramingServer, nodeServer, ownServer } from './framing-servers.ts'

/** The table in docs/security-tests.md. */
const page = readFileSync(join(import.meta.dirname, '../../docs/security-tests.md'), 'utf8')
const [, part = ''] = page.split('<!-- Written by npm run fuzz:differential, from here -->')
const [head = [], , ...rows] = part
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').map((cell) => cell.trim()))

/** Columns of the servers that need no installation, measured again. */
const found: [FramingServer, string[]][] = []
beforeAll(async () => {
  for (const server of [await ownServer(), await nodeServer()]) {
    const column: string[] = []
    for (const [, bytes] of FRAMING_CASES) column.push(await server.interpret(bytes))
    found.push([server, column])
  }
})
afterAll(() => {
  for (const [server] of found) server.stop()
})

const requestsIn = (cell: string): string[] => cell.split(', ').filter((word) => !/^\d+$|^closed$/.test(word))

test('the documented table of HTTP framing tests lists every test case', () => {
  expect(rows.map(([, name]) => name)).toEqual(FRAMING_CASES.map(([name]) => name))
})

test('the documented table of HTTP framing has the measured results of the gateway and of this Node.js version', () => {
  const titled = found.filter(([{ title }]) => head.includes(title))
  expect(titled.map(([{ title }]) => title)).toContain('Sluice')
  for (const [{ title }, column] of titled)
    expect(rows.map((row) => row[head.indexOf(title)])).toEqual(column)
})

/**
 * The case in which Node.js reads less, because its server closes a connection after an unhandled upgrade.
 */
const NODE_CLOSES = 'an upgrade with a body'

test('from ambiguous bytes the gateway reads only requests that Node.js reads, and refuses the rest with an error status', () => {
  const [[, own], [, node]] = found as [[FramingServer, string[]], [FramingServer, string[]]]
  for (const [i, [name]] of FRAMING_CASES.entries()) {
    const [ours, theirs] = [requestsIn(own[i] ?? ''), requestsIn(node[i] ?? '')]
    const both = name === NODE_CLOSES ? theirs.length : ours.length
    expect.soft(theirs.slice(0, both), name).toEqual(ours.slice(0, both))
    expect.soft(own[i], name).toMatch(/(?:last|it|4\d\d|501)$/)
  }
})

test("an HTTP request that is hidden in another request's body is never read by the gateway", () => {
  const [[, own]] = found as [[FramingServer, string[]]]
  const hidden = FRAMING_CASES.filter((_, i) => requestsIn(own[i] ?? '').includes('hidden')).map(
    ([name]) => name,
  )
  // Leading zeros do not change a size (RFC 9112, 7.1), so that the bytes after the last chunk are a request.
  expect(hidden).toEqual(['a chunk size of leading zeros'])
})
