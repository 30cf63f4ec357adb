import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeFileAt, storeWithAccount, temporaryFolder } from '../../../test/stores/rows.ts'
import { sharedStore } from './shared-store.ts'

test('a read that shows charges waits for a report of them, and one for a session, a sign-in or an invitation does not', async () => {
  const { store: rows, userId } = await storeWithAccount()
  const file = await nodeFileAt(join(temporaryFolder(), 'node.db'))
  onTestFinished(() => file.close())
  let flushes = 0
  const { read } = sharedStore(rows, {
    file,
    onSettled: () => {},
    held: () => 0,
    flush: () => Promise.resolve(void (flushes += 1)),
  })
  await read('liveSession', { sessionHash: 'made up', nowSeconds: 0 })
  await read('sessionsOf', { userId, nowSeconds: 0 })
  await read('hasBcryptPasswords')
  await read('userByIdentity', { issuer: 'https://id.example.com', subject: 'ada' })
  await read('identitiesOf', userId)
  await read('findInvitation', { token: 'made up', nowSeconds: 0 })
  await read('listInvitations', { within: undefined, nowSeconds: 0 })
  expect(flushes).toBe(0)
  await read('managedUser', { userId })
  expect(flushes).toBe(1)
})
