import { describe, expect, test } from 'vitest'
import { newToken, SECRETS, storeWithAccount } from '../../test/store-rows.ts'
import { Ledger } from '../ledger/ledger.ts'
import { hashKey } from '../store/secrets.ts'
import { ApiKeys } from './api-key.ts'

async function opened() {
  const account = await storeWithAccount()
  const keys = new ApiKeys(account.store, new Ledger(account.store, 'run'), (key) => hashKey(SECRETS, key))
  const calls = async (key = 'sk-k1') => keys.authenticate(key, '127.0.0.1')
  return { ...account, keys, calls }
}

describe('what was changed counts at the next call', () => {
  test('of a disabled user, by any key', async () => {
    const { store, userId, keys, calls } = await opened()
    await calls()
    await store.write('changeUser', { userId, fields: { status: 2 } })
    keys.forgetUser(userId)
    await expect(calls()).rejects.toThrow('the user of this API key is disabled')
  })

  test('of a disabled token', async () => {
    const { store, userId, tokenId, keys, calls } = await opened()
    await calls()
    await store.write('switchToken', { tokenId, userId, status: 2, nowMs: 0 })
    keys.forget(tokenId)
    await expect(calls()).rejects.toThrow('this API key is disabled')
  })

  test('of a key that was made after it was asked for', async () => {
    const { store, userId, keys, calls } = await opened()
    await expect(calls('sk-late')).rejects.toThrow('unknown')
    await store.write('createToken', newToken(userId, { key: 'late' }))
    await expect(calls('sk-late')).rejects.toThrow('unknown')
    keys.forgetKey('late')
    expect((await calls('sk-late')).user.id).toBe(userId)
  })

  test('also where a call was reading the old state when it changed', async () => {
    const { store, userId, tokenId, keys, calls } = await opened()
    const reading = [calls(), calls('sk-late')]
    keys.forgetUser(userId)
    await Promise.allSettled(reading)
    // Had either been remembered, this would not be seen.
    await store.write('switchToken', { tokenId, userId, status: 2, nowMs: 0 })
    await store.write('createToken', newToken(userId, { key: 'late' }))
    await expect(calls()).rejects.toThrow('this API key is disabled')
    expect((await calls('sk-late')).user.id).toBe(userId)
  })
})
