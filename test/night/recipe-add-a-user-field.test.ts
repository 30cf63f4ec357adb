import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { SECRET, sluiceProcess } from '../fixtures/command.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

const BEFORE = '  used_quota: { type: integerType(), default: 0 },\n'
const FIELD = {
  file: 'src/domain/records/user.ts',
  text: BEFORE,
  by: `  team: {
    type: textType(20),
    default: '',
    edit: 'holder',
    audit: true,
    declared: true,
    option: ['name', 'the team'],
  },
${BEFORE}`,
}

test('a field added to the user record appears in the API, the audit log, gateway.yaml and the command line', async () => {
  const copy = await patchedProgram([FIELD])
  onTestFinished(() => copy.discard())
  const ann = user(2, 'ann', [], { team: 'blue', access_token: ANN.accessToken })
  const fixture = await startFixture(() => ({ users: [ROOT, ann] }), {
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
  expect((await asRoot('PUT /api/user/', { id: 2, team: 'black' })).status).toBe(200)
  expect((await manage(url, ANN, 'PUT /api/user/self', { team: 'brown' })).status).toBe(200)
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
  expect(data.items.slice(0, 2).map(({ changes }) => changes)).toEqual([
    [{ field: 'team', before: 'black', after: 'brown' }],
    [{ field: 'team', before: 'blue', after: 'black' }],
  ])
})
