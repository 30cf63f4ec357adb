import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { commandOn, GATEWAY_STATES, inGatewayState, type Outcome, SECRET } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
let id: string
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      options: { local_batches: true },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
  const ann = new BatchClient(fixture.gateway.url, 'ann')
  fixture.upstream.script('m', { kind: 'status', status: 400 })
  id = (await ann.ended((await ann.make([chatLine('wrong')])).id)).id
})
afterAll(() => fixture?.close())

const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'batch', ...args)

describe.each(GATEWAY_STATES)('sluice batch, %s', (manner) => {
  test('sluice batch list and show print progress, cost and why lines failed', async () => {
    const [list, shown, json, cancelled] = await inGatewayState(manner, fixture.gateway, async () => [
      await run('list', '--user', 'ann'),
      await run('show', id),
      await run('list', '--json'),
      await run('cancel', id),
    ])
    expect(list?.out).toMatch(new RegExp(`^ID .*\\n${id} +ann +completed +m +1 of 1 +1 +0 quota units`))
    expect(shown?.out).toMatch(/\nfailed +1\n/)
    expect(shown?.out).toMatch(/\nwrong +400 /)
    expect(JSON.parse(json?.out ?? '')).toMatchObject([{ id, status: 'completed', failed: 1, quota: 0 }])
    expect([cancelled?.code, cancelled?.err]).toEqual([
      1,
      'sluice: this batch has ended and cannot be cancelled\n',
    ])
  })
})

test('sluice batch names what is unknown, and its help has examples', async () => {
  expect((await run('show', 'batch_none')).err).toBe('sluice: there is no batch with this id\n')
  expect((await run('list', '--user', 'nobody')).err).toBe('sluice: there is no user "nobody"\n')
  expect((await run('list', '--help')).out).toContain('sluice batch list --user ann --json')
})
