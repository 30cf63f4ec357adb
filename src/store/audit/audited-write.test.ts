import fc from 'fast-check'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Engine, ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { newToken, newUser, SECRETS } from '../../../test/stores/rows.ts'
import type { AuditEntry, ChangeOrigin } from '../../domain/audit.ts'
import type { Json } from '../../domain/json.ts'
import type { RowStore } from '../store.ts'
import { createKysely } from '../sqlite/dialect.ts'
import { AUDIT_RULES, auditedWrite } from './audited-write.ts'
import * as writes from '../operations/writes.ts'

const NOW = Date.now()
const DAY_MS = 86_400_000
const origin: ChangeOrigin = { actorId: 7, actor: 'ann', via: 'api', address: '192.0.2.7', atMs: NOW }

const definition = (name: string, key: string, fields: Readonly<Record<string, Json>> = {}) => ({
  name,
  declared: { protocol: 'chat', base_url: 'https://api.example/v1', models: ['m'], ...fields },
  keys: [key],
  status: 1 as const,
  family: {},
})

const entriesOf = async (store: RowStore): Promise<readonly AuditEntry[]> =>
  (await store.read('auditPage', { filter: {}, offset: 0, limit: 1000 })).entries.toReversed()

test('every database write is declared for the audit log as changing objects or not', () => {
  expect(Object.keys(AUDIT_RULES).sort()).toEqual(Object.keys(writes).sort())
})

