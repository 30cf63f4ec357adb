import { Client } from 'pg'
import { beforeAll, afterAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt, rowWithContent } from '../fixtures/content.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { BUCKET, type S3Server, startS3Server, withoutS3 } from '../fixtures/s3-server.ts'
import { type ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { casesByTier } from '../runner/tier.ts'
import { type Nodes, setNodes, SHARED } from './fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const OPERATOR = { id: 1, accessToken: 'root-access-token' }

const configuration = (upstream: ScriptedUpstream): Configuration => ({
  rate_limits: { global: { requests: 0 } },
  content_log: { what: 'full', readers: 100 },
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [
    ROOT,
    user(2, 'ann', [token('ann'), token('other')], { access_token: ANN.accessToken }),
    user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
  ],
})

const idOf = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string =>
  String(headers['x-request-id'])

describe.each(SHARED)('the content log of several nodes on $name', (engine) => {
  let nodes: Nodes
  let bucket: S3Server | undefined
  const ends: (() => unknown)[] = []
  beforeAll(async () => {
    if (!withoutS3()) {
      bucket = await startS3Server()
      ends.push(() => bucket?.stop())
    }
    nodes = await setNodes(engine, 2, configuration, {
      env: bucket?.env,
      onEnd: (end) => ends.push(end),
      program: patientProgram,
    })
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const url = (node: number): string => nodes.gateways[node]?.url ?? ''
  const say = async (node: number, key: string): Promise<string> =>
    idOf(await nodes.chat(node, key, ask('m')))
  /** Deletes content; a busy database may refuse that at first. */
  const deleteContent = async (node: number, query = ''): Promise<void> => {
    const path = `DELETE /api/content${query}` as 'DELETE /'
    await expect.poll(async () => (await manage(url(node), ANN, path)).status).toBe(200)
  }
  const tokenOfAnn = async (): Promise<number> => {
    const [row] = await nodes.database.sql("select id from tokens where name = 'token-ann'")
    return Number(row?.['id'])
  }

  test('stored content of a call on one node can be read on every node, and is in the database partition for its day of removal', async () => {
    const id = await say(0, 'ann')
    const { parts } = await contentOf(url(1), ANN, id)
    expect(parts.request_received?.text).toBe(JSON.stringify(ask('m')))
    const row = await rowWithContent(url(1), ANN, `/api/log/self/${id}`)
    expect(row['content_address']).toMatch(new RegExp(`^content_entries_\\d{8}#${id}$`))
    expect((await lookAt(url(1), BEN, id)).status).toBe(404)
  })

  test('stored content of calls that is deleted on one node is gone on every node, and its key is destroyed', async () => {
    const gone = await say(0, 'ann')
    const kept = await say(1, 'ben')
    await Promise.all([contentOf(url(1), ANN, gone), contentOf(url(0), BEN, kept)])
    const before = await nodes.database.sql('select cipher from content_keys where user_id = 2')
    expect(before.length).toBeGreaterThan(0)
    await deleteContent(1)
    expect((await lookAt(url(0), ANN, gone)).status).toBe(404)
    expect((await lookAt(url(0), OPERATOR, gone)).status).toBe(404)
    expect((await lookAt(url(0), BEN, kept)).status).toBe(200)
    const rows = await nodes.database.sql(`select id from content_entries where id = '${gone}'`)
    expect(rows).toEqual([])
    const after = await nodes.database.sql('select cipher from content_keys where user_id = 2')
    for (const { cipher } of before) expect(after.map((row) => row['cipher'])).not.toContain(cipher)
  })

  test("destroyed content keys whose table is locked are removed from the database's files with the next deletion", async () => {
    const toDo = () => nodes.database.sql('select id from content_rewrites')
    await contentOf(url(0), ANN, await say(0, 'ann'))
    const reader = new Client({ connectionString: nodes.database.place })
    await reader.connect()
    await reader.query('begin')
    await reader.query('lock table content_keys in access share mode')
    await deleteContent(0)
    expect(await toDo()).toHaveLength(1)
    await reader.end()
    await contentOf(url(0), ANN, await say(0, 'ann'))
    await deleteContent(0)
    expect(await toDo()).toEqual([])
  })

  test('deleted prompts and answers are nowhere in the database or its files, and their key is in no file of keys', async () => {
    const SECRET = 'an unmistakable sentence'
    const id = idOf(await nodes.chat(0, 'ann', ask('m', { messages: [{ role: 'user', content: SECRET }] })))
    await contentOf(url(1), ANN, id)
    const keys = await nodes.database.sql('select cipher from content_keys where user_id = 2')
    const [entry] = await nodes.database.sql(`select sealed from content_entries where id = '${id}'`)
    const sealed = Buffer.from(entry?.['sealed'] as Uint8Array)
      .toString('hex')
      .slice(0, 64)
    expect(sealed).toHaveLength(64)
    await deleteContent(1)
    const tables = await nodes.database.sql(
      "select oid::regclass::text as name, pg_relation_filepath(oid) as path from pg_class where relkind in ('r', 'm') and relnamespace = 'public'::regnamespace",
    )
    await nodes.database.sql('checkpoint')
    for (const { name, path } of tables as { name: string; path: string }[]) {
      const rows = await nodes.database.sql(`select t::text as row from ${name} t`)
      const text = rows.map(({ row }) => row).join('\n')
      expect([name, text.includes(SECRET), text.includes(sealed)]).toEqual([name, false, false])
      for (const { cipher } of keys) expect([name, text.includes(String(cipher))]).toEqual([name, false])
      const [file] = await nodes.database.sql(`select pg_read_binary_file('${path}') as bytes`)
      const bytes = Buffer.from(file?.['bytes'] as Uint8Array)
      expect([name, bytes.includes(SECRET)]).toEqual([name, false])
      if (name !== 'content_keys') continue
      for (const { cipher } of keys) expect([name, bytes.includes(String(cipher))]).toEqual([name, false])
    }
    expect(keys.length).toBeGreaterThan(0)
  })

  test('a deletion of content on one node covers content that another node has not written yet', async () => {
    const id = await say(0, 'ann')
    await deleteContent(1)
    // What was said later is written with it, or after it.
    await contentOf(url(0), ANN, await say(0, 'ann'))
    expect((await lookAt(url(0), ANN, id)).status).toBe(404)
  })

  test("deleting the content of one API key on PostgreSQL re-encrypts the user's other content", async () => {
    const [gone, kept] = [await say(0, 'ann'), await say(0, 'other')]
    const tokenId = await tokenOfAnn()
    await Promise.all([contentOf(url(0), ANN, gone), contentOf(url(0), ANN, kept)])
    const sealed = async (id: string) =>
      (await nodes.database.sql(`select key_id from content_entries where id = '${id}'`))[0]?.['key_id']
    const key = await sealed(kept)
    await deleteContent(1, `?token=${tokenId}`)
    expect((await lookAt(url(0), ANN, gone)).status).toBe(404)
    expect((await lookAt(url(0), ANN, kept)).status).toBe(200)
    expect(await sealed(kept)).not.toBe(key)
    expect(await nodes.database.sql(`select id from content_keys where id = '${String(key)}'`)).toEqual([])
  })

  test('a node that is killed while it writes content leaves the content of each call either whole or absent', async () => {
    const [killed, other] = nodes.gateways
    if (!killed || !other) throw new Error('there are two nodes')
    const bodies = new Map<string, string>()
    const say = async (index: number): Promise<void> => {
      const key = index % 2 === 0 ? 'ann' : 'ben'
      const body = ask('m', { messages: [{ role: 'user', content: `${key} ${index} `.repeat(2_000) }] })
      const answer = await nodes.chat(0, key, body).catch(() => undefined)
      if (answer?.status === 200) bodies.set(`${key} ${idOf(answer)}`, JSON.stringify(body))
    }
    const over = new AbortController()
    const saying = Array.from({ length: 8 }, async (_, lane) => {
      for (let index = lane; !over.signal.aborted; index += 8) await say(index)
    })
    const isReadable = async (call = ''): Promise<boolean> => {
      const [key, id = ''] = call.split(' ')
      return (await lookAt(other.url, key === 'ann' ? ANN : BEN, id)).status === 200
    }
    // The node is killed after it wrote a batch, and another with a call that came after that.
    for (const _ of [1, 2]) {
      await expect.poll(() => bodies.size).toBeGreaterThan(0)
      const latest = [...bodies.keys()].at(-1)
      await expect.poll(() => isReadable(latest)).toBe(true)
    }
    await killed.kill()
    over.abort()
    await Promise.all(saying)
    let whole = 0
    let absent = 0
    for (const [call, body] of casesByTier(60, [...bodies])) {
      const [key = '', id = ''] = call.split(' ')
      const [own, foreign] = key === 'ann' ? [ANN, BEN] : [BEN, ANN]
      expect((await lookAt(other.url, foreign, id)).status).toBe(404)
      const seen = await lookAt(other.url, own, id)
      if (seen.status === 404) absent += 1
      else {
        expect([seen.status, seen.data.parts.request_received?.text === body]).toEqual([200, true])
        whole += 1
      }
    }
    console.info(`${whole} calls are whole, and ${absent} absent`)
    expect(whole).toBeGreaterThan(0)
    await killed.restart()
  })

  test.skipIf(withoutS3())(
    "content of calls in an S3 bucket can be read and deleted on every node; other keys' content is re-encrypted",
    async () => {
      const content_log = { what: 'full', store: `s3://${BUCKET}`, endpoint: bucket?.url }
      for (const gateway of nodes.gateways)
        await gateway.apply({ ...configuration(nodes.upstream), content_log })
      const written = async (key: string): Promise<string> => {
        const id = await say(0, key)
        // A deletion has everything written that its node still has.
        await manage(url(0), OPERATOR, 'DELETE /api/content')
        return id
      }
      const [gone, kept] = [await written('ann'), await written('other')]
      const { parts } = await contentOf(url(1), ANN, gone)
      expect(parts.request_received?.text).toBe(JSON.stringify(ask('m')))
      // A busy database may have refused the deletion by which this content is written.
      await contentOf(url(1), ANN, kept)
      const places = await nodes.database.sql(
        `select object, sealed from content_entries where id in ('${gone}', '${kept}')`,
      )
      expect(places).toHaveLength(2)
      for (const { object, sealed } of places) {
        expect(object).toMatch(new RegExp(`^s3://${BUCKET}/[0-9a-f]{16}/\\d{4}-\\d\\d-\\d\\d/`))
        expect(sealed).toHaveLength(0)
      }
      const tokenId = await tokenOfAnn()
      const keys = await nodes.database.sql('select id from content_keys where user_id = 2')
      await deleteContent(1, `?token=${tokenId}`)
      expect((await lookAt(url(0), ANN, gone)).status).toBe(404)
      expect((await lookAt(url(0), ANN, kept)).status).toBe(200)
      const after = await nodes.database.sql('select id from content_keys where user_id = 2')
      for (const { id } of keys) expect(after.map((row) => row['id'])).not.toContain(id)
      expect(await nodes.database.sql(`select id from content_entries where id = '${gone}'`)).toEqual([])
    },
  )
})
