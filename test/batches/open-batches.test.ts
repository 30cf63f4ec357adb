import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import {
  channel,
  type Configuration,
  PLAIN_PRICE,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { databaseOf, sqliteFileIn } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ADMIN = { id: 9, accessToken: 'the-access-token-of-the-admin' }
/** Charge of the default answer of an upstream: 10 tokens at 1 and 5 at 4 quota units. */
const CHARGE = 30
const MODELS = ['gated', 'read', 'free', 'limited']
/** Calls for lines that are made at a time for a user who is alone: half of all. */
const PARALLEL = 4

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(configuration)
})
afterAll(() => fixture?.close())

function configuration(upstream: Fixture['upstream'], others: Partial<Configuration> = {}): Configuration {
  return {
    options: { local_batches: true, batches: { most: 2, parallel: 2 * PARALLEL } },
    rate_limits: { relay: { requests: 0 }, key: { requests: 0 } },
    models: {
      ...priced(MODELS),
      limited: { vendor: 'acme', price: PLAIN_PRICE, rate_limit: { requests: 6, window: '1h' } },
    },
    channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      ...['ann', 'bob', 'dan'].map((name, at) => user(2 + at, name, [token(name)])),
      user(6, 'cid', [token('cid', { rate_limit: { parallel: 2 } })]),
      user(ADMIN.id, 'boss', [token('boss')], { role: 10, access_token: ADMIN.accessToken }),
    ],
    ...others,
  }
}

const clientOf = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
const linesFor = (model: string, count: number, fields = {}): object[] =>
  Array.from({ length: count }, (_, at) => chatLine(`l${at}`, model, { user: `line ${at}`, ...fields }))

describe('docs/batches.md: Batches', () => {
  test('submissions at the same time make at most options.batches.most batches', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const ann = clientOf('ann')
    const answers = await Promise.all(Array.from({ length: 8 }, () => ann.submit(linesFor('gated', 1))))
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 200, 429, 429, 429, 429, 429, 429,
    ])
    expect(databaseOf(fixture.gateway.dataDir).openHolds()).toHaveLength(2)
    gate.resolve()
    for (const answer of answers)
      if (answer.status === 200) await ann.ended((answer.json() as unknown as { id: string }).id)
  })

  test('nothing of a batch stays when its user is deleted while it runs', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const { id } = await clientOf('bob').make(linesFor('gated', 6))
    await fixture.upstream.receivedAtLeast('gated', PARALLEL)
    const kinds = (): string[] => keptOf(3)
    expect(kinds()).toContain('batch')
    expect(await manage(fixture.gateway.url, ADMIN, 'DELETE /api/user/3')).toMatchObject({ success: true })
    gate.resolve()
    const holds = (): readonly { id: string }[] => databaseOf(fixture.gateway.dataDir).openHolds()
    await expect.poll(() => holds().some((hold) => hold.id === id)).toBe(false)
    await expect.poll(kinds).toEqual([])
  })

  test('lines of a user that hang leave some of options.batches.parallel to the lines of others', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const received = fixture.upstream.received('gated').length
    const hanging = await clientOf('ann').make(linesFor('gated', 3 * PARALLEL))
    await fixture.upstream.receivedAtLeast('gated', received + PARALLEL)
    const dan = clientOf('dan')
    const { id } = await dan.make(linesFor('free', 3))
    expect(await dan.ended(id)).toMatchObject({ request_counts: { total: 3, completed: 3, failed: 0 } })
    // The half that is left was not taken.
    expect(fixture.upstream.received('gated')).toHaveLength(received + PARALLEL)
    gate.resolve()
    await clientOf('ann').ended(hanging.id)
  })

  test('local lines leave half of a rate limit to calls of clients', async () => {
    const dan = clientOf('dan')
    const { id } = await dan.make(linesFor('limited', 6))
    // The fourth is made while half of the six is left.
    await expect.poll(async () => (await dan.batch(id)).request_counts.completed).toBe(4)
    const statusOfCall = async (): Promise<number> => (await fixture.chat('dan', ask('limited'))).status
    expect([await statusOfCall(), await statusOfCall(), await statusOfCall()]).toEqual([200, 200, 429])
    await dan.ask(`/v1/batches/${id}/cancel`, 'POST')
    await dan.ended(id)
  })

  test('local lines wait while other calls take half of those that a key may make at once', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const received = fixture.upstream.received('gated').length
    const call = fixture.chat('cid', ask('gated'))
    await fixture.upstream.receivedAtLeast('gated', received + 1)
    const before = fixture.upstream.received('free').length
    const { id } = await clientOf('cid').make(linesFor('free', 1))
    const dan = clientOf('dan')
    await dan.ended((await dan.make(linesFor('free', 1))).id)
    expect(fixture.upstream.received('free')).toHaveLength(before + 1)
    gate.resolve()
    expect((await call).status).toBe(200)
    expect((await clientOf('cid').ended(id)).request_counts).toMatchObject({ completed: 1, failed: 0 })
  })

  test('local lines cost what they would have cost when the batch was made', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('gated', { kind: 'whole', after: gate.promise })
    const received = fixture.upstream.received('gated').length
    const { id } = await clientOf('dan').make(linesFor('gated', PARALLEL + 2))
    await fixture.upstream.receivedAtLeast('gated', received + PARALLEL)
    const price = { input: '70', output: '70' }
    await fixture.gateway.apply(
      configuration(fixture.upstream, {
        models: { gated: { price }, read: { price }, free: { price } },
        groups: { default: { ratio: 3 } },
      }),
    )
    gate.resolve()
    await clientOf('dan').ended(id)
    const rows = databaseOf(fixture.gateway.dataDir).usage()
    const quotas = rows.filter((row) => row.user_id === 4 && row.model === 'gated').map(({ quota }) => quota)
    expect(quotas).toEqual(Array.from({ length: PARALLEL + 2 }, () => CHARGE))
    await fixture.gateway.apply(configuration(fixture.upstream))
  })

  test('a batch whose lines cannot be read for some time goes on when they can', async () => {
    const dan = clientOf('dan')
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('read', { kind: 'whole', after: gate.promise })
    // The lines have many parts.
    const { id } = await dan.make(
      linesFor('read', 20, { messages: [{ role: 'user', content: 'x'.repeat(80_000) }] }),
    )
    await fixture.upstream.receivedAtLeast('read', PARALLEL)
    const show = hideFiles()
    const before = fixture.gateway.logs().length
    gate.resolve()
    await expect.poll(() => fixture.gateway.logs().slice(before)).toContain('a batch could not be')
    show()
    expect(await dan.ended(id)).toMatchObject({
      status: 'completed',
      request_counts: { total: 20, completed: 20, failed: 0 },
    })
  })
})

function rowsOf<Row>(sql: string, ...values: number[]): Row[] {
  const database = new DatabaseSync(sqliteFileIn(fixture.gateway.dataDir), { timeout: 5_000 })
  try {
    return database.prepare(sql).all(...values) as Row[]
  } finally {
    database.close()
  }
}

/** The kinds of what is kept for a user. */
function keptOf(userId: number): string[] {
  return rowsOf<{ kind: string }>('select kind from kept where user_id = ?', userId).map(({ kind }) => kind)
}

/** Renames the folder with the contents, which cannot be read then; returns what undoes that. */
function hideFiles(): () => void {
  const path = join(fixture.gateway.dataDir, 'files')
  renameSync(path, `${path}.hidden`)
  return () => renameSync(`${path}.hidden`, path)
}