/** One step of a random sequence; its numbers select among the existing objects. */
const step = fc.oneof(
  fc.record({ do: fc.constant('create user' as const), name: fc.stringMatching(/^[a-z]{3,9}$/) }),
  fc.record({
    do: fc.constant('change user' as const),
    of: fc.nat(5),
    fields: fc.record(
      {
        display_name: fc.string({ maxLength: 9 }),
        remark: fc.string({ maxLength: 9 }),
        group: fc.constantFrom('default', 'vip'),
      },
      { requiredKeys: [] },
    ),
    quota: fc.option(fc.nat(1000), { nil: undefined }),
    has_password: fc.boolean(),
  }),
  fc.record({ do: fc.constant('delete user' as const), of: fc.nat(5) }),
  fc.record({ do: fc.constant('create key' as const), of: fc.nat(5) }),
  fc.record({
    do: fc.constant('change key' as const),
    of: fc.nat(5),
    fields: fc.record(
      {
        name: fc.stringMatching(/^[a-z]{3,9}$/),
        remain_quota: fc.nat(1000),
        model_limits: fc.constantFrom('', 'a,b'),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ do: fc.constant('rotate key' as const), of: fc.nat(5) }),
  fc.record({ do: fc.constant('delete key' as const), of: fc.nat(5) }),
  fc.record({ do: fc.constant('create channel' as const), name: fc.stringMatching(/^[a-z]{3,9}$/) }),
  fc.record({ do: fc.constant('change channel' as const), of: fc.nat(5), weight: fc.nat(9) }),
  fc.record({ do: fc.constant('delete channel' as const), of: fc.nat(5) }),
  fc.record({
    do: fc.constant('set option' as const),
    name: fc.constantFrom('retries', 'hold_tokens'),
    value: fc.option(fc.stringMatching(/^[1-9]$/), { nil: undefined }),
  }),
)

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

/** Performs steps, with a new secret in each field for one; invalid steps are refused. */
async function perform(store: RowStore, steps: readonly Step[]): Promise<string[]> {
  const secrets: string[] = []
  const secret = (): string => {
    const text = `secret${secrets.length}q${Math.random().toString(36).slice(2)}`
    secrets.push(text)
    return text
  }
  const users: number[] = []
  const keys: { id: number; userId: number }[] = []
  const channels: number[] = []
  const pick = <One>(list: readonly One[], of: number): One | undefined => list[of % Math.max(1, list.length)]
  for (const one of steps) {
    try {
      if (one.do === 'create user') {
        const made = newUser({ username: one.name, accessToken: secret(), passwordHash: secret() })
        users.push((await store.write('createUser', { ...made, origin })).id)
      } else if (one.do === 'create channel') {
        const headers = { authorization: secret() }
        const proxy = `http://me:${secret()}@proxy.example`
        const channel = definition(one.name, secret(), { headers, proxy })
        channels.push(
          ...(await store.write('createChannels', { channels: [channel], created_time: 1, origin })),
        )
      } else if (one.do === 'set option') {
        const changes = [{ section: 'options' as const, name: one.name, value: one.value }]
        await store.write('setStoredSettings', { changes, origin })
      } else if (one.do === 'change channel' || one.do === 'delete channel') {
        const id = pick(channels, one.of)
        if (id === undefined) continue
        if (one.do === 'delete channel') await store.write('deleteChannels', { ids: [id], origin })
        else {
          const channel = definition(`c${id}`, secret(), {
            weight: one.weight,
            base_url: `https://u:${secret()}@h.example`,
          })
          await store.write('changeChannel', { id, channel, origin })
        }
      } else if (one.do.endsWith('user') || one.do === 'create key') {
        const userId = pick(users, one.of)
        if (userId === undefined) continue
        if (one.do === 'delete user') await store.write('deleteUser', { userId, deleted_time: 1, origin })
        else if (one.do === 'create key') {
          const token = newToken(userId, { key: secret() })
          keys.push({
            id: (await store.write('createUserToken', { token, maxTokens: 9, origin })).id,
            userId,
          })
        } else if (one.do === 'change user') {
          const quota =
            one.quota === undefined
              ? undefined
              : ({ mode: 'override', value: one.quota, maxQuota: 1e6 } as const)
          const fields = { ...one.fields, ...(one.has_password && { passwordHash: secret() }) }
          await store.write('changeUser', { userId, fields, quota, origin })
        }
      } else {
        const key = 'of' in one ? pick(keys, one.of) : undefined
        if (!key) continue
        const ids = { tokenId: key.id, userId: key.userId }
        if (one.do === 'rotate key') await store.write('rotateToken', { ...ids, key: secret(), origin })
        else if (one.do === 'delete key')
          await store.write('deleteTokens', { userId: key.userId, tokenIds: [key.id], nowSeconds: 1, origin })
        else if (one.do === 'change key')
          await store.write('changeToken', { ...ids, fields: one.fields, maxQuota: 1e6, nowMs: NOW, origin })
      }
    } catch {
      // The step was refused, for example for a name in use: nothing has changed, and nothing is logged.
    }
  }
  return secrets
}

/** Entries of new objects omit empty fields. */
const known = (value: Json | undefined): Json => value || null

/** The fields of every object, derived only from the entries. */
function replayed(entries: readonly AuditEntry[]): Map<string, Record<string, Json>> {
  const objects = new Map<string, Record<string, Json>>()
  for (const { action, object, changes } of entries) {
    const identity = `${object.kind} ${object.id ?? object.name}`
    const fields = { ...objects.get(identity) }
    for (const { field, before, after } of changes) {
      if (after !== 'changed' && after !== 'removed') {
        expect(known(before), `${action} ${field}`).toEqual(known(fields[field]))
        fields[field] = after
      }
    }
    if (action.endsWith('.delete')) objects.delete(identity)
    else objects.set(identity, fields)
  }
  return objects
}

describe.each(ENGINES)('the audit log, on $name', (engine) => {
  test('replaying the entries of the audit log gives the present state of every object, and no entry contains a secret', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const { store, database } = await openedRows(engine)
        const secrets = await perform(store, steps)
        const objects = replayed(await entriesOf(store))
        const users = await database.sql('select * from users where deleted_time is null')
        const tokens = await database.sql('select * from tokens where deleted_time is null')
        const { channels, entries } = await store.read('storedConfiguration')
        expect([...objects.keys()].filter((name) => /^(?:user|key|channel) /.test(name)).sort()).toEqual(
          [
            ...users.map(({ id }) => `user ${String(id)}`),
            ...tokens.map(({ id }) => `key ${String(id)}`),
            ...channels.map(({ id }) => `channel ${id}`),
          ].sort(),
        )
        const shown = (name: string, field: string, empty: Json): Json => objects.get(name)?.[field] ?? empty
        for (const row of users as { id: number; [column: string]: unknown }[])
          for (const field of ['username', 'display_name', 'remark', 'quota', 'role'])
            expect(shown(`user ${row.id}`, field, typeof row[field] === 'number' ? 0 : '')).toBe(row[field])
        for (const row of tokens as { id: number; [column: string]: unknown }[])
          for (const field of ['name', 'remain_quota', 'model_limits', 'status'])
            expect(shown(`key ${row.id}`, field, typeof row[field] === 'number' ? 0 : '')).toBe(row[field])
        for (const { id, name, declared } of channels) {
          expect(shown(`channel ${id}`, 'name', '')).toBe(name)
          expect(shown(`channel ${id}`, 'weight', 0)).toBe(declared['weight'] ?? 0)
        }
        for (const name of ['retries', 'hold_tokens'])
          expect(shown(`option ${name}`, 'value', null)).toBe(
            entries.find((one) => one.name === name)?.value ?? null,
          )
        const bytes = JSON.stringify(await database.sql('select * from audit_log'))
        for (const secret of secrets) expect(bytes).not.toContain(secret)
      }),
      { numRuns: engine.name === 'SQLite' ? 12 : 5 },
    )
  })

  test('the audit log has an entry for each object that a write changes, and none for unchanged objects or refused writes', async () => {
    const { store } = await openedRows(engine)
    const { id: userId } = await store.write('createUser', { ...newUser({ username: 'bob' }), origin })
    for (const remark of ['a', 'a']) await store.write('changeUser', { userId, fields: { remark }, origin })
    await expect(store.write('createUser', { ...newUser({ username: 'bob' }), origin })).rejects.toThrow(
      'bob',
    )
    await store.write('changeUser', { userId, fields: { remark: 'without an origin' } })
    const changes = [{ field: 'remark', before: null, after: 'a' }]
    expect((await entriesOf(store)).slice(1)).toMatchObject([
      {
        ...origin,
        action: 'user.update',
        object: { kind: 'user', id: userId, name: 'bob' },
        changes: [{ ...changes[0], before: '' }],
      },
    ])
  })

  test('a write reads only those keys for the audit log that it may change: own ones, which are not deleted', async () => {
    const { store, database } = await openedRows(engine)
    const [ann, bob] = [
      await store.write('createUser', newUser({ username: 'ann' })),
      await store.write('createUser', newUser({ username: 'bob' })),
    ]
    const own = await store.write('createToken', newToken(ann.id, { key: 'k1', name: 'own' }))
    const gone = await store.write('createToken', newToken(ann.id, { key: 'k2', name: 'gone' }))
    const foreign = await store.write('createToken', newToken(bob.id, { key: 'k3', name: 'foreign' }))
    await store.write('deleteTokens', { userId: ann.id, tokenIds: [gone.id], nowSeconds: 1 })
    // Reading a row with this list fails.
    await database.sql(`update tokens set guards = '[' where id <> ${own.id}`)
    const tokenIds = [own.id, gone.id, foreign.id]
    for (const tokenId of [gone.id, foreign.id]) {
      const of = { userId: ann.id, tokenId, origin }
      expect(await store.write('rotateToken', { ...of, key: 'k4' })).toBeNull()
      expect(await store.write('enableOrDisableToken', { ...of, status: 2, nowMs: NOW })).toBeNull()
      const fields = { name: 'x' }
      expect(await store.write('changeToken', { ...of, fields, maxQuota: 1, nowMs: NOW })).toBeNull()
    }
    expect(await store.write('deleteTokens', { userId: ann.id, tokenIds, nowSeconds: 2, origin })).toEqual([
      own.id,
    ])
    const entries = await entriesOf(store)
    expect(entries).toMatchObject([
      { action: 'key.delete', object: { kind: 'key', id: own.id, name: 'own' } },
    ])
    for (const [field, before] of Object.entries({ name: 'own', remain_quota: 500_000, user_id: ann.id }))
      expect(entries[0]?.changes).toContainEqual({ field, before, after: null })
  })

  test('a change and its entry in the audit log are committed and rolled back together', async () => {
    const { store, database } = await openedRows(engine)
    const { id: userId } = await store.write('createUser', { ...newUser({ username: 'bob' }), origin })
    const state = async () => [(await store.read('userById', userId))?.group, await entriesOf(store)]
    const before = await state()
    // The change itself succeeds, but the commit (PostgreSQL) or writing the entry (SQLite) fails.
    if (engine.name === 'PostgreSQL') {
      await database.sql('create table known (action text primary key)')
      await database.sql(`alter table audit_log add foreign key (action) references known
        deferrable initially deferred not valid`)
    } else {
      await database.sql(`create trigger no_entry before insert on audit_log
        when new.action = 'user.update' begin select raise(abort, 'no entry'); end`)
    }
    const change = store.write('changeUser', { userId, fields: { group: 'vip' }, origin })
    await expect(change).rejects.toThrow()
    expect(await state()).toEqual(before)
  })

  test('the audit log cannot be changed, and entries can only be removed after 400 days', async () => {
    const { store, database } = await openedRows(engine)
    for (const days of [0, 398, 402]) {
      const aged = { ...origin, atMs: NOW - days * DAY_MS }
      await store.write('createUser', { ...newUser({ username: `user${days}` }), origin: aged })
    }
    const change = async (statement: string) => database.sql(statement)
    await expect(change("update audit_log set actor = 'eve'")).rejects.toThrow('append-only')
    await expect(change('delete from audit_log')).rejects.toThrow('append-only')
    expect(await store.write('pruneAuditLog', { nowMs: NOW, limit: 100 })).toBe(1)
    expect((await entriesOf(store)).map(({ object }) => object.name)).toEqual(['user0', 'user398'])
  })

  test('the audit log has at most a thousand entries for refused sign-ins in an hour', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('createUser', newUser({ username: 'bob' }))
    for (const username of ['bob', 'my password'])
      await store.write('recordRefusedSignIn', { username, origin: { ...origin, actorId: 0, actor: '' } })
    expect((await entriesOf(store)).map(({ actor, action, object }) => [actor, action, object.name])).toEqual(
      [
        ['bob', 'session.refuse', 'bob'],
        ['', 'session.refuse', ''],
      ],
    )
    const columns = 'at_ms, actor_id, actor, via, address, action, object_kind, object_name, changes'
    await database.sql(`insert into audit_log (${columns})
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 998)
      select ${NOW}, 0, '', 'console', '', 'session.refuse', 'session', '', '[]' from n`)
    await store.write('recordRefusedSignIn', { username: 'bob', origin })
    expect((await store.read('auditPage', { filter: {}, offset: 0, limit: 1 })).total).toBe(1000)
    await store.write('recordRefusedSignIn', {
      username: 'bob',
      origin: { ...origin, atMs: NOW + 3_600_001 },
    })
    expect((await store.read('auditPage', { filter: {}, offset: 0, limit: 1 })).total).toBe(1001)
  })
})

test('the keys that a write deletes are read some at a time for the audit log, and each has its entry', async () => {
  const { store, database } = await openedRows(ENGINES[0] as Engine)
  const { id: userId } = await store.write('createUser', newUser({ username: 'ann' }))
  const { id } = await store.write('createToken', newToken(userId))
  const columns = Object.keys((await database.sql('select * from tokens'))[0] ?? {})
  const copied = columns.filter((name) => name !== 'id' && name !== 'key_hash').join()
  await database.sql(`insert into tokens (${copied}, key_hash)
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 250)
    select ${copied}, 'h' || i from tokens, n where tokens.id = ${id}`)
  const file = new DatabaseSync(database.place)
  onTestFinished(() => file.close())
  const sizes: number[] = []
  const db = createKysely(file).withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (result.rows.some((row) => 'model_limits' in row)) sizes.push(result.rows.length)
      return result
    },
  })
  await auditedWrite(db, 'deleteUser', { userId, deleted_time: 2, origin }, SECRETS)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(251)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(100)
  const actions = (await entriesOf(store)).map(({ action }) => action)
  expect(actions.toSorted()).toEqual([...Array.from({ length: 251 }, () => 'key.delete'), 'user.delete'])
})
