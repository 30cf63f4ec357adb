import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../equipment/account.ts'
import { call } from '../equipment/client.ts'
import { channel, ROOT, token, user } from '../equipment/configuration.ts'
import { SECRET, sluiceProcess } from '../equipment/command.ts'
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

const USER_FILE = 'src/domain/records/user.ts'
const BEFORE_IN_USER = '  used_quota: { type: whole(), default: 0 },\n'
const FIELD_OF_USER = {
  file: USER_FILE,
  text: BEFORE_IN_USER,
  by: `  team: {
    type: text(20),
    default: '',
    edit: 'admin',
    audit: true,
    declared: true,
    option: ['name', 'the team'],
  },
${BEFORE_IN_USER}`,
}

test('a field of the user record is in the API, the audit log, gateway.yaml and the command line', async () => {
  const copy = await patchedProgram([FIELD_OF_USER])
  onTestFinished(() => copy.discard())
  const fixture = await startFixture(() => ({ users: [ROOT, user(2, 'ann', [], { team: 'blue' })] }), {
    root: copy.root,
    env: { GATEWAY_SECRET: SECRET },
  })
  onTestFinished(() => fixture.close())
  const { url, dataDir } = fixture.gateway
  const asRoot = <Data>(request: `${'GET' | 'POST' | 'PUT'} /${string}`, body?: object) =>
    manage<Data>(url, ROOT_ACCOUNT, request, body)

  const created = await sluiceProcess(
    ['user', 'create', 'bob', '--team', 'red', '--json'],
    { DATA_DIR: dataDir, GATEWAY_SECRET: SECRET },
    undefined,
    copy.root,
  )
  expect(created.json()).toMatchObject({ username: 'bob', team: 'red' })
  await asRoot('POST /api/user/', { username: 'cat', password: 'eight characters', team: 'green' })
  expect((await asRoot('PUT /api/user/', { id: 2, team: 'brown' })).status).toBe(200)
  expect(await asRoot('PUT /api/user/', { id: 2, team: 't'.repeat(21) })).toMatchObject({
    status: 400,
    message: 'team: expected a text of at most 20 characters',
  })

  const { items } = (await asRoot<{ items: { username: string; team: string }[] }>('GET /api/user/')).data
  expect(Object.fromEntries(items.map(({ username, team }) => [username, team]))).toEqual({
    cat: 'green',
    bob: 'red',
    ann: 'brown',
    root: '',
  })
  const { data } = await asRoot<{ items: { changes: object[] }[] }>('GET /api/audit?kind=user&object=2')
  expect(data.items[0]?.changes).toEqual([{ field: 'team', before: 'blue', after: 'brown' }])
})

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
