import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

interface Hit {
  readonly id: string
  readonly username: string
  readonly token_name: string
  readonly session: string
  readonly role: string
  readonly text: string
  readonly at: number
  readonly length: number
}
interface Found {
  readonly items: readonly Hit[]
  readonly calls: number
  readonly searched: number
  readonly unread: number
  readonly next: string | null
}
interface Words {
  readonly items: readonly { readonly id: string; readonly text: string | null }[]
  readonly unread: number
  readonly may_read_others: boolean
}

let copy: PatchedCopy
let fixture: Fixture
beforeAll(async () => {
  copy = await patchedProgram([
    // Otherwise a search ends where a slow machine has come to, or passes over what it reads too slowly.
    {
      file: 'src/management/usage/search-content.ts',
      text: 'const MAX_MS = 10_000',
      by: 'const MAX_MS = 120_000',
    },
    {
      file: 'src/management/usage/search-content.ts',
      text: 'const READ_MS = 4_000',
      by: 'const READ_MS = 10_000',
    },
    // Without its own, shorter limits, one content takes all of that.
    { file: 'src/limits/store-reads.ts', text: 'const WAIT_MS = 10_000', by: 'const WAIT_MS = 120_000' },
    { file: 'src/content/content-log.ts', text: 'const READ_MS = 30_000', by: 'const READ_MS = 120_000' },
    {
      file: 'src/content/content-storage.ts',
      text: '    return words === undefined ? firstWords',
      by: "    if (JSON.stringify(turns).includes('stuck')) await new Promise(() => {})\n    return words === undefined ? firstWords",
    },
    // What root reads holds its memory until root reads something else.
    {
      file: 'src/management/usage/call-content.ts',
      text: '  const found = await content.read(',
      by: '  if (user.id === 1) await new Promise((end) => { globalThis.endOther?.(); globalThis.endOther = end })\n  const found = await content.read(',
    },
    // For the test of the memory that a search takes.
    {
      file: 'src/limits/request-memory.ts',
      text: 'SHARED_BYTES = 192 * MIB',
      by: 'SHARED_BYTES = 48 * MIB',
    },
  ])
  fixture = await startFixture(
    (upstream) => ({
      rate_limits: { global: { requests: 0 }, search: { requests: 0 } },
      content_log: { what: 'full', readers: 100 },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(
          2,
          'ann',
          [token('ann'), token('little', { content_log: { what: 'metadata' } }), token('many')],
          { access_token: ANN.accessToken },
        ),
        user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
        user(4, 'ada', [token('ada')], { access_token: ADA.accessToken, role: 10 }),
      ],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy?.discard()
})

const url = (): string => fixture.gateway.url
const search = async (account: Account, q: string, more = ''): Promise<Found> => {
  const { status, message, data } = await manage<Found>(
    url(),
    account,
    `GET /api/content/search?q=${encodeURIComponent(q)}${more}`,
  )
  expect(status, message).toBe(200)
  return data
}
/** Makes a call in which a user says something, and resolves to its id once its content is readable. */
const say = async (key: string, text: string, account: Account, headers = {}): Promise<string> => {
  fixture.upstream.script('m', { kind: 'whole' })
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: text },
  ]
  const answer = await fixture.chat(key, ask('m', { messages }), { headers })
  expect(answer.status, answer.text).toBe(200)
  const id = String(answer.headers['x-request-id'])
  await contentOf(url(), account, id)
  return id
}
const readsOf = async (id: string): Promise<number> => {
  const { data } = await manage<{ items: { action: string; object: { name: string } }[] }>(
    url(),
    ROOT_ACCOUNT,
    'GET /api/audit?kind=content&page_size=100',
  )
  return data.items.filter(({ action, object }) => action === 'content.read' && object.name === id).length
}

