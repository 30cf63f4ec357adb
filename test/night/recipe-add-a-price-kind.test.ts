import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { filesWithErrors } from '../recipes/compiled-copy.ts'
import { ENGINES } from '../stores/engines.ts'
import { addedCode, databaseOf } from '../recipes/recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

const END_OF_TABLE = '] as const satisfies readonly KindOfTokens[]'
/** The row of a kind whose tokens were not counted before. */
const COUNTED_ROW = `{
  name: 'video_input',
  count: 'videoInput',
  column: { name: 'video_tokens', about: 'The part of prompt_tokens that was video' },
  side: 'prompt',
  partOf: 'input',
},
`
const rows = (added: string) => ({
  file: 'src/domain/token-kinds.ts',
  text: END_OF_TABLE,
  by: added + END_OF_TABLE,
})
/** The count in what the protocols report. */
const NEW_COUNT = {
  file: 'packages/wire/src/usage.ts',
  text: '  searchUnits: 0,',
  by: '  searchUnits: 0,\n  videoInput: 0,',
}
const ROW = rows(addedCode('add-a-price-kind', 'ts'))

test.each(ENGINES)(
  'one new row in the table of price kinds adds a kind to configuration, charge, cost lines and price lists, on $name',
  async (engine) => {
    const env = await databaseOf(engine)
    const copy = await patchedProgram([ROW])
    onTestFinished(() => copy.discard())
    const fixture = await startFixture(
      (upstream) => ({
        models: {
          stated: { price: { input: '1', output: '2', reasoning: '10' } },
          derived: { price: { input: '1', output: '2' } },
        },
        channels: [channel('up', upstream.baseUrl('up'), { models: ['stated', 'derived'] })],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { root: copy.root, env },
    )
    onTestFinished(() => fixture.close())
    const usage = `{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
    "completion_tokens_details":{"reasoning_tokens":20}}`
    fixture.upstream.script('up', { kind: 'whole', usage })

    const detail = async (model: string) => {
      const { headers } = await fixture.chat('ann', ask(model))
      const path = `GET /api/log/${String(headers['x-request-id'])}` as const
      const read = async () =>
        (await manage<{ quota: number; cost: object[] }>(fixture.gateway.url, ROOT_ACCOUNT, path)).data
      // The row reaches PostgreSQL after the response.
      await expect.poll(read).toHaveProperty('quota')
      return read()
    }
    // 100 × 0.5 + 30 × 1 + 20 × 5 units.
    const stated = await detail('stated')
    expect(stated.quota).toBe(180)
    expect(stated.cost).toMatchObject([
      { kind: 'input', count: 100, price_usd: '1' },
      { kind: 'output', count: 30, price_usd: '2' },
      { kind: 'reasoning_output', count: 20, price_usd: '10', quota: '100' },
    ])
    // 100 × 0.5 + 50 × 1 units.
    expect((await detail('derived')).quota).toBe(100)

    const { data } = await manage<{ model: string; price: Record<string, string> }[]>(
      fixture.gateway.url,
      ROOT_ACCOUNT,
      'GET /api/models',
    )
    const prices = new Map(data.map(({ model, price }) => [model, price['reasoning']]))
    expect(prices).toEqual(
      new Map([
        ['stated', '10'],
        ['derived', '2'],
      ]),
    )
  },
)

test.each(ENGINES)(
  'a new price kind with a column has its count in the usage log, its sums and the CSV file, on $name',
  async (engine) => {
    const env = await databaseOf(engine)
    const copy = await patchedProgram([rows(COUNTED_ROW), NEW_COUNT])
    onTestFinished(() => copy.discard())
    const fixture = await startFixture(
      (upstream) => ({
        models: { m: { price: { input: '1', output: '2', video_input: '3' } } },
        channels: [channel('up', upstream.baseUrl('up'), { models: ['m'] })],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { root: copy.root, env },
    )
    onTestFinished(() => fixture.close())
    const { url } = fixture.gateway
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)

    const page = async () =>
      (await manage<{ items: object[] }>(url, ROOT_ACCOUNT, 'GET /api/log/')).data.items
    await expect.poll(page).toMatchObject([{ username: 'ann', video_tokens: 0 }])
    expect((await manage(url, ROOT_ACCOUNT, 'GET /api/log/stat')).data).toMatchObject({ video_tokens: 0 })
    const headers = { authorization: ROOT.access_token, 'gateway-user': '1' }
    const csv = await call(url, undefined, { method: 'GET', path: '/api/log/export', headers })
    expect(csv.text.split('\r\n')[0]).toContain('image_input_tokens,video_tokens,audio_output_tokens')
  },
)

test('a price kind that is added to the table lacks only its two translated texts in the console', async () => {
  const text = `    image: 'Images',`
  const english = {
    file: 'console/locales/en/call.ts',
    text,
    by: `${text}\n    reasoning_output: 'Reasoning',`,
  }
  expect(await filesWithErrors([ROW, english], 'reasoning_output')).toEqual(['console/locales/zh/call.ts'])
})
