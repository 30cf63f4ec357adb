import { expect, onTestFinished, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { eventually, openSocket } from '../fixtures/web-socket-client.ts'

const QUOTA = 100_000_000
const SOCKETS = 25
const LANES = 8

test('a gateway that is killed in the middle of 200 turns charges each of them once, and holds nothing afterwards', async () => {
  const fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m', 'done']),
    channels: ['m', 'done'].map((name) => channel(name, upstream.baseUrl(name), { protocol: 'chat' })),
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
  }))
  onTestFinished(() => fixture.close())
  fixture.upstream.script('m', { kind: 'stream', events: 3, ending: 'stall' })
  const clients = await Promise.all(
    Array.from({ length: SOCKETS }, () => openSocket(fixture.gateway.url, 'ann')),
  )
  for (const client of clients) await client.turn({ model: 'done', input: 'x' })
  for (const client of clients)
    for (let lane = 0; lane < LANES; lane++)
      client.send({ type: 'response.create', model: 'm', input: 'x', stream_id: `lane-${lane}` })
  await Promise.all(
    clients.map((client) =>
      eventually(() => {
        const begun = client.events.filter(
          ({ type, stream_id: lane }) => type === 'response.output_text.delta' && lane,
        )
        expect(new Set(begun.map((event) => event['stream_id'])).size).toBe(LANES)
      }),
    ),
  )
  await fixture.gateway.kill()
  expect(await Promise.all(clients.map(({ closed }) => closed))).toEqual(Array(SOCKETS).fill(1006))
  await fixture.gateway.restart()
  const database = databaseOf(fixture.gateway.dataDir)
  await eventually(() => expect(database.openHolds()).toEqual([]))
  const rows = database.usage()
  const ids = clients.flatMap(({ id }) => Array.from({ length: 1 + LANES }, (_, at) => `${id}.${at + 1}`))
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  const charged = rows.reduce((sum, { quota }) => sum + quota, 0)
  expect(charged).toBeGreaterThan(0)
  expect(database.token('token-ann').remain_quota).toBe(QUOTA - charged)
})
