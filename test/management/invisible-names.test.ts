import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../stores/rows.ts'
import { manage } from '../fixtures/account.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ADDRESS = 'http://127.0.0.1:9/v1'

/** Characters without a form: a zero-width space, an empty braille pattern, a wide space, a direction control. */
const UNSEEN = ['\u200B', '\u2800', '\u3000', '\u202E', '\uFFFC', '\u{1D159}', '\u{E0061}', '\u00AD']

/** A guard that looks for a word. */
const guard = (fields: object) => ({ name: 'words', do: 'block', match: { words: ['x'] }, ...fields })

/** Configurations with one name in each of their places. */
const PLACES: readonly (readonly [string, (name: string) => Fields])[] = [
  ['a channel', (name) => ({ channels: [channel('m', ADDRESS, { name })] })],
  ['a model of a channel', (name) => ({ channels: [channel('p', ADDRESS, { models: [name] })] })],
  [
    'the name in a model mapping',
    (name) => ({ channels: [channel('n', ADDRESS, { model_mapping: { [name]: 'm' } })] }),
  ],
  [
    'the model of a model mapping',
    (name) => ({ channels: [channel('o', ADDRESS, { model_mapping: { m: name } })] }),
  ],
  ['a model with a price', (name) => ({ models: priced([name]) })],
  ['a vendor', (name) => ({ models: { m: { vendor: name } } })],
  ['a fallback', (name) => ({ models: { n: { price: PLAIN_PRICE, fallback: [name] } } })],
  ['a successor', (name) => ({ models: { o: { price: PLAIN_PRICE, successor: name } } })],
  ['a guard', (name) => ({ guards: [guard({ name })] })],
  ['a model of a guard', (name) => ({ guards: [guard({ name: 'others', models: [name] })] })],
  ['a user of a guard', (name) => ({ guards: [guard({ name: 'users', users: [name] })] })],
  ['a key', (name) => ({ users: [user(2, 'ann', [token('ann', { name })])] })],
  [
    'a model of a key',
    (name) => ({
      users: [user(3, 'ben', [token('ben', { model_limits_enabled: true, model_limits: `m, ${name}` })])],
    }),
  ],
]

interface Fields {
  readonly channels?: readonly object[]
  readonly models?: Readonly<Record<string, unknown>>
  readonly guards?: readonly object[]
  readonly users?: readonly object[]
}

async function startingWith(config: object): Promise<void> {
  const gateway = await startGateway({ config: { users: [ROOT], ...config } })
  await gateway.discard()
}

describe('a name in gateway.yaml with invisible characters is refused', () => {
  let refusal = ''
  // A start reports everything that is wrong in the file.
  beforeAll(async () => {
    const parts: readonly Fields[] = [
      ...PLACES.map(([, config], at) => config(`m${UNSEEN.join('')}x${at}`)),
      { models: priced(UNSEEN.map((unseen) => `m${unseen}x`)) },
    ]
    const whole = {
      channels: parts.flatMap(({ channels = [] }) => channels),
      models: Object.assign({}, ...parts.map(({ models }) => models)) as Fields['models'],
      guards: parts.flatMap(({ guards = [] }) => guards),
      users: [ROOT, ...parts.flatMap(({ users = [] }) => users)],
    }
    refusal = await startingWith(whole).then(
      () => 'it has started',
      (error: unknown) => String(error),
    )
  })

  test.each(PLACES.map(([place], at) => [place, at] as const))('of %s', (_, at) => {
    const lines = refusal.split('\n').filter((line) => line.endsWith(`x${at}"`))
    expect(lines).toEqual([
      expect.stringMatching(/(?:without|none of them) invisible|hyphens and underscores/),
    ])
  })

  test.each(UNSEEN)('for each such character: %j', (unseen) => {
    expect(refusal).toContain(`found "m\\u${unseen.codePointAt(0)?.toString(16)}x"`)
  })

  test('in a file of prices', async () => {
    const file = join(temporaryFolder(), 'prices.yaml')
    writeFileSync(file, '"m\\u200Bx": { input: 1, output: 2 }\n')
    await expect(startingWith({ options: { prices_file: file } })).rejects.toThrow('found "m\\u200bx"')
  })

  test('but not one with spaces around it, control characters or commas, which a gateway may have had for long', async () => {
    const file = join(temporaryFolder(), 'prices.yaml')
    writeFileSync(file, '"n ": { input: 1, output: 2 }\n')
    await startingWith({
      groups: { ' sales': {}, 'a,b': {}, '\n': {} },
      models: priced(['m ']),
      options: { prices_file: file },
    })
  })

  test('but not a name with joined emoji or joiners that a script needs', async () => {
    const name = '\u{1F469}\u200D\u{1F52C} می\u200Cخواهم'
    await startingWith({ channels: [channel('m', ADDRESS, { name })] })
  })
})

