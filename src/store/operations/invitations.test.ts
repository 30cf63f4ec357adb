import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { newUser } from '../../../test/stores/rows.ts'

const NOW = 1_800_000_000

describe.each(ENGINES)('invitations, on $name', (engine) => {
  async function opened() {
    const { store } = await openedRows(engine)
    const boss = await store.write('createUser', newUser({ username: 'boss', role: 10 }))
    const invite = (token: string, expires_time = NOW + 1) =>
      store.write('createInvitation', {
        token,
        inviterId: boss.id,
        terms: { group: 'sales', quota: 7, budget: { amount: 5, period: 'week' } },
        created_time: NOW,
        expires_time,
      })
    const accept = (token: string, username: string, nowSeconds = NOW) =>
      store.write('acceptInvitation', { token, username, passwordHash: 'hash', nowSeconds })
    return { store, boss, invite, accept }
  }

  test('of two acceptances at the same time one creates a user, with what the invitation gives', async () => {
    const { store, invite, accept } = await opened()
    await invite('t')
    const made = await Promise.all([accept('t', 'ann'), accept('t', 'bob')])
    const users = made.filter((one) => one !== null)
    expect(users).toMatchObject([
      { role: 1, group: 'sales', quota: 7, budget: { amount: 5, period: 'week' } },
    ])
    expect(await store.read('countUsers')).toBe(2)
    expect(await accept('t', 'carl')).toBeNull()
  })

  test('a refused name leaves the invitation open', async () => {
    const { invite, accept } = await opened()
    await invite('t')
    await expect(accept('t', 'Boss')).rejects.toThrow('already')
    expect(await accept('t', 'ann')).toMatchObject({ username: 'ann' })
  })

  test('an invitation ends at its time, and when its inviter is disabled, demoted or deleted', async () => {
    const { store, boss, invite, accept } = await opened()
    await invite('late')
    expect(await accept('late', 'ann', NOW + 1)).toBeNull()
    const change = (fields: object) => store.write('changeUser', { userId: boss.id, fields })
    await invite('t', NOW + 9)
    await change({ status: 2 })
    expect(await accept('t', 'ann')).toBeNull()
    await change({ status: 1, role: 1 })
    expect(await accept('t', 'ann')).toBeNull()
    await change({ role: 10 })
    await store.write('deleteUser', { userId: boss.id, deleted_time: NOW })
    expect(await accept('t', 'ann')).toBeNull()
  })
})
