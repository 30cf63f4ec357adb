import { expect } from 'vitest'
import {
  hashAccessToken,
  hashSession,
  keyHashes,
  seal,
  type SecretKeys,
  type Secrets,
  unseal,
} from '../../src/store/secrets.ts'
import type { RowStore } from '../../src/store/store.ts'
import type { TestDatabase } from './engines.ts'
import { newToken, newUser } from './rows.ts'

export const OLD_SECRET = 'the-secret-that-has-leaked-0123456789'
export const NEW_SECRET = 'the-secret-that-replaces-it-9876543210'

const NOW_MS = Date.now()
const NOW = Math.floor(NOW_MS / 1000)
const LATER_MS = NOW_MS + 3_600_000
const DAY = Math.floor(LATER_MS / 86_400_000)
const SIGNED_OUT_AT = 'https://id.example.com/end?hint=1'
const cookie = (index: number): string => `session-${index}`.padEnd(43, '-')
const kept = { kind: 'idempotency', lookup: 'the lookup', answerId: 'answer-1' } as const

/** Writes values of every kind that a secret protects. Resolves to the ids of the tokens. */
export async function fillWithSealed(store: RowStore, tokens: number): Promise<void> {
  const user = await store.write('createUser', newUser({ accessToken: 'the-access-token-of-ada' }))
  for (let index = 0; index < tokens; index += 1)
    await store.write('createToken', newToken(user.id, { key: `key${index}`, name: `token ${index}` }))
  await store.write('createChannels', {
    channels: [
      {
        name: 'main',
        declared: { type: 'openai', models: ['m'], proxy: 'http://me:pass@proxy.example.com' },
        keys: ['sk-upstream'],
        status: 1,
        family: null,
      } as never,
    ],
    created_time: NOW,
  })
  await store.write('setStoredSettings', {
    changes: [{ section: 'alerts', name: '0', value: { url: 'https://hook.example.com/x' } } as never],
  })
  const session = { created_time: NOW, expiresTime: NOW + 3_600, address: '', userAgent: '' }
  await store.write('createUserOfIdentity', {
    identity: { issuer: 'https://id.example.com', subject: 'eve' },
    user: newUser({ username: 'eve' }),
  })
  await store.write('beginSession', {
    ...session,
    userId: user.id + 1,
    cookieValue: cookie(1),
    proof: {
      kind: 'identity',
      issuer: 'https://id.example.com',
      subject: 'eve',
      logoutUrl: SIGNED_OUT_AT,
    } as never,
  })
  await store.write('beginSession', {
    ...session,
    userId: user.id,
    cookieValue: cookie(2),
    proof: { kind: 'access token', accessToken: 'the-access-token-of-ada' },
  })
  const response = {
    userId: user.id,
    model: 'm',
    group: 'default',
    channel: 'main',
    keyTag: 'tag',
    upstreamId: '',
    tokens: 1,
    previousId: null,
    createdMs: NOW_MS,
    expiresMs: LATER_MS,
    callId: null,
    rate: null,
  }
  await store.write('storeResponse', {
    ...response,
    id: 'resp_whole',
    content: { input: '["question"]', response: '{}' },
  })
  await store.write('storeResponsePart', {
    responseId: 'resp_parts',
    part: 0,
    text: 'first part',
    createdMs: NOW_MS,
  })
  await store.write('storeResponse', {
    ...response,
    id: 'resp_parts',
    content: { inputParts: 1, responseParts: 0, bytes: 10 },
  })
  await store.write('storeSignatures', {
    replies: [
      {
        userId: user.id,
        signatures: [{ hash: 'h', content: 'signed' }],
        storedMs: NOW_MS,
        expiresMs: LATER_MS,
      },
    ],
  })
  await store.write('storeAnswer', {
    ...kept,
    userId: user.id,
    tokenId: 1,
    model: 'm',
    head: { status: 200, headers: {} },
    facts: 'facts',
    parts: 1,
    bytes: 4,
    createdMs: NOW_MS,
    expiresMs: LATER_MS,
    content: Buffer.from('kept'),
  })
}

