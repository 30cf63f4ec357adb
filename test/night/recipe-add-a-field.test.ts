import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { createToken } from '../fixtures/tokens.ts'
import { ENGINES } from '../stores/engines.ts'
import { filesWithErrors } from '../recipes/compiled-copy.ts'
import { addedCode, databaseOf } from '../recipes/recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const LINE = addedCode('recipes/add-a-field', 'ts')

/** A field that is added: its line, and its values in gateway.yaml, in a new object and after a change. */
interface Added {
  readonly line: string
  readonly usual: unknown
  readonly declared: unknown
  readonly made: unknown
  readonly changed: unknown
  readonly refused: unknown
  /** What is expected in place of the refused value. */
  readonly expected: string
}

const note: Added = {
  line: LINE,
  usual: '',
  declared: 'from the file',
  made: 'for tests',
  changed: 'for more tests',
  refused: 'n'.repeat(201),
  expected: 'a text of at most 200 characters',
}

const setting = (name: string, type: string, usual: string): string =>
  `  ${name}: { type: ${type}, default: ${usual}, edit: 'admin', audit: true, declared: true },`

/** Records, with the position of new fields in their file. */
const RECORDS = [
  {
    record: 'token',
    before: '    deleted_time: {',
    fields: { note },
    kind: 'key',
    create: async (url: string, name: string, fields: object) =>
      (await createToken(url, ROOT_ACCOUNT, name, { ...fields })).id,
    declaredName: 'token-declared',
  },
  {
    record: 'channel',
    before: '  disable_store: {',
    fields: {
      note: { ...note, line: LINE.replace("'holder'", "'admin'") },
      tags: {
        line: setting('tags', "listType(textType(9), 'a list of tags')", '[]'),
        usual: [],
        declared: ['fast', 'near'],
        made: ['slow'],
        changed: ['slow', 'far'],
        refused: 'slow',
        expected: 'a list of tags',
      },
      labels: {
        line: setting('labels', "mappingType(textType(9), 'a mapping of labels')", 'new Map()'),
        usual: {},
        declared: { team: 'a' },
        made: { team: 'b', site: 'c' },
        changed: { team: 'd' },
        refused: ['b'],
        expected: 'a mapping of labels',
      },
      patience: {
        line: setting('patience', 'nullableType(durationType)', 'null'),
        usual: null,
        declared: '1m',
        made: '5s',
        changed: '250ms',
        refused: '5 minutes',
        expected: 'a duration such as 500ms, 5s, 20m or 1h',
      },
    },
    kind: 'channel',
    create: async (url: string, name: string, fields: object) => {
      const body = { channel: { name, type: 1, key: 'k', models: 'm', ...fields } }
      const { data } = await manage<{ ids: number[] }>(url, ROOT_ACCOUNT, 'POST /api/channel/', body)
      return data.ids[0]
    },
    declaredName: 'm',
  },
] as const

const CASES = RECORDS.flatMap((one) => ENGINES.map((engine) => ({ ...one, engine, on: engine.name })))

