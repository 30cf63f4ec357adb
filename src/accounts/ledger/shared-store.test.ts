import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeFileAt, storeWithAccount, temporaryFolder } from '../../../test/stores/rows.ts'
import { sharedStore } from './shared-store.ts'

test('a read that shows charges waits for a report of them, and one for a session, a sign-in or an invitation does not', async () => {
  const { store: rows, userId } = await storeWithAccount()
  const file = await nodeFileAt(join(temporaryFolder(), 'node.db'))
  onTestFinished(() => file.close())
  let flushes = 0
  const shared = sharedStore(rows, {
    file,
    onSettled: () => {},
    held: () => 0,
    flush: () => Promise.resolve(void (flushes += 1)),
  })
  await shared.read('liveSession', { sessionHash: 'made up', nowSeconds: 0 })
  await shared.read('sessionsOf', { userId, nowSeconds: 0 })
  await shared.read('hasBcryptPasswords')
  await shared.read('userByIdentity', { issuer: 'https://id.example.com', subject: 'ada' })
  await shared.read('identitiesOf', userId)
  await shared.read('findInvitation', { token: 'made up', nowSeconds: 0 })
  await shared.read('listInvitations', { within: undefined, nowSeconds: 0 })
  expect(flushes).toBe(0)
  await shared.read('managedUser', { userId })
  expect(flushes).toBe(1)
})
