import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../equipment/account.ts'
import { call } from '../equipment/client.ts'
import { channel, ROOT, token, user } from '../equipment/configuration.ts'
import { startFixture } from '../equipment/fixture.ts'
import { patchedProgram } from '../equipment/patched-copy.ts'
import { createToken } from '../equipment/tokens.ts'
import { ENGINES } from '../store-engines.ts'
import { addedCode } from './recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

const FILE = 'src/domain/records/token.ts'
const BEFORE = '    /** The part of the terms and limits that an operator gave. */'
const FIELD = [
  { file: FILE, text: '  TEXT_BYTES,\n', by: '  TEXT_BYTES,\n  text,\n' },
  { file: FILE, text: BEFORE, by: `${addedCode('add-a-field', 'ts')}\n${BEFORE}` },
]

test.each(ENGINES)(
  'a field of the token record is in the API, its description, the audit log and gateway.yaml, on $name',
  async (engine) => {
    const { place } = await engine.database()
    const copy = await patchedProgram(FIELD)
    onTestFinished(() => copy.discard())
    const declared = { ...token('declared'), note: 'from the file' }
    const fixture = await startFixture(
      (upstream) => ({
        channels: [channel('m', upstream.baseUrl('m'))],
        users: [{ ...ROOT, tokens: [declared] }, user(2, 'ann', [])],
      }),
      { root: copy.root, env: engine.name === 'SQLite' ? {} : { DATABASE_URL: place } },
    )
    onTestFinished(() => fixture.close())
    const { url } = fixture.gateway
    const asRoot = <Data>(request: `${'GET' | 'POST' | 'PUT'} /${string}`, body?: object) =>
      manage<Data>(url, ROOT_ACCOUNT, request, body)
    const shown = (id: number) => asRoot<{ note: string; version: string }>(`GET /api/token/${id}`)

    const { id } = await createToken(url, ROOT_ACCOUNT, 'noted', { note: 'for tests' })
    const made = (await shown(id)).data
    expect(made.note).toBe('for tests')
    const plain = await createToken(url, ROOT_ACCOUNT, 'plain')
    expect((await shown(plain.id)).data.note).toBe('')

    const change = { id, note: 'for more tests', version: made.version }
    expect((await asRoot<{ note: string }>('PUT /api/token/', change)).data.note).toBe('for more tests')
    expect(await asRoot('PUT /api/token/', change)).toMatchObject({ status: 409 })
    expect(await asRoot('PUT /api/token/', { id, note: 'n'.repeat(201) })).toMatchObject({
      status: 400,
      message: 'note: expected a text of at most 200 characters',
    })

    const { items } = (await asRoot<{ items: { name: string; note: string }[] }>('GET /api/token/')).data
    expect(items.map(({ name, note }) => [name, note])).toEqual([
      ['plain', ''],
      ['noted', 'for more tests'],
      ['token-declared', 'from the file'],
    ])

    const audit = `kind=key&object=${id}`
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
    const { post, put } = paths['/api/token/'] ?? {}
    for (const operation of [post, put, paths['/api/token/{id}']?.['get']])
      expect(JSON.stringify(operation)).toContain('"note"')
  },
  120_000,
)
