import process from 'node:process'
import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { SharedPreviousCalls } from '../../src/features/affinity/shared-previous-calls.ts'
import { type Codec, type SharedKind, SharedTable } from '../../src/redis/shared-table.ts'
import { SharedDigests } from '../../src/call/digests/shared-digests.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'

const MIB = 1024 * 1024
const ENTRY_BYTES = 40 * MIB
const TURNS = 8
const RETENTION = { ms: 60_000, most: 1_000 }
const NAME = 'changed entries in Redis'

const digestOf = (turn: number): Buffer => createHash('sha256').update(`turn ${turn}`).digest()
/** A conversation of this many turns, the whole of it first. */
const conversation = {
  owner: 1,
  count: TURNS,
  mark: (index: number) => digestOf(index).readUInt32LE(),
  digest: digestOf,
}

describe.skipIf(withoutRedis(NAME))('changed entries in Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())

  function opened() {
    let untrusted = 0
    const namespace = `test:${randomUUID()}`
    const options = {
      url: server.url,
      namespace,
      key: Buffer.alloc(32, 7),
      onUntrusted: () => (untrusted += 1),
    }
    return { options, namespace, untrusted: () => untrusted }
  }

  /** What this process grows by while something reads the entries. */
  async function growthWhile(read: () => Promise<unknown>): Promise<number> {
    const before = residentBytes(process.pid)
    await read()
    // A read that was given up goes on, until the server has sent all.
    await expect.poll(() => server.command(['CLIENT', 'LIST'])).not.toMatch(/ omem=[1-9]/)
    return residentBytes(process.pid) - before
  }

  test('remembered prompts whose entries in Redis were enlarged are ignored, and take no memory', async () => {
    const { options, namespace, untrusted } = opened()
    const [writer, reader] = [0, 1].map(() => new SharedDigests('prompt', options))
    onTestFinished(async () => void (await Promise.all([writer?.close(), reader?.close()])))
    await Promise.all([writer?.firstAttempt, reader?.firstAttempt])
    const last = TURNS - 1
    const keyOf = (turn: number): string =>
      `${namespace}:prompt:${digestOf(turn).readUInt32LE().toString(16)}`
    // On a busy machine, a write may be dropped because the connection was lost.
    const isWritten = async () => {
      writer?.remember(1, digestOf(last), 4_711, RETENTION)
      return server.command(['STRLEN', keyOf(last)])
    }
    await expect.poll(isWritten).toBeGreaterThan(0)
    for (let turn = 0; turn < last - 1; turn += 1)
      await server.command(['SETRANGE', keyOf(turn), String(ENTRY_BYTES), 'x'])
    await server.command(['LPUSH', keyOf(last - 1), 'a list'])
    let found: unknown
    let distrusted = 0
    const growth = await growthWhile(async () => {
      // On a busy machine, a read may be given up before it looks at the entries.
      const isRead = async () => {
        const before = untrusted()
        found = await reader?.find(conversation, () => true)
        distrusted = untrusted() - before
        return found !== undefined
      }
      await expect.poll(isRead, { interval: 1 }).toBe(true)
    })
    expect(growth).toBeLessThan(ENTRY_BYTES)
    expect(found).toEqual({ index: last, value: 4_711 })
    expect(distrusted).toBe(TURNS - 2)
  })

  test('the previous call of a session whose entry in Redis was enlarged is ignored, and takes no memory', async () => {
    const { options, namespace, untrusted } = opened()
    const calls = new SharedPreviousCalls(options)
    onTestFinished(() => calls.close())
    await calls.firstAttempt
    await server.command(['SETRANGE', `${namespace}:previous:one`, String(4 * ENTRY_BYTES), 'x'])
    let found: unknown = 'not read'
    const growth = await growthWhile(async () => {
      // On a busy machine, a read may be given up before it looks at the entry.
      const isRead = async () => ((found = await calls.find(1, 'one')), untrusted() > 0)
      await expect.poll(isRead, { interval: 1 }).toBe(true)
    })
    expect(growth).toBeLessThan(ENTRY_BYTES)
    expect([found, untrusted()]).toEqual([undefined, 1])
  })

  const CODEC: Codec<string> = { encode: (value) => value, decode: (text) => text }
  const ENTRY = { owner: 1, name: 'one', value: 'a value. with a dot', retention: RETENTION }

  /** A table of previous calls with one entry, which Redis has. */
  async function openedTable(nowMs?: () => number) {
    const { options, namespace, untrusted } = opened()
    const open = (kind: SharedKind): SharedTable<string> => {
      const table = new SharedTable(kind, CODEC, { ...options, ...(nowMs && { nowMs }) })
      onTestFinished(() => table.close())
      return table
    }
    const table = open('previous')
    await table.firstAttempt
    const prefix = `${namespace}:previous:`
    // On a busy machine, a write may be dropped because the connection was lost.
    const isWritten = async () => {
      table.write(ENTRY)
      return server.command(['EXISTS', `${prefix}one`])
    }
    await expect.poll(isWritten).toBe(1)
    const read = async (from: SharedTable<string>, name: string): Promise<string | undefined> => {
      for (const entry of await from.read([name])) return entry?.value
      return 'no answer in time'
    }
    return { table, open, prefix, namespace, read, untrusted }
  }

  test('an entry in Redis is trusted under the name and the kind with which it was written', async () => {
    const { table, open, prefix, namespace, read, untrusted } = await openedTable()
    await expect.poll(() => read(table, 'one')).toBe(ENTRY.value)
    await server.command(['COPY', `${prefix}one`, `${prefix}two`])
    await expect.poll(() => read(table, 'two')).toBeUndefined()
    expect(untrusted()).toBe(1)
    const prompts = open('prompt')
    await prompts.firstAttempt
    await server.command(['COPY', `${prefix}one`, `${namespace}:prompt:one`])
    await expect.poll(() => read(prompts, 'one')).toBeUndefined()
    expect(untrusted()).toBe(2)
  })

  test('an entry in Redis that is kept after its expiry is ignored', async () => {
    let nowMs = 1_000_000
    const { table, prefix, read, untrusted } = await openedTable(() => nowMs)
    await expect.poll(() => read(table, 'one')).toBe(ENTRY.value)
    await server.command(['PERSIST', `${prefix}one`])
    nowMs += RETENTION.ms
    await expect.poll(() => read(table, 'one')).toBeUndefined()
    expect(untrusted()).toBe(0)
  })
})
