import { expect } from 'vitest'
import { KEPT_KINDS, type KeptKind } from '../../src/domain/kept.ts'
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
import { keptEntry, keptStore } from './kept.ts'
import { newToken, newUser } from './rows.ts'

export const OLD_SECRET = 'the-secret-that-has-leaked-0123456789'
export const NEW_SECRET = 'the-secret-that-replaces-it-9876543210'

const NOW_MS = Date.now()
const NOW = Math.floor(NOW_MS / 1000)
const SIGNED_OUT_AT = 'https://id.example.com/end?hint=1'
const cookie = (index: number): string => `session-${index}`.padEnd(43, '-')
/** Without those of contents that are being written, which a start ends. */
const KINDS = (Object.keys(KEPT_KINDS) as KeptKind[]).filter((kind) => !kind.startsWith('incomplete'))

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
  for (const kind of KINDS)
    await keptStore(store).write(keptEntry(kind, 'kept', { userId: user.id }), [
      Buffer.from(`kept as ${kind}`),
    ])
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
  for (const kind of KINDS) {
    const entry = await keptStore(store).find(kind, 'kept', userId)
    expect(entry?.facts).toBe('the facts of kept')
    expect(String(entry && (await keptStore(store).part(entry, 0)))).toBe(`kept as ${kind}`)
  }
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
