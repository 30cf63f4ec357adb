import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  holdOf,
  newToken,
  newUser,
  SECRETS,
  settledCall,
  temporaryFolder,
} from '../../../test/stores/rows.ts'
import { deriveSecrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { openSqliteStore } from './open.ts'

const openHere = (path: string, secret = SECRETS) =>
  openSqliteStore({ path, secrets: secret, onCallingThread: true })

test('a SQLite store on the calling thread writes, reads and charges like one in a separate thread', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const here = await openHere(path)
  const user = await here.write('createUser', newUser({ username: 'ann' }))
  const token = await here.write('createToken', newToken(user.id))
  const who = { userId: user.id, tokenId: token.id }
  await here.write('hold', holdOf(who, 'a'))
  await here.write('settle', settledCall(who, 'a'))
  const seenHere = await here.read('userByName', 'ann')
  const sums = await here.read('findUnbalancedAccounts')
  await here.close()
  const threads = await openSqliteStore({ path, secrets: SECRETS })
  expect(seenHere).toMatchObject({ id: user.id, username: 'ann' })
  expect(await threads.read('userByName', 'ann')).toEqual(seenHere)
  expect(await threads.read('findUnbalancedAccounts')).toEqual(sums)
  await threads.close()
})

test('a failing operation of a SQLite store on the calling thread does not affect the operations around it', async () => {
  const here = await openHere(join(temporaryFolder(), 'sluice.db'))
  const made = await Promise.allSettled([
    here.write('createUser', newUser({ username: 'ann' })),
    here.write('createUser', newUser({ username: 'ann' })),
    here.write('createUser', newUser({ username: 'bob' })),
  ])
  expect(made.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await here.read('userByName', 'bob')).toMatchObject({ username: 'bob' })
  await here.close()
})

test('a SQLite store on the calling thread refuses another secret, and every operation after it is closed', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const here = await openHere(path)
  await here.close()
  await expect(here.write('createUser', newUser())).rejects.toThrow(StoreUnavailable)
  await expect(openHere(path, deriveSecrets('another secret than that one'))).rejects.toThrow(
    'another secret',
  )
})
