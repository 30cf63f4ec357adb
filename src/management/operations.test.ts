import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addAccount, SECRETS, storeWithAccount, type Account } from '../../test/stores/rows.ts'
import { ApiKeys } from '../accounts/authentication/api-keys.ts'
import { Passwords } from '../accounts/authentication/passwords.ts'
import type { Settings } from '../domain/settings.ts'
import { Ledger } from '../accounts/ledger/ledger.ts'
import { keyHashes } from '../store/secrets.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { Store } from '../store/store.ts'
import { type OperationName, operations } from './operations.ts'
import type { ManagementServices } from './services.ts'

const NOW = 1_795_176_000

const ONE = { digits: 1n, scale: 0 }

/** The settings that account management reads. */
const SETTINGS = {
  groups: new Map([['default', { name: 'default', ratio: ONE, open: true }]]),
  options: { quota_per_unit: 500_000, max_user_tokens: 1000 },
} as unknown as Settings

type Parts = ManagementServices & { userId: number; tokenId: number }

/** Opens a separate store, for a test that writes. */
async function opened(): Promise<Parts> {
  return partsOn(await storeWithAccount())
}

function partsOn(account: Account & { store: Store }): Parts {
  const ledger = new Ledger(account.store, 'run')
  return {
    ...account,
    ledger,
    apiKeys: new ApiKeys(account.store, ledger, (key) => keyHashes(SECRETS, key)),
    passwords: new Passwords(),
    content: { delete: () => Promise.resolve(false) },
    settings: () => SETTINGS,
    nowMs: () => NOW * 1000,
    databaseUrl: 'postgres://somewhere/else',
    dataDir: '/nowhere',
    secretFile: undefined,
  }
}

/** Runs an operation with unvalidated input. */
function run(services: ManagementServices, name: OperationName, input: unknown): Promise<unknown> {
  return (operations[name] as (services: ManagementServices, input: unknown) => Promise<unknown>)(
    services,
    input,
  )
}

const TOKEN = { user: 'ada', name: 'x', expired_time: -1, remain_quota: 5 }