/**
 * Expects that everything that `fillWithSealed` wrote can be found and read with these secrets; of the tokens, every
 * one in `step`.
 */
export async function expectReadable(
  store: RowStore,
  secrets: Secrets,
  tokens: number,
  step = 1,
): Promise<void> {
  for (let index = 0; index < tokens; index += step) {
    const found = await Promise.all(
      keyHashes(secrets, `key${index}`).map((hash) => store.read('tokenByKeyHash', hash)),
    )
    expect(found.find(Boolean)?.token.name, `the token with key${index}`).toBe(`token ${index}`)
    const tokenId = found.find(Boolean)?.token.id ?? 0
    expect(await store.read('revealKey', { tokenId, userId: found.find(Boolean)?.user.id ?? 0 })).toBe(
      `key${index}`,
    )
  }
  const owner = await store.read('userByAccessToken', hashAccessToken(secrets, 'the-access-token-of-ada'))
  expect(owner?.username).toBe('ada')
  const live = (index: number) =>
    store.read('liveSession', { sessionHash: hashSession(secrets, cookie(index)), nowSeconds: NOW })
  expect([(await live(1))?.user.username, (await live(2))?.user.username]).toEqual(['eve', 'ada'])
  const { channels, entries } = await store.read('storedConfiguration')
  expect(channels).toMatchObject([
    { keys: ['sk-upstream'], declared: { proxy: 'http://me:pass@proxy.example.com' } },
  ])
  expect(entries).toMatchObject([{ section: 'alerts', value: { url: 'https://hook.example.com/x' } }])
  const userId = owner?.id ?? 0
  const text = (id: string) =>
    store.read('readStoredText', { id, userId, nowMs: NOW_MS, of: 'input', part: 0 })
  expect([(await text('resp_whole'))?.text, (await text('resp_parts'))?.text]).toEqual([
    '["question"]',
    'first part',
  ])
  expect(await store.read('findSignatures', { userId, hashes: ['h'], nowMs: NOW_MS })).toMatchObject([
    { content: 'signed' },
  ])
  const { kind, lookup, answerId } = kept
  expect(await store.read('findAnswer', { kind, lookup, nowMs: NOW_MS })).toMatchObject({ facts: 'facts' })
  const part = await store.read('readAnswerPart', { day: DAY, answerId, part: 0 })
  expect(Buffer.from(part ?? []).toString()).toBe('kept')
}

/** Ends the session with the encrypted address, which is the only way to read that address. */
export async function expectSignedOut(store: RowStore): Promise<void> {
  expect(await store.write('endSession', { cookieValue: cookie(1) })).toEqual({ logoutUrl: SIGNED_OUT_AT })
}

/** The columns, as `table.column`, in which a value of a secret is found, by the identifier that all values have. */
export async function columnsSealedWith(database: TestDatabase, { keyId }: SecretKeys): Promise<string[]> {
  const tables = await database.sql(
    database.place.startsWith('postgres')
      ? "select table_name as name from information_schema.tables where table_schema = current_schema() and table_type = 'BASE TABLE'"
      : "select name from sqlite_schema where type = 'table'",
  )
  const found = new Set<string>()
  for (const { name } of tables)
    for (const row of await database.sql(`select * from "${String(name)}"`))
      for (const [column, value] of Object.entries(row))
        if (String(value).startsWith(`v1.${keyId}.`)) found.add(`${String(name)}.${column}`)
  return [...found].toSorted()
}

/** A data key of the content log, as its table stores it. */
export const dataKey = {
  cipher: (secrets: SecretKeys): string => seal(secrets, 'the data key', { table: 'content', row: 'k1' }),
  plain: (secrets: Secrets, cipher: string): string =>
    unseal(secrets, cipher, { table: 'content', row: 'k1' }),
}
