import process from 'node:process'
import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { RedisPreviousCalls } from '../../src/relay/affinity/redis-previous-calls.ts'
import { RedisDigests } from '../../src/relay/digests/redis-digests.ts'
import { PROMPT_DIGEST_RULES } from '../../src/relay/prompts/prompt-memory.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'

const MIB = 1024 * 1024
const ENTRY_BYTES = 40 * MIB
const TURNS = 8
const RETENTION = { ms: 60_000, most: 1_000 }
const NAME = 'entries in Redis that somebody has enlarged'

const digestOf = (turn: number): Buffer => createHash('sha256').update(`turn ${turn}`).digest()
/** A conversation of this many turns, the whole of it first. */
const conversation = {
  owner: 1,
  count: TURNS,
  mark: (index: number) => digestOf(index).readUInt32LE(),
  digest: digestOf,
}

describe.skipIf(withoutRedis(NAME))('entries in Redis that somebody has enlarged', () => {
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
    const [writer, reader] = [0, 1].map(() => new RedisDigests(PROMPT_DIGEST_RULES, options))
    onTestFinished(async () => void (await Promise.all([writer?.close(), reader?.close()])))
    await Promise.all([writer?.firstAttempt, reader?.firstAttempt])
    const last = TURNS - 1
    writer?.remember(1, digestOf(last), 4_711, RETENTION)
    const keyOf = (turn: number): string =>
      `${namespace}:prompt:${digestOf(turn).readUInt32LE().toString(16)}`
    await expect.poll(() => server.command(['STRLEN', keyOf(last)])).toBeGreaterThan(0)
    for (let turn = 0; turn < last - 1; turn += 1)
      await server.command(['SETRANGE', keyOf(turn), String(ENTRY_BYTES), 'x'])
    await server.command(['LPUSH', keyOf(last - 1), 'a list'])
    let found: unknown
    const growth = await growthWhile(async () => (found = await reader?.find(conversation, () => true)))
    expect(growth).toBeLessThan(ENTRY_BYTES)
    expect(found).toEqual({ index: last, value: 4_711 })
    expect(untrusted()).toBe(TURNS - 2)
  })

  test('the previous call of a session whose entry in Redis was enlarged is ignored, and takes no memory', async () => {
    const { options, namespace, untrusted } = opened()
    const calls = new RedisPreviousCalls(options)
    onTestFinished(() => calls.close())
    await calls.firstAttempt
    await server.command(['SETRANGE', `${namespace}:previous:one`, String(4 * ENTRY_BYTES), 'x'])
    let found: unknown = 'not read'
    const growth = await growthWhile(async () => {
      // On a busy machine, a read may be given up before it looks at the entry.
      for (let reads = 0; untrusted() === 0 && reads < 100; reads += 1) found = await calls.find(1, 'one')
    })
    expect(growth).toBeLessThan(ENTRY_BYTES)
    expect([found, untrusted()]).toEqual([undefined, 1])
  })
})