describe('a search in the content log', () => {
  test('finds the own calls by words in any case, the newest first, with the place of the words', async () => {
    const first = await say('ann', 'Where do whales sleep?', ANN, { 'x-session-id': 'whales' })
    const second = await say('ann', 'And how many WHALES are there?', ANN)
    const { items, next } = await search(ANN, 'whales')
    expect(items.map(({ id }) => id)).toEqual([second, first])
    expect(next).toBeNull()
    const [, hit] = items
    expect(hit).toMatchObject({ username: 'ann', token_name: 'token-ann', role: 'user' })
    expect(hit?.session).toMatch(/^[\da-f]{16}$/)
    expect(hit?.text.slice(hit.at, hit.at + hit.length)).toBe('whales')
    expect(await readsOf(first)).toBe(0)
  })

  test('finds nothing of others for a member, nor for a role below `readers`', async () => {
    const id = await say('ann', 'a secret walrus', ANN)
    for (const account of [BEN, ADA]) {
      expect((await search(account, 'walrus')).items).toEqual([])
      expect((await search(account, 'walrus', '&user_id=2&username=ann')).items).toEqual([])
    }
    expect(await readsOf(id)).toBe(0)
  })

  test('finds what others said for a role from `readers` on, and each hit is in the audit log', async () => {
    const id = await say('ben', 'an audited narwhal', BEN)
    const other = await say('ben', 'something else', BEN)
    const { items } = await search(ROOT_ACCOUNT, 'narwhal')
    expect(items).toMatchObject([{ id, username: 'ben' }])
    expect(await readsOf(id)).toBe(1)
    expect(await readsOf(other)).toBe(0)
    expect((await search(ROOT_ACCOUNT, 'narwhal', '&username=ann')).items).toEqual([])
    expect((await search(ROOT_ACCOUNT, 'narwhal', '&username=ben')).items).toHaveLength(1)
    expect(await readsOf(id)).toBe(2)
  })

  test('finds nothing outside the period, in outlines, and in what was deleted', async () => {
    const now = Math.floor(Date.now() / 1000)
    const id = await say('ann', 'a dated dolphin', ANN)
    expect((await search(ANN, 'dolphin', `&start_timestamp=${now - 60}`)).items).toMatchObject([{ id }])
    expect((await search(ANN, 'dolphin', `&end_timestamp=${now - 60}`)).items).toEqual([])
    await say('little', 'an outlined porpoise', ANN)
    expect((await search(ANN, 'porpoise')).items).toEqual([])
    const removed = await say('ben', 'a deleted dolphin', BEN)
    await manage(url(), BEN, 'DELETE /api/content')
    expect((await search(BEN, 'dolphin')).items).toEqual([])
    expect((await search(ROOT_ACCOUNT, 'dolphin')).items.map((hit) => hit.id)).not.toContain(removed)
  })

  test.each([
    ['', 'at least 2 characters'],
    ['x', 'at least 2 characters'],
    ['x'.repeat(201), 'at most 200 characters'],
  ])('refuses the words "%s"', async (q, reason) => {
    const { status, message } = await manage(url(), ANN, `GET /api/content/search?q=${q}`)
    expect(status).toBe(400)
    expect(message).toContain(reason)
  })

  test('refuses a place to continue that no search has named', async () => {
    for (const after of ['1', randomUUID(), `x-${randomUUID()}`])
      expect((await manage(url(), ANN, `GET /api/content/search?q=whale&after=${after}`)).status).toBe(400)
  })

  test('looks at 1,000 calls at most, and continues where it stopped', async () => {
    const id = await say('ben', 'the oldest manatee', BEN)
    fixture.upstream.decide('m', () => ({ kind: 'whole' }))
    const more = async (): Promise<void> => {
      for (let n = 0; n < 60; n += 1)
        expect((await fixture.chat('ben', ask('m', { user: randomUUID() }))).status).toBe(200)
    }
    await Promise.all(Array.from({ length: 17 }, more))
    let last = await search(BEN, 'manatee')
    const looked = [last.calls]
    while (last.next !== null) {
      expect(last.items).toEqual([])
      last = await search(BEN, 'manatee', `&after=${last.next}`)
      looked.push(last.calls)
    }
    expect(last.items).toMatchObject([{ id }])
    expect(Math.max(...looked)).toBeLessThanOrEqual(1_000)
    expect(looked.reduce((sum, calls) => sum + calls)).toBeGreaterThanOrEqual(1_021)
  })

  test('ends with 50 hits, and continues after the last one without repeating it', async () => {
    fixture.upstream.decide('m', () => ({ kind: 'whole' }))
    let last = ''
    for (let n = 0; n < 60; n += 1) {
      const messages = [{ role: 'user', content: `beluga ${n}` }]
      last = String((await fixture.chat('many', ask('m', { messages }))).headers['x-request-id'])
    }
    await contentOf(url(), ANN, last)
    const first = await search(ANN, 'beluga')
    expect(first.items).toHaveLength(50)
    expect(first).toMatchObject({ calls: 50, searched: 50 })
    const rest = await search(ANN, 'beluga', `&after=${first.next}`)
    expect(rest.items).toHaveLength(10)
    expect(new Set([...first.items, ...rest.items].map((hit) => hit.id)).size).toBe(60)
    expect(rest.next).toBeNull()
  })

  test('reads contents above the share of a user one at a time, and passes over what it has no memory for', async () => {
    const small = await startGateway({
      root: copy.root,
      config: {
        options: { body_limit: '8MiB' },
        content_log: { what: 'full', readers: 100 },
        rate_limits: { global: { requests: 0 } },
        models: priced(['m']),
        channels: [channel('m', fixture.upstream.baseUrl('m'))],
        users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
      },
    })
    onTestFinished(() => small.discard())
    fixture.upstream.decide('m', () => ({ kind: 'whole' }))
    const tell = async (bytes: number): Promise<string> => {
      const messages = [{ role: 'user', content: `orca ${'x'.repeat(bytes)}` }]
      const { headers } = await call(small.url, ask('m', { messages }), { key: 'ann' })
      const id = String(headers['x-request-id'])
      await contentOf(small.url, ANN, id)
      return id
    }
    const older = await tell(10_000)
    // Twelve times its size is more than all users together have.
    const large = await tell(7_000_000)
    const idsOf = ({ data }: { readonly data: Words | Found }): readonly string[] =>
      data.items.map(({ id }) => id)
    const found = () => manage<Found>(small.url, ROOT_ACCOUNT, 'GET /api/content/search?q=orca')
    const words = () => manage<Words>(small.url, ANN, `GET /api/content/words?id=${older}&id=${large}`)
    await expect.poll(async () => (await found()).data).toMatchObject({ searched: 2, unread: 0, next: null })
    await expect.poll(async () => idsOf(await words())).toEqual(expect.arrayContaining([older, large]))
    const read = (id: string): void => {
      const headers = { authorization: `Bearer ${ROOT.access_token}`, 'new-api-user': '1' }
      const reading = request(`${small.url}/api/content/${id}`, { headers }).end()
      reading.on('error', () => {})
      onTestFinished(() => void reading.destroy())
    }
    read(large)
    await expect.poll(async () => (await found()).data).toMatchObject({ searched: 2, unread: 1, next: null })
    await expect.poll(async () => idsOf(await found())).toEqual([older])
    await expect.poll(async () => (await words()).data).toMatchObject({ items: [{ id: older }], unread: 1 })
    read(older)
    await expect.poll(async () => idsOf(await found())).toEqual([large, older])
  })
})