describe('over HTTP', () => {
  let gateway: RunningGateway
  beforeAll(async () => {
    gateway = await startGateway({ config: { rate_limits: {}, users: [ROOT, user(2, 'ann', [])] } })
  })
  afterAll(() => gateway?.discard())

  const as = (request: Parameters<typeof manage>[2], body?: object) =>
    manage<Record<string, unknown>>(gateway.url, ROOT_ACCOUNT, request, body)
  const lane = (fields: object) => ({
    name: 'lane',
    type: 1,
    key: 'k',
    base_url: 'http://127.0.0.1:9',
    models: 'm',
    ...fields,
  })

  test.each<[string, Parameters<typeof manage>[2], (name: string) => object]>([
    ['a channel', 'POST /api/channel/', (name) => lane({ name })],
    ['one of several channels', 'POST /api/channel/', (name) => lane({ name, mode: 'batch', key: 'k\nl' })],
    ['a model of a channel', 'POST /api/channel/', (name) => lane({ models: `m,${name}` })],
    [
      'a model mapping',
      'POST /api/channel/',
      (name) => lane({ model_mapping: JSON.stringify({ [name]: 'm' }) }),
    ],
    [
      'the model of a mapping',
      'POST /api/channel/',
      (name) => lane({ model_mapping: JSON.stringify({ m: name }) }),
    ],
    ['a price', 'PUT /api/option/', (name) => ({ key: 'ModelRatio', value: JSON.stringify({ [name]: 1 }) })],
    [
      'a fallback',
      'PUT /api/option/',
      (name) => ({ key: 'ModelFallback', value: JSON.stringify({ m: [name] }) }),
    ],
    ['a guard', 'POST /api/guards', (name) => guard({ name })],
    ['a model of a guard', 'POST /api/guards', (name) => guard({ models: [name] })],
    ['a key', 'POST /api/token/', (name) => ({ name, unlimited_quota: true })],
    [
      'a model of a key',
      'POST /api/token/',
      (name) => ({ name: 'k', model_limits_enabled: true, model_limits: `m,${name}` }),
    ],
    ['a display name', 'PUT /api/user/', (name) => ({ id: 2, display_name: name })],
  ])('%s with invisible characters is refused', async (_, request, body) => {
    for (const unseen of UNSEEN) {
      const answer = await as(request, body(`m${unseen}x`))
      expect([answer.status, JSON.stringify(answer)]).toEqual([
        400,
        expect.stringMatching(/invisible|hyphens and underscores/),
      ])
    }
  })

  // A channel's groups are a text with commas between them, of which each is trimmed.
  test.each<[string, Parameters<typeof manage>[2], (name: string) => object, readonly string[]]>([
    ['a group', 'POST /api/group/', (group) => ({ group }), ['a,b']],
    [
      'a group with a ratio',
      'PUT /api/option/',
      (name) => ({ key: 'GroupRatio', value: JSON.stringify({ [name]: 1 }) }),
      ['a,b'],
    ],
    ['a model', 'PUT /api/models/price', (model) => ({ model, price: { input: 1, output: 2 } }), []],
  ])(
    'the name of %s with spaces around it, control characters or lone surrogates is refused',
    async (...of) => {
      const [, request, body, more] = of
      for (const name of [' sales', 'sales ', ' ', '\n', 'a\tb', '\uD800', ...more]) {
        const answer = await as(request, body(name))
        expect([name, answer.status, answer.message]).toEqual([
          name,
          400,
          expect.stringContaining('expected'),
        ])
      }
      const names = (['GET /api/group/', 'GET /api/models'] as const).map((request) => as(request))
      expect(JSON.stringify(await Promise.all(names))).not.toMatch(/sales|\uFFFD/)
    },
  )

  test('a channel that exists keeps its other settings when a name with invisible characters is refused', async () => {
    const { data } = await as('POST /api/channel/', lane({}))
    const [id] = data['ids'] as number[]
    const renamed = await as('PUT /api/channel/', { id, name: 'lane\u2800' })
    expect(renamed).toMatchObject({ status: 400, message: expect.stringContaining('found "lane\\u2800"') })
    expect((await as('PUT /api/channel/', { id, models: 'm,n' })).status).toBe(200)
    expect((await as(`GET /api/channel/${id}`)).data).toMatchObject({ name: 'lane', models: 'm,n' })
  })
})
