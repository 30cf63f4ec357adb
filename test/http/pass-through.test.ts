import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../equipment/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { ask, askStream, type Stage, setStage } from '../equipment/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await setStage((upstream) => ({
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
afterAll(() => stage?.close())

describe('a gateway in pass-through mode', () => {
  test('forwards gated fields on every channel', async () => {
    stage.upstream.script('m', { kind: 'whole' })
    const body = JSON.stringify(
      ask('m', { service_tier: 'flex', speed: 'fast', safety_identifier: 's', store: true }),
    )
    expect((await stage.chat('ann', body)).status).toBe(200)
    expect(stage.upstream.only('m').text).toBe(body)
  })

  test('does not ask for usage, and counts locally where none comes', async () => {
    stage.upstream.script('m', { kind: 'stream', events: 20, usage: usageText(10, 20) })
    const answer = await stage.chat('ann', askStream('m'))
    expect(stage.upstream.only('m').text).not.toContain('stream_options')
    expect(databaseOf(stage.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      reason: 'estimated',
    })
  })

  test('still maps models, checks, holds, and drops store for a channel that disables it', async () => {
    stage.upstream.script('mapped', { kind: 'whole' })
    await stage.chat('ann', ask('mapped'))
    expect(JSON.parse(stage.upstream.only('mapped').text).model).toBe('given')
    expect((await stage.chat('ann', ask('m', { n: 0 }))).status).toBe(400)
    expect((await stage.chat('poor', ask('m'))).status).toBe(403)
    stage.upstream.script('nostore', { kind: 'whole' })
    await stage.chat('ann', ask('nostore', { store: true }))
    expect(JSON.parse(stage.upstream.only('nostore').text).store).not.toBe(true)
  })
})
