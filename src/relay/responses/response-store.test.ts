import { expect, test } from 'vitest'
import { ResponseStore } from './response-store.ts'

test('an id is as long as the one that it replaces, if that leaves enough random characters', () => {
  for (let length = 0; length < 100; length++) {
    const id = ResponseStore.newId(length)
    expect(id).toMatch(/^resp_[\w-]+$/)
    expect(id.length).toBe(length >= 37 && length <= 65 ? length : 49)
  }
})

test('no two ids of one moment are equal, whatever their length', () => {
  for (const length of [37, 49, 65])
    expect(new Set(Array.from({ length: 2_000 }, () => ResponseStore.newId(length))).size).toBe(2_000)
})
