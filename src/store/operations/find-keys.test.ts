import { expect, test } from 'vitest'
import { newToken, storeWithAccount } from '../../../test/stores/rows.ts'

test('a search among more than 600 tokens lists first keys that end with the text, then tokens that have it in their name', async () => {
  const { store, userId } = await storeWithAccount()
  const create = (name: string, key: string) => store.write('createToken', newToken(userId, { name, key }))
  const first = await create('oldest', 'first-of-all-ZyX9')
  await Promise.all(Array.from({ length: 600 }, (_, n) => create(`zyx9-${n}`, `key-${n}-none`)))
  const found = await store.read('findKeys', { userId: undefined, part: 'ZyX9', limit: 3 })
  expect(found.map(({ name, end }) => [name.replace(/\d+$/, ''), end])).toEqual([
    ['oldest', 'ZyX9'],
    ['zyx9-', ''],
    ['zyx9-', ''],
  ])
  expect(found[0]?.id).toBe(first.id)
  const named = await store.read('findKeys', { userId, part: 'OLDES', limit: 3 })
  expect(named).toEqual([{ id: first.id, name: 'oldest', owner: userId, username: 'ada', end: '' }])
})
