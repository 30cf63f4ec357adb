/**
 * Makes test/releases/VERSION.tar.gz, the data of this version, which later versions have to upgrade: `node
 * test/release/make-release-data.ts`. Until the version is released, run it again when the schema changes;
 * afterwards never.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { call } from '../fixtures/client.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { startOwnPostgres } from '../fixtures/own-postgres.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import {
  administer,
  ARCHIVES,
  dumpPostgres,
  type Expected,
  observe,
  releaseConfig,
  schemaStatements,
} from './release-data.ts'

const MAX_BYTES = 200_000
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string
}

/** A token that was made over HTTP, with its key. */
async function newKey(url: string, fields: object): Promise<string> {
  await administer(url, 'POST', '/api/token/', { expired_time: -1, ...fields })
  const { items } = await administer<{ items: { id: number }[] }>(url, 'GET', '/api/token/?p=1&page_size=100')
  const { key } = await administer<{ key: string }>(url, 'POST', `/api/token/${items[0]?.id}/key`)
  return key.startsWith('sk-') ? key : `sk-${key}`
}

/** Makes accounts, calls and stored responses in a new gateway. */
async function fill({ url }: RunningGateway): Promise<Expected['engines']['sqlite']> {
  await administer(url, 'POST', '/api/user/', {
    username: 'ann',
    password: 'a password of ann',
    quota: 5_000_000,
  })
  await administer(url, 'POST', '/api/user/', {
    username: 'bob',
    password: 'a password of bob',
    quota: 100,
    group: 'default',
  })
  const key = await newKey(url, { name: 'unlimited', remain_quota: 0, unlimited_quota: true })
  const small = await newKey(url, {
    name: 'small',
    remain_quota: 50_000,
    unlimited_quota: false,
    model_limits_enabled: true,
    model_limits: 'model',
  })
  await administer(url, 'POST', '/api/channel/', {
    name: 'spare',
    type: 1,
    key: 'sk-of-a-vendor',
    models: 'other-model',
    base_url: 'https://api.openai.com/v1',
  })
  const messages = [{ role: 'user', content: 'Hello' }]
  for (const [sk, stream] of [
    [key, false],
    [key, true],
    [small, false],
  ] as const) {
    const answer = await call(url, { model: 'model', stream, messages }, { key: sk })
    if (answer.status !== 200) throw new Error(`a call got ${answer.status}: ${answer.text}`)
  }
  const stored = await call(url, { model: 'model', input: 'Hello' }, { key, path: '/v1/responses' })
  if (stored.status !== 200) throw new Error(`a response got ${stored.status}: ${stored.text}`)
  return { key, response: (JSON.parse(stored.text) as { id: string }).id, observed: await observe(url) }
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-release-data-'))
await using opened = new AsyncDisposableStack()
opened.defer(() => Promise.resolve(rmSync(folder, { recursive: true })))
const upstream = opened.adopt(await startUpstream(), (one) => one.stop())
const config = releaseConfig(upstream.baseUrl('main'))

console.log('the embedded database')
const own = opened.adopt(await startGateway({ config }), (one) => one.discard())
const sqlite = await fill(own)
await own.stop()
mkdirSync(join(folder, 'sqlite'))
const file = new DatabaseSync(join(own.dataDir, 'sluice.db'))
file.exec(`vacuum into '${join(folder, 'sqlite/sluice.db')}'`)
file.close()

console.log('PostgreSQL')
const server = opened.adopt(await startOwnPostgres(), (one) => one.stop())
const schema = await schemaStatements(server.url)
const node = opened.adopt(await startGateway({ config, env: { DATABASE_URL: server.url } }), (one) =>
  one.discard(),
)
const postgres = await fill(node)
await node.stop()
mkdirSync(join(folder, 'postgres/node'), { recursive: true })
cpSync(join(node.dataDir, 'node.db'), join(folder, 'postgres/node/node.db'))
writeFileSync(join(folder, 'postgres/data.json'), JSON.stringify(await dumpPostgres(server.url, schema)))

const expected: Expected = { version, engines: { sqlite, postgres } }
writeFileSync(join(folder, 'expected.json'), JSON.stringify(expected, undefined, 2))
mkdirSync(ARCHIVES, { recursive: true })
const archive = join(ARCHIVES, `${version}.tar.gz`)
const pack = 'tar --sort=name --owner=0 --group=0 --numeric-owner -cf - . | gzip -9n'
execFileSync('sh', ['-c', `${pack} > "${archive}"`], { cwd: folder })
const { size } = statSync(archive)
console.log(`${archive}: ${size} bytes`)
if (size > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`)
