import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { createToken } from '../fixtures/tokens.ts'
import { ENGINES } from '../store-engines.ts'
import { addedCode } from './recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const LINE = addedCode('add-a-field', 'ts')

/** Records with the place of a new field in their file. */
const RECORDS = [
  {
    record: 'token',
    before: '    /** The part of the terms and limits that an operator gave. */',
    line: LINE,
    kind: 'key',
    create: async (url: string, name: string, fields: object) =>
      (await createToken(url, ROOT_ACCOUNT, name, { ...fields })).id,
    declaredName: 'token-declared',
  },
  {
    record: 'channel',
    before: "  /** Instructions in front of the client's own; empty = none. */",
    line: LINE.replace("'holder'", "'admin'"),
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
  'a field of the $record record is in the API, its description, the audit log and gateway.yaml, on $on',
  async ({ record, before, line, kind, create, declaredName, engine }) => {
    const file = `src/domain/records/${record}.ts`
    const { place } = await engine.database()
    const copy = await patchedProgram([
      { file, text: '  TEXT_BYTES,\n', by: '  TEXT_BYTES,\n  text,\n' },
      { file, text: before, by: `${line}\n${before}` },
    ])
    onTestFinished(() => copy.discard())
    const note = 'from the file'
    const declared = { ...token('declared'), ...(record === 'token' && { note }) }
    const fixture = await startFixture(
      (upstream) => ({
        channels: [channel('m', upstream.baseUrl('m'), { ...(record === 'channel' && { note }) })],
        users: [{ ...ROOT, tokens: [declared] }, user(2, 'ann', [])],
      }),
      { root: copy.root, env: engine.name === 'SQLite' ? {} : { DATABASE_URL: place } },
    )
    onTestFinished(() => fixture.close())
    const { url } = fixture.gateway
    const asRoot = <Data>(request: `${'GET' | 'POST' | 'PUT'} /${string}`, body?: object) =>
      manage<Data>(url, ROOT_ACCOUNT, request, body)
    const path = `/api/${record}/` as const
    const shown = (id: number | undefined) =>
      asRoot<{ note: string; version: string }>(`GET ${path}${String(id)}`)

    const id = await create(url, 'noted', { note: 'for tests' })
    const made = (await shown(id)).data
    expect(made.note).toBe('for tests')
    expect((await shown(await create(url, 'plain', {}))).data.note).toBe('')

    const change = { id, note: 'for more tests', version: made.version }
    expect((await asRoot<{ note: string }>(`PUT ${path}`, change)).data.note).toBe('for more tests')
    expect(await asRoot(`PUT ${path}`, change)).toMatchObject({ status: 409 })
    expect(await asRoot(`PUT ${path}`, { id, note: 'n'.repeat(201) })).toMatchObject({
      status: 400,
      message: 'note: expected a text of at most 200 characters',
    })

    const { items } = (await asRoot<{ items: { name: string; note: string }[] }>(`GET ${path}`)).data
    expect(Object.fromEntries(items.map((one) => [one.name, one.note]))).toEqual({
      plain: '',
      noted: 'for more tests',
      [declaredName]: note,
    })

    const audit = `kind=${kind}&object=${String(id)}`
    const { data } = await asRoot<{ items: { changes: object[] }[] }>(`GET /api/audit?${audit}`)
    expect(data.items[0]?.changes).toEqual([{ field: 'note', before: 'for tests', after: 'for more tests' }])
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
      expect(JSON.stringify(operation)).toContain('"note"')
  },
  120_000,
)
