import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { manage } from '../fixtures/account.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { call } from '../fixtures/client.ts'
import { sluiceProcess } from '../fixtures/command.ts'
import { channel, type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { codeBlocks } from './recipe.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const DAY_MS = 86_400_000
const SHUTDOWN = '2026-12-11'

const [ALERTS = {}, SUCCESSOR = {}] = codeBlocks('guides/retire-a-model', 'yaml').map(
  (text): Configuration => parse(text),
)
const [TOLD = '', OPTION = ''] = codeBlocks('guides/retire-a-model', 'json')

/** A clock on which this number of days is left until the end, and a minute less. */
function endingClock() {
  const clock = dateClock()
  const moveTo = (daysLeft: number): void => clock.moveTo(Date.parse(SHUTDOWN) - daysLeft * DAY_MS + 60_000)
  return { env: clock.env, moveTo }
}

test('sluice check warns of a model that will be shut down within 30 days', async () => {
  const { env, moveTo } = endingClock()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-check-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  const vendor = channel('vendor', 'https://api.openai.com/v1', { models: ['gpt-5', 'gpt-5.4'] })
  writeFileSync(file, stringify({ channels: [vendor], users: [ROOT] }))
  const check = async () => {
    const { code, out, err } = await sluiceProcess(['check', '--config', file], { ...env, DATA_DIR: folder })
    expect(code).toBe(0)
    return out + err
  }
  moveTo(31)
  expect(await check()).not.toContain(SHUTDOWN)
  moveTo(30)
  expect(await check()).toContain(`gpt-5 ends on ${SHUTDOWN}`)
})

test.each(['in gateway.yaml', 'over HTTP'])(
  'a model that is shut down is replaced by its successor without a refused call, the successor named %s',
  async (where) => {
    const receiver = await startAlertReceiver()
    onTestFinished(() => receiver.stop())
    const { env, moveTo } = endingClock()
    moveTo(30)
    const { url: _, secret: __, ...alert } = ALERTS.alerts?.[0] ?? {}
    let config: Configuration = {}
    const fixture = await startFixture(
      (upstream) => {
        const body = JSON.stringify({ data: [{ id: 'gpt-5', shutdown_date: SHUTDOWN }] })
        upstream.decide('old', ({ method }) =>
          method === 'GET' ? { kind: 'status', status: 200, body } : { kind: 'whole' },
        )
        upstream.script('new', { kind: 'whole' })
        const narrow = { model_limits_enabled: true, model_limits: 'gpt-5' }
        config = {
          options: { model_dates: true },
          channels: [
            channel('old', upstream.baseUrl('old'), { models: ['gpt-5'] }),
            channel('new', upstream.baseUrl('new'), { models: ['gpt-5.4'] }),
          ],
          users: [ROOT, user(2, 'ann', [token('ann'), token('narrow', narrow)])],
          alerts: [{ ...receiver.declared(), ...alert }],
        }
        return config
      },
      { env },
    )
    onTestFinished(() => fixture.close())
    const { gateway } = fixture
    const served = async (model: string, key = 'ann') => {
      const { status, headers } = await fixture.chat(key, ask(model))
      return [status, headers['x-gateway-model']]
    }

    // 1. Notice it.
    await receiver.atLeast(1)
    expect(receiver.received.map(({ type, data }) => ({ type, data }))).toEqual([JSON.parse(TOLD)])

    // 2. Name a successor, which has no effect until the end.
    const option = JSON.parse(OPTION)
    const isFile = where === 'in gateway.yaml'
    if (isFile) config = { ...config, ...SUCCESSOR }
    if (isFile) await gateway.apply(config)
    else expect((await manage(gateway.url, AS_ROOT, 'PUT /api/option/', option)).status).toBe(200)
    expect(await served('gpt-5')).toEqual([200, 'gpt-5'])

    // 3. Tell those who call it.
    const managed = await manage<{ model: string; keys_7d: { name: string; username: string }[] }[]>(
      gateway.url,
      AS_ROOT,
      'GET /api/models',
    )
    expect(managed.data.find(({ model }) => model === 'gpt-5')).toMatchObject({
      shutdown_date: SHUTDOWN,
      successor: 'gpt-5.4',
      keys_7d: [{ name: 'token-ann', username: 'ann', calls: 1 }],
    })
    const { headers } = await fixture.chat('ann', ask('gpt-5'))
    expect(headers['sunset']).toBe('Fri, 11 Dec 2026 00:00:00 GMT')
    expect(headers['deprecation']).toMatch(/^@\d+$/)
    const listed = await call(gateway.url, undefined, { method: 'GET', path: '/v1/models', key: 'ann' })
    expect(JSON.parse(listed.text).data).toContainEqual(
      expect.objectContaining({ id: 'gpt-5', shutdown_date: SHUTDOWN }),
    )

    // 4. Try it.
    const simulated = await manage<{
      route: { model: string; channels: { name: string; share: number }[] }[]
    }>(gateway.url, AS_ROOT, 'POST /api/routing/simulate', { model: 'gpt-5.4' })
    expect(simulated.data.route).toMatchObject([{ model: 'gpt-5.4', channels: [{ name: 'new', share: 1 }] }])
    expect(await served('gpt-5', 'narrow')).toEqual([200, 'gpt-5'])
    expect((await served('gpt-5.4', 'narrow'))[0]).toBe(403)

    // 5. After the end.
    moveTo(0)
    for (const key of ['ann', 'narrow']) {
      const answer = await fixture.chat(key, ask('gpt-5'))
      expect([answer.status, answer.headers['x-gateway-model']]).toEqual([200, 'gpt-5.4'])
      expect(databaseOf(gateway.dataDir).usageOf(String(answer.headers['x-request-id']))).toMatchObject({
        requested_model: 'gpt-5',
        model: 'gpt-5.4',
        channel: 'new',
      })
    }
    config = { ...config, channels: config.channels?.slice(1) ?? [] }
    await gateway.apply(config)
    expect(await served('gpt-5')).toEqual([200, 'gpt-5.4'])

    // 6. The last call.
    if (isFile) await gateway.apply({ ...config, models: {} })
    else await manage(gateway.url, AS_ROOT, 'PUT /api/option/', { ...option, value: '{}' })
    const gone = await fixture.chat('ann', ask('gpt-5'))
    expect([gone.status, gone.json().error.code]).toEqual([503, 'model_not_found'])
  },
)