describe('the first words of calls', () => {
  const words = async (account: Account, ids: readonly string[], more = ''): Promise<Words> => {
    const { status, message, data } = await manage<Words>(
      url(),
      account,
      `GET /api/content/words?${ids.map((id) => `id=${id}`).join('&')}${more}`,
    )
    expect(status, message).toBe(200)
    return data
  }

  test('are read of own calls, and of others only if they are asked for by who may read them', async () => {
    const own = await say('ann', 'Good morning', ANN)
    const other = await say('ben', 'Good evening', BEN)
    const outlined = await say('little', 'Good night', ANN)
    expect(await words(ANN, [own, other, outlined])).toEqual({
      items: [{ id: own, text: 'Good morning' }],
      unread: 0,
      may_read_others: false,
    })
    expect((await words(ADA, [own, other], '&others=1')).items).toEqual([])
    const asRoot = await words(ROOT_ACCOUNT, [own, other])
    expect(asRoot.may_read_others).toBe(true)
    expect(asRoot.items).toHaveLength(2)
    expect(asRoot.items.map(({ text }) => text)).toEqual([null, null])
    expect(await readsOf(other)).toBe(0)
    const read = await words(ROOT_ACCOUNT, [own, other], '&others=1')
    expect(
      read.items.map(({ text }) => text).toSorted((one, other) => (one ?? '').localeCompare(other ?? '')),
    ).toEqual(['Good evening', 'Good morning'])
    expect([await readsOf(own), await readsOf(other)]).toEqual([1, 1])
  })

  test('are read although those of another call among them cannot be read in time', async () => {
    const older = await say('ann', 'an older sturgeon', ANN)
    const stuck = await say('ann', 'a stuck sturgeon', ANN)
    const newer = await say('ann', 'a newer sturgeon', ANN)
    const { items, unread } = await words(ANN, [older, stuck, newer])
    expect(new Set(items.map(({ id }) => id))).toEqual(new Set([older, newer]))
    expect(unread).toBe(1)
  })

  test('are asked of 50 calls at most', async () => {
    const ids = Array.from({ length: 51 }, () => `id=${randomUUID()}`).join('&')
    expect((await manage(url(), ANN, `GET /api/content/words?${ids}`)).status).toBe(400)
  })
})
