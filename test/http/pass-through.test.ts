import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { pass_through: true },
    models: priced(['m', 'mapped', 'nostore']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('mapped', upstream.baseUrl('mapped'), { model_mapping: { mapped: 'given' } }),
      channel('nostore', upstream.baseUrl('nostore'), { disable_store: true }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 5 })])],
  }))
})
afterAll(() => fixture?.close())

describe('a gateway in pass-through mode', () => {
  test('pass-through mode forwards fields such as service_tier on every channel', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const body = JSON.stringify(
      ask('m', { service_tier: 'flex', speed: 'fast', safety_identifier: 's', store: true }),
    )
    expect((await fixture.chat('ann', body)).status).toBe(200)
    expect(fixture.upstream.only('m').text).toBe(body)
  })

  test('pass-through mode does not request stream usage, and counts tokens locally where the upstream sends none', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 20, usage: usageText(10, 20) })
    const answer = await fixture.chat('ann', askStream('m'))
    expect(fixture.upstream.only('m').text).not.toContain('stream_options')
    expect(databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))).toMatchObject(
      {
        reason: 'estimated',
      },
    )
  })

  test('pass-through mode still maps model names, checks requests and holds quota, and forwards store only where it is enabled', async () => {
    fixture.upstream.script('mapped', { kind: 'whole' })
    await fixture.chat('ann', ask('mapped'))
    expect(JSON.parse(fixture.upstream.only('mapped').text).model).toBe('given')
    expect((await fixture.chat('ann', ask('m', { n: 0 }))).status).toBe(400)
    expect((await fixture.chat('poor', ask('m'))).status).toBe(403)
    fixture.upstream.script('nostore', { kind: 'whole' })
    await fixture.chat('ann', ask('nostore', { store: true }))
    expect(JSON.parse(fixture.upstream.only('nostore').text).store).not.toBe(true)
  })
})
