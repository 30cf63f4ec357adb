import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/store-engines.ts'
import type { Identity } from './identities.ts'

const ONE: Identity = { issuer: 'https://corp.example', subject: 'one' }
const OTHER: Identity = { issuer: 'https://corp.example', subject: 'other' }

describe.each(ENGINES)('identities on $name', (engine) => {
  test('of two identities that are unlinked at once, one stays where there is no other way to sign in', async () => {
    const { store, database } = await rowsWithAccount(engine)
    for (const [index, { issuer, subject }] of [ONE, OTHER].entries())
      await database.sql(
        `insert into identities (issuer, subject, user_id, created_time) values ('${issuer}', '${subject}', 1, ${index})`,
      )
    const unlink = (identity: Identity, acceptsPasswords = false) =>
      store.write('unlinkIdentity', { identity, userId: 1, keptSession: undefined, acceptsPasswords })
    const outcomes = await Promise.all([unlink(ONE), unlink(OTHER)])
    expect(outcomes.toSorted()).toEqual(['last way', 'unlinked'])
    const [left] = await store.read('identitiesOf', 1)
    expect(await database.sql('select oidc_id from users where id = 1')).toEqual([{ oidc_id: left?.subject }])

    await database.sql("update users set password_hash = 'x' where id = 1")
    if (!left) throw new Error('none is left')
    expect(await unlink(left)).toBe('last way')
    expect(await unlink(left, true)).toBe('unlinked')
    expect(await unlink(left, true)).toBe('unknown')
    expect(await database.sql('select oidc_id from users where id = 1')).toEqual([{ oidc_id: '' }])
  })
})
