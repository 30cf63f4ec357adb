import { randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Listener } from '../store/postgres/announcements.ts'
import type { Announcer } from './change-feed.ts'
import { NodeReports } from './node-reports.ts'

const MIB = 1024 * 1024

/** Announcements within this process. */
class Room implements Announcer {
  readonly texts: string[] = []
  readonly #listeners = new Set<Listener>()

  async announce(text: string): Promise<void> {
    this.texts.push(text)
    for (const listener of this.#listeners) listener.received(text)
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

function nodesIn(room: Room, count: number, reportOf: (node: number) => string): NodeReports[] {
  const names = Array.from({ length: count }, (_, index) => `node-${index}`)
  return names.map((_, index) => {
    const reports = new NodeReports(`node-${index}`, room, () => names)
    reports.answerWith(async () => reportOf(index))
    return reports
  })
}

test("a node's report of any length arrives completely, in messages that fit PostgreSQL's limit", async () => {
  // A slow machine has any time to compress the reports.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const room = new Room()
  const long = randomBytes(60_000).toString('hex')
  const [first] = nodesIn(room, 3, (node) => `${node} ${long}`)
  const reports = await first?.others()
  expect(reports?.toSorted()).toEqual([`1 ${long}`, `2 ${long}`])
  expect(room.texts.length).toBeGreaterThan(10)
  expect(Math.max(...room.texts.map((text) => Buffer.byteLength(text)))).toBeLessThan(8_000)
})

test("simultaneous readers of the nodes' reports send the other nodes one request", async () => {
  const room = new Room()
  const [first] = nodesIn(room, 2, String)
  const answers = await Promise.all([first?.others(), first?.others(), first?.others()])
  expect(answers).toEqual([['1'], ['1'], ['1']])
  expect(room.texts.filter((text) => text.startsWith('report?'))).toHaveLength(1)
})

test('a node that is alone sends no request for reports', async () => {
  const room = new Room()
  const [only] = nodesIn(room, 1, String)
  expect(await only?.others()).toEqual([])
  expect(room.texts).toEqual([])
})

test("a node ignores invalid messages while it collects the other nodes' reports, and waits only briefly for missing reports", async () => {
  const room = new Room()
  const reports = new NodeReports('first', room, () => ['first', 'second'])
  const answers = reports.others()
  const [, question] = room.texts[0]?.split(' ') ?? []
  await room.announce(`report ${question} second 1 2 AAAA`)
  await room.announce(`report ${question} third 0 1 %%%`)
  await room.announce('report? x y')
  await room.announce('here second')
  expect(await answers).toEqual([])
})

const packed = (bytes: Buffer): string => deflateRawSync(bytes, { level: 1 }).toString('base64')

test.each([
  {
    way: 'inflated: the third text would be beyond',
    chunks: Array.from({ length: 3 }, () => packed(Buffer.alloc(12 * MIB, 'x'))),
    whole: 2,
  },
  {
    way: 'as they come: the second message would be beyond, and is dropped; the third fits',
    chunks: ['A'.repeat(20 * MIB), packed(randomBytes(12 * MIB)), packed(Buffer.from('a report'))],
    whole: 1,
  },
])(
  'one request for reports reads at most 32 MiB of all responses together, $way',
  async ({ chunks, whole }) => {
    const room = new Room()
    const names = ['asker', ...chunks.map((_, node) => `node-${node}`)]
    const reports = new NodeReports('asker', room, () => names)
    const answers = reports.others()
    const [, question] = room.texts[0]?.split(' ') ?? []
    for (const [node, chunk] of chunks.entries())
      await room.announce(`report ${question} node-${node} 0 1 ${chunk}`)
    expect(await answers).toHaveLength(whole)
  },
)