test.each(CASES)(
  'a field added to the record of a $record appears in the API, its description, audit log and gateway.yaml, on $on',
  async ({ record, before, fields, kind, create, declaredName, engine }) => {
    const added = Object.entries<Added>(fields)
    const valuesOf = (which: keyof Added) =>
      Object.fromEntries(added.map(([name, one]) => [name, one[which]]))
    const file = `src/domain/records/${record}.ts`
    const env = await databaseOf(engine)
    const imports = "} from './field-types.ts'"
    const copy = await patchedProgram([
      { file, text: imports, by: `  textType,\n${imports}` },
      { file, text: before, by: [...added.map(([, { line }]) => line), before].join('\n') },
    ])
    onTestFinished(() => copy.discard())
    const ofFile = valuesOf('declared')
    const declared = { ...token('declared'), ...(record === 'token' && ofFile) }
    const fixture = await startFixture(
      (upstream) => ({
        channels: [channel('m', upstream.baseUrl('m'), { ...(record === 'channel' && ofFile) })],
        users: [{ ...ROOT, tokens: [declared] }, user(2, 'ann', [])],
      }),
      { root: copy.root, env },
    )
    onTestFinished(() => fixture.close())
    const { url } = fixture.gateway
    const asRoot = <Data>(request: `${'GET' | 'POST' | 'PUT'} /${string}`, body?: object) =>
      manage<Data>(url, ROOT_ACCOUNT, request, body)
    const path = `/api/${record}/` as const
    const shown = (id: number | undefined) => asRoot<{ version: string }>(`GET ${path}${String(id)}`)

    const id = await create(url, 'noted', valuesOf('made'))
    const { data: made } = await shown(id)
    expect(made).toMatchObject(valuesOf('made'))
    expect((await shown(await create(url, 'plain', {}))).data).toMatchObject(valuesOf('usual'))

    const change = { id, ...valuesOf('changed'), version: made.version }
    expect((await asRoot(`PUT ${path}`, change)).data).toMatchObject(valuesOf('changed'))
    expect(await asRoot(`PUT ${path}`, change)).toMatchObject({ status: 409 })
    expect(await asRoot(`PUT ${path}`, { id, ...valuesOf('refused') })).toMatchObject({
      status: 400,
      message: added.map(([name, { expected }]) => `${name}: expected ${expected}`).join('; '),
    })

    const { items } = (await asRoot<{ items: { name: string }[] }>(`GET ${path}`)).data
    expect(Object.fromEntries(items.map((one) => [one.name, one]))).toMatchObject({
      plain: valuesOf('usual'),
      noted: valuesOf('changed'),
      [declaredName]: ofFile,
    })

    const audit = `kind=${kind}&object=${String(id)}`
    const { data } = await asRoot<{ items: { changes: object[] }[] }>(`GET /api/audit?${audit}`)
    expect(data.items[0]?.changes).toEqual(
      added.map(([field, { made: before, changed: after }]) => ({ field, before, after })),
    )
    const exported = await call(url, undefined, {
      method: 'GET',
      path: `/api/audit/export?${audit}`,
      headers: { authorization: ROOT_ACCOUNT.accessToken, 'gateway-user': '1' },
    })
    expect(exported.text).toContain('for more tests')

    const described = await call(url, undefined, { method: 'GET', path: '/openapi.json' })
    const paths = JSON.parse(described.text).paths as Record<string, Record<string, unknown>>
    const { post, put } = paths[path] ?? {}
    for (const operation of [post, put, paths[`${path}{id}`]?.['get']])
      for (const [name] of added) expect(JSON.stringify(operation)).toContain(`"${name}"`)
  },
  120_000,
)

const TOKEN_FIELD = [
  {
    file: 'src/domain/records/token.ts',
    text: "} from './field-types.ts'",
    by: "  textType,\n} from './field-types.ts'",
  },
  { file: 'src/domain/records/token.ts', text: '    deleted_time: {', by: `${LINE}    deleted_time: {` },
  {
    file: 'src/domain/usage-limits.ts',
    text: "type Unlimiting = 'name'",
    by: "type Unlimiting = 'name' | 'note'",
  },
  {
    file: 'console/pages/keys/key-form-values.ts',
    text: 'TEXT_FIELDS = {',
    by: 'TEXT_FIELDS = { note: 200,',
  },
]
const CHANNEL_FIELD = [
  {
    file: 'src/domain/records/channel.ts',
    text: "} from './field-types.ts'",
    by: "  textType,\n} from './field-types.ts'",
  },
  {
    file: 'src/domain/records/channel.ts',
    text: '  disable_store: {',
    by: `${LINE.replace("'holder'", "'admin'")}  disable_store: {`,
  },
  {
    file: 'console/pages/channels/channel-form.ts',
    text: "SETTINGS_FROM_RECORD = ['priority']",
    by: "SETTINGS_FROM_RECORD = ['priority', 'note']",
  },
]

test.each([
  {
    form: 'a key',
    field: TOKEN_FIELD,
    texts: 'keys',
    before: '  texts: {',
    label: "  texts: { note: 'Note',",
  },
  {
    form: 'a channel',
    field: CHANNEL_FIELD,
    texts: 'channels',
    before: '  settings: {',
    label: "  settings: { note: 'Note',",
  },
])(
  'one line adds a field to the console form of $form, and then only its two translated texts are missing',
  async (one) => {
    const english = { file: `console/locales/en/${one.texts}.ts`, text: one.before, by: one.label }
    expect(await filesWithErrors([...one.field, english], 'note')).toEqual([
      `console/locales/zh/${one.texts}.ts`,
    ])
  },
)
