import { randomUUIDv7 } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { holdOf, newToken, newUser, settledCall } from './rows.ts'

/** The secret of the databases created here. */
export const SECRET = 'the-secret-of-what-is-moved'

/** The content of a database. */
export interface Filling {
  readonly users: number
  readonly tokensEach: number
  /** Charges in quota units, spread over the tokens in turn. */
  readonly charges: readonly number[]
  /** Holds that an earlier run left open: each is settled at 100. */
  readonly openHolds: number
}

/**
 * A data folder with a closed embedded database, deleted after the test; it is created once for each content.
 */
export async function filledFolder(filling: Filling): Promise<string> {
  const made = templates.get(filling) ?? makeTemplate(filling)
  templates.set(filling, made)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-moved-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  copyFileSync(await made, join(folder, 'sluice.db'))
  return folder
}

const templates = new WeakMap<Filling, Promise<string>>()

async function makeTemplate(filling: Filling): Promise<string> {
  const path = join(mkdtempSync(join(inject('preparedFolder'), 'filled-')), 'sluice.db')
  const store = await openSqliteStore({ path, secrets: deriveSecrets(SECRET), onCallingThread: true })
  try {
    await fill(store, filling)
  } finally {
    await store.close()
  }
  return path
}

async function fill(store: Store, { users, tokensEach, charges, openHolds }: Filling): Promise<void> {
  const owners: { userId: number; tokenId: number }[] = []
  for (let index = 0; index < users; index += 1) {
    const user = await store.write(
      'createUser',
      // An apostrophe and letters of four bytes must be copied, too.
      newUser({
        username: `o'user 😀 ${index}`,
        accessToken: `access-${index}`,
        passwordHash: '$argon2id$x',
      }),
    )
    for (let token = 0; token < tokensEach; token += 1) {
      const key = `key${index}x${token}`
      const made = await store.write('createToken', newToken(user.id, { name: `t${token}`, key }))
      owners.push({ userId: user.id, tokenId: made.id })
    }
    await store.write('beginSession', {
      userId: user.id,
      cookieValue: `session-${index}`,
      proof: { kind: 'password', passwordHash: '$argon2id$x' },
      address: '192.0.2.1',
      userAgent: 'test',
      created_time: 1_760_000_000,
      expiresTime: 4_000_000_000,
    })
  }
  const text = { declared: { protocol: 'chat' }, keys: ['upstream-key'], status: 1, family: {} } as const
  const channels = ['kept', 'gone'].map((name) => ({ ...text, name }))
  const [, gone = 0] = await store.write('createChannels', { channels, created_time: 1_760_000_000 })
  await store.write('deleteChannels', { ids: [gone] })
  const invitation = {
    inviterId: 0,
    terms: { group: 'default', quota: 1, budget: undefined },
    created_time: 1_760_000_000,
    expires_time: 4_000_000_000,
  }
  for (const invited of ['ann', 'bob'])
    await store.write('createInvitation', { ...invitation, token: `invitation of ${invited}` })
  await store.write('consumeState', { state: 'used', expiresTime: 4_000_000_000, nowSeconds: 1_760_000_000 })
  await store.write('reportConditions', {
    nowMs: 1_760_000_000_000,
    opened: ['kept'],
    backAtMs: 4_000_000_000_000,
    overload: undefined,
  })
  await store.write('setStoredSettings', {
    changes: [{ section: 'options', name: 'retries', value: '3' }],
    origin: { actorId: 1, actor: 'root', via: 'api', address: '192.0.2.1', atMs: 1_760_000_000_000 },
  })
  const who = (index: number): { userId: number; tokenId: number } => {
    const owner = owners[index % owners.length]
    if (!owner) throw new Error('nobody to charge')
    return owner
  }
  const settled = charges.map((quota, index) =>
    store.write(
      'settle',
      settledCall(who(index), randomUUIDv7(), {
        quota,
        ended_ms: 1_760_000_000_000 + index * 7_000_000,
        model: `model-${index % 3}`,
      }),
    ),
  )
  const held = Array.from({ length: openHolds }, (_, index) =>
    store.write('hold', holdOf(who(index), randomUUIDv7(), { owner: 'a run that is gone' })),
  )
  await Promise.all([...settled, ...held])
}
