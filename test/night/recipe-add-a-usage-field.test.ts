import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { ENGINES } from '../stores/engines.ts'
import { addedCode, databaseOf } from '../recipes/recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

const LAST_FIELD = '    particulars: {'
const FIELD = {
  file: 'src/domain/records/usage.ts',
  text: LAST_FIELD,
  by: `${addedCode('recipes/add-a-usage-field', 'ts')}${LAST_FIELD}`,
}
/** The place that the value comes from. */
const SOURCE = {
  file: 'src/call/settlement.ts',
  text: "      guards: columns.guards ?? '',\n",
  by: "      guards: columns.guards ?? '',\n      shard: 'blue',\n",
}

/** The step by which a database that exists gets the column. */
const STEP = {
  file: 'src/store/migrations/steps.ts',
  text: ']\n\n/** Adds columns',
  by: "  { name: '9001-shard', run: added(USAGE, 'shard') },\n]\n\n/** Adds columns",
}

interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[]
}

test.each(ENGINES)(
  "one new line in the usage record adds a field to the usage log, its API, the API's schema and the CSV file, on $name",
  async (engine) => {
    const copy = await patchedProgram([FIELD, SOURCE])
    onTestFinished(() => copy.discard())
    const env = await databaseOf(engine)
    const fixture = await startFixture(
      (upstream) => ({
        models: { m: { price: { input: '1', output: '2' } } },
        channels: [channel('up', upstream.baseUrl('up'), { models: ['m'] })],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { root: copy.root, env },
    )
    onTestFinished(() => fixture.close())
    const { url } = fixture.gateway
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)

    const rows = async () => (await manage<Page>(url, ROOT_ACCOUNT, 'GET /api/log/')).data.items
    await expect.poll(rows).toMatchObject([{ username: 'ann', shard: 'blue' }])
    const headers = { authorization: ROOT.access_token, 'gateway-user': '1' }
    const csv = await call(url, undefined, { method: 'GET', path: '/api/log/export', headers })
    const [names = '', values = ''] = csv.text.trim().split('\r\n')
    expect(values.split(',')[names.split(',').indexOf('shard')]).toBe('blue')
    const { text } = await call(url, undefined, { method: 'GET', path: '/openapi.json' })
    expect(text.includes('"shard":{"type":"string","description":"The part of the site"}')).toBe(true)
  },
)

test.each(ENGINES)(
  'a database that exists gets a new field of the usage log by a migration step, and its rows the default, on $name',
  async (engine) => {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const config = {
      models: { m: { price: { input: '1', output: '2' } } },
      channels: [channel('up', upstream.baseUrl('up'), { models: ['m'] })],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
    const env = await databaseOf(engine)
    const before = await startGateway({ config, env })
    onTestFinished(() => before.discard())
    expect((await call(before.url, ask('m'), { key: 'ann' })).status).toBe(200)
    await before.stop()
    const copy = await patchedProgram([FIELD, SOURCE, STEP])
    onTestFinished(() => copy.discard())
    const after = await startGateway({ config, env, root: copy.root, dataDir: before.dataDir })
    onTestFinished(() => after.discard())
    expect((await call(after.url, ask('m'), { key: 'ann' })).status).toBe(200)
    const rows = async () => (await manage<Page>(after.url, ROOT_ACCOUNT, 'GET /api/log/')).data.items
    await expect.poll(rows).toMatchObject([{ shard: 'blue' }, { shard: '' }])
  },
)