describe('operations on accounts', () => {
  // Refused operations change nothing, so their tests share one store.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-operations-'))
  let store: Store
  let services: Parts
  beforeAll(async () => {
    store = await openSqliteStore({ path: join(folder, 'sluice.db'), secrets: SECRETS })
    services = partsOn({ store, ...(await addAccount(store)) })
  })
  afterAll(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each<[OperationName, unknown, string]>([
    ['createUser', null, 'expected an object with the fields of a user'],
    ['createToken', [], 'expected an object with the fields of a token'],
    ['createUser', {}, 'username: expected a text of 1 to 64 characters without spaces around it'],
    ['createUser', { username: 'x', role: '1' }, 'role: expected 1 (common user), 10 (admin) or 100 (root)'],
    ['createUser', { username: 'x', quota: 1.5 }, 'quota: expected a whole number of quota units'],
    [
      'createUser',
      { username: 'x', quota: -1 },
      'quota: expected whole quota units from 0 to 500000000000000, not -1',
    ],
    [
      'createUser',
      { username: 'x', group: '__proto__' },
      'group: there is no group "__proto__" in the configuration',
    ],
    ['topUpUser', { user: 'ada', amount: '5' }, 'amount: expected a whole number of quota units'],
    ['topUpUser', { user: 1.5, amount: 5 }, 'user: expected the id or the name of a user'],
    ['disableUser', { user: '' }, 'user: expected the id or the name of a user'],
    ['disableUser', { user: 99 }, 'there is no user with the id 99'],
    ['listTokens', 'ada', 'expected an object that names a user'],
    ['topUpUser', 5, 'expected an object that names a user and an amount'],
    ['disableToken', {}, 'id: expected the id of a token'],
    ['disableToken', { id: -1 }, 'id: expected the id of a token'],
    ['disableToken', 7, 'expected an object that names a token'],
    ['backup', null, 'expected an object that names a file'],
    [
      'createToken',
      { ...TOKEN, expired_time: 0 },
      'expired_time: expected -1 (never) or a time in Unix seconds',
    ],
    [
      'createToken',
      { ...TOKEN, expired_time: -2 },
      'expired_time: expected -1 (never) or a time in Unix seconds',
    ],
    [
      'createToken',
      { ...TOKEN, remain_quota: undefined },
      'remain_quota: expected a whole number of quota units',
    ],
    [
      'createToken',
      // Close to the minimum safe integer: spending would go below it.
      { ...TOKEN, unlimited_quota: true, remain_quota: -(2 ** 52) - 1 },
      'remain_quota: expected a whole number of quota units',
    ],
    [
      'createToken',
      { ...TOKEN, name: 'a\u0000' },
      'name: expected a text of 1 to 50 characters without spaces around it and without invisible characters',
    ],
    [
      'createToken',
      { ...TOKEN, name: 'é'.repeat(51) },
      'name: expected a text of 1 to 50 characters without spaces around it and without invisible characters',
    ],
    ['createToken', { ...TOKEN, unlimited_quota: 'yes' }, 'unlimited_quota: expected true or false'],
    [
      'createToken',
      { ...TOKEN, model_limits: '\u0000' },
      'model_limits: expected a text without NUL and lone surrogates',
    ],
    [
      'createToken',
      { ...TOKEN, vendor_routes: '[]' },
      'vendor_routes: expected a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty',
    ],
    [
      'createToken',
      { ...TOKEN, name: '', remain_quota: 'a' },
      'name: expected a text of 1 to 50 characters without spaces around it and without invisible characters; remain_quota: expected a whole number of quota units',
    ],
    ['backup', { file: 'relative.db' }, 'file: expected the path of a file, from the root'],
    [
      'backup',
      { file: '/nowhere/copy.db' },
      'sluice backup copies the embedded database; a PostgreSQL server has tools of its own (pg_dump)',
    ],
  ])('the operation %s with %j is refused with a message', async (name, input, sentence) => {
    await expect(run(services, name, input)).rejects.toMatchObject({
      name: 'GatewayError',
      message: sentence,
    })
  })

  test('a management operation may name a user by id or by name', async () => {
    const byId = await operations.listTokens(services, { user: services.userId })
    expect(byId).toEqual(await operations.listTokens(services, { user: 'ada' }))
    expect(byId).toMatchObject([{ id: services.tokenId, name: 'main', key: '**********' }])
  })
})

describe('a token', () => {
  test('creating a token treats null fields as absent, and ignores unknown and read-only fields', async () => {
    const made = await run(await opened(), 'createToken', {
      ...TOKEN,
      unlimited_quota: null,
      model_limits_enabled: null,
      model_limits: null,
      allow_ips: null,
      group: null,
      vendor_routes: null,
      status: 2,
      used_quota: 7,
    })
    expect(made).toMatchObject({
      status: 1,
      unlimited_quota: false,
      model_limits_enabled: false,
      model_limits: '',
      allow_ips: null,
      group: '',
      vendor_routes: '',
      used_quota: 0,
      created_time: NOW,
    })
  })

  test("a token's name may have 50 characters as a person counts them, e.g. 50 family emojis", async () => {
    const name = '👩‍👩‍👧‍👦'.repeat(50)
    expect(await operations.createToken(await opened(), { ...TOKEN, name })).toMatchObject({ name })
  })

  test('a token with unlimited quota can be created with any remaining quota, even a negative one', async () => {
    const made = await operations.createToken(await opened(), {
      ...TOKEN,
      remain_quota: -3,
      unlimited_quota: true,
    })
    expect(made).toMatchObject({ remain_quota: -3, status: 1 })
  })

  test('a key authenticates calls as soon as its token is created', async () => {
    const services = await opened()
    const { key, id } = await operations.createToken(services, TOKEN)
    expect((await services.apiKeys.authenticate(key, '127.0.0.1')).token.id).toBe(id)
  })
})
